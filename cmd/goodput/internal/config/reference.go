package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// Where a line of the reference ends, and where its comment begins unless the key is longer.
const (
	referenceWidth = 100
	commentColumn  = 28
)

// Reference is the schema for a reader: every key, indented as it is in a file, with its
// meaning, unit, range and default. What several keys have in common is there once.
func Reference() string {
	p := &page{root: Schema(), first: map[string]string{}}
	p.prose("", p.root.Description)
	for _, key := range p.root.PropertyOrder {
		if ref := p.root.Properties[key].Ref; ref != classRef(key) {
			p.b.WriteByte('\n')
			p.key("", key, p.root.Properties[key], slices.Contains(p.root.Required, key))
		}
	}
	p.b.WriteByte('\n')
	p.prose("", "Without classes the keys of a class, but name, match and upstream, stand here, at the top.")
	return p.b.String()
}

// classRef is how keys of a class are referred to.
func classRef(key string) string { return "#/$defs/class_" + key }

// A page is the reference as far as it is written.
type page struct {
	root  *jsonschema.Schema
	first map[string]string // the key under which a definition with keys was written
	b     strings.Builder
}

// key writes a key, what it means, and the keys below it. lead is what stands before it.
func (p *page) key(lead, name string, s *jsonschema.Schema, needed bool) {
	var words []string
	if needed {
		words = append(words, "Needed.")
	}
	ref := p.last(s)
	as := p.first[ref]
	words = append(words, p.about(s, as != "")...)
	switch {
	case as != "":
		words = append(words, "As "+as+" above.")
	case ref != "" && len(p.forms("", s)) > 0:
		p.first[ref] = name
	}
	if text, ok := p.byDefault(s); ok {
		words = append(words, "Default: "+text+".")
	}
	p.line(lead+name+":", strings.Join(words, " "))
	if as == "" {
		p.below(strings.Repeat(" ", len(lead)+2), name, s)
	}
}

// last is what s refers to in the end, or "".
func (p *page) last(s *jsonschema.Schema) (ref string) {
	for ; s != nil && s.Ref != ""; s = definition(p.root, s) {
		ref = s.Ref
	}
	return ref
}

// below writes the mappings that may stand under a key.
func (p *page) below(indent, name string, s *jsonschema.Schema) {
	if name == "defaults" {
		p.prose(indent, "The keys of a class, but name and match.")
		return
	}
	for i, f := range p.forms(indent, s) {
		if i > 0 {
			p.prose(indent, "or")
		}
		if f.named != nil {
			p.key(f.lead, "NAME", f.named, false)
		}
		lead := f.lead
		for _, key := range f.keys() {
			p.key(lead, key, f.mapping.Properties[key], slices.Contains(f.mapping.Required, key))
			lead = strings.Repeat(" ", len(lead)) // the - of an item is before its first key
		}
	}
}

// A form is a mapping that a value may be.
type form struct {
	lead    string
	mapping *jsonschema.Schema
	named   *jsonschema.Schema // of a mapping whose keys are names: the value of each
}

func (f form) keys() []string {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.PropertyOrder
}

// forms returns the mappings that s may be, each once: a list of what may also stand alone is
// the list.
func (p *page) forms(lead string, s *jsonschema.Schema) (all []form) {
	if s == nil {
		return nil
	}
	all = p.forms(lead, definition(p.root, s))
	if len(s.Properties) > 0 {
		all = append(all, form{lead: lead, mapping: s})
	}
	if more := s.AdditionalProperties; more != nil && more.Not == nil {
		all = append(all, form{lead: lead, named: more})
	}
	all = append(all, p.forms(lead+"- ", s.Items)...)
	for _, alternative := range s.AnyOf {
		for _, f := range p.forms(lead, alternative) {
			same := func(o form) bool { return f.named == nil && o.named == nil && slices.Equal(o.keys(), f.keys()) }
			if !slices.ContainsFunc(all, same) || f.mapping != nil && f.mapping.Properties["law"] != nil {
				all = append(all, f)
			}
		}
	}
	return all
}

// about is what is said of a value, sentence by sentence: its own words, those of what it
// refers to, unless that is there already, and of what it may be.
func (p *page) about(s *jsonschema.Schema, known bool) (words []string) {
	add := func(more ...string) {
		for _, w := range more {
			if w = strings.TrimSpace(w); w != "" && !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	add(s.Description)
	if def := definition(p.root, s); def != nil && (!known || def.Ref != "") {
		add(p.about(def, known)...)
	}
	if s.Enum != nil {
		var of []string
		for _, w := range s.Enum {
			of = append(of, fmt.Sprint(w))
		}
		add(strictyaml.Either(of) + ".")
	}
	if s.Type == "boolean" {
		add("true or false.")
	}
	if s.Items != nil {
		if len(p.forms("", s.Items)) == 0 {
			add(p.about(s.Items, false)...)
		}
		add(fmt.Sprintf("A list of at most %d.", *s.MaxItems))
	}
	for _, alternative := range s.AnyOf {
		if len(alternative.Properties) == 0 && !said(words, alternative) {
			add(p.about(alternative, false)...)
		}
	}
	return words
}

// said reports whether the words of an alternative are in the text: "1ms to 24h, or none".
func said(words []string, alternative *jsonschema.Schema) bool {
	text := strings.Join(words, " ")
	return alternative.Enum != nil && !slices.ContainsFunc(alternative.Enum, func(w any) bool { return !strings.Contains(text, fmt.Sprint(w)) })
}

// byDefault is what holds without the key, as it would be written.
func (p *page) byDefault(s *jsonschema.Schema) (text string, ok bool) {
	for ; s != nil; s = definition(p.root, s) {
		if s.Default == nil {
			continue
		}
		if json.Unmarshal(s.Default, &text) == nil {
			return text, true
		}
		return string(s.Default), true
	}
	return "", false
}

// line writes a key with its comment, wrapped.
func (p *page) line(key, comment string) {
	column := max(commentColumn, len(key)+2)
	lines := wrap(comment, referenceWidth-column-len("# "))
	for i, text := range lines {
		if i > 0 {
			key = ""
		}
		fmt.Fprintf(&p.b, "%-*s# %s\n", column, key, text)
	}
	if len(lines) == 0 {
		p.b.WriteString(key + "\n")
	}
}

// prose writes a comment of its own.
func (p *page) prose(indent, text string) {
	for _, line := range wrap(text, referenceWidth-len(indent)-len("# ")) {
		p.b.WriteString(indent + "# " + line + "\n")
	}
}

// wrap breaks a text between words, into lines of at most width bytes where no word is longer.
func wrap(text string, width int) (lines []string) {
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
