// Package strictyaml reads the YAML files of the program, and is the only place
// that does. A file written by hand has typing errors, and an error that is
// passed over costs an outage: an objective that was spelled "objektive" would
// leave the default in force. So nothing is passed over. An unknown key, a missing
// one, a key given twice, a wrong type, a number out of range are errors, and all
// of them are reported at once, each with its line:
//
//	overload.yaml:4:12: objective "400" has no unit: write 400ms or 400s
//	    4 | objective: 400
//	      |            ^
//
// Whoever reads a file asks for what it knows: Map.Get, then a method of Node that
// says the type and the range. What nobody asked for is unknown. A read after an
// error returns the zero value and says nothing more, so that readers are straight
// lines without a branch for errors; File.Err has them all at the end.
//
// YAML has more than a configuration needs, and some of it is dangerous. Anchors,
// aliases, merge keys, tags, directives, complex keys and several documents are
// refused, each in one sentence: write the value out.
package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a file, checked before anything expensive is done with it.
const (
	MaxBytes = 1 << 20 // a scenario of 10,000 measured service times has 100 KB
	maxKeys  = 10_000  // the parser's time grows with the square: 0.4 s at this number
	maxDepth = 32      // the deepest that any file of ours nests is 7
)

// A File is a parsed file, with what was found wrong in it so far.
type File struct {
	name     string
	lines    [][]rune // columns count characters
	root     *tree
	names    map[string]string // of mappings that have one, by their path
	seen     []Node            // every value asked for, to attach sentences of others
	problems []Problem
	index    map[finding]int // where in problems it is
	said     int             // how often something was found wrong, the same again included
	belongs  func(key string) []string
}

// Belongs sets who knows where a key belongs that is in a mapping that does not know it: what
// was written one level too high or too low is no typing error.
func (f *File) Belongs(where func(key string) []string) { f.belongs = where }

// A finding is what makes two problems the same one: values that several readers share, as
// defaults are, are wrong once.
type finding struct {
	at       position
	sentence string
}

// Parse reads the syntax of a file. name is how its errors call it. The error is
// an *Errors: a file whose syntax is broken has nothing else to say. Keys that are
// given twice are errors of the File.
func Parse(name string, src []byte) (*File, error) {
	f := &File{name: name, names: map[string]string{}, index: map[finding]int{}}
	if tokens := f.scan(src); len(f.problems) == 0 {
		f.parse(tokens)
	}
	if f.root == nil || f.root.kind != mapping {
		return nil, f.Err()
	}
	return f, nil
}

// Root returns the mapping that the file is.
func (f *File) Root() *Map { return Node{f: f, tree: f.root}.Map() }

// Err returns what is wrong with the file as an *Errors in the order of lines, or
// nil.
func (f *File) Err() error {
	if len(f.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(f.problems, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	clear(f.index)
	return &Errors{File: f.name, Problems: f.problems, lines: f.lines}
}

// A position is a place in the file, counted from 1; the column in characters.
type position struct{ line, column int }

// maxKept bounds the memory that a hostile file takes with its errors.
const maxKept = 10_000

// fail adds a problem, unless it is there, and returns it, for what it contradicts.
func (f *File) fail(at position, format string, args ...any) *Problem {
	f.said++
	sentence := shorten(fmt.Sprintf(format, args...))
	if i, ok := f.index[finding{at, sentence}]; ok {
		return &f.problems[i]
	}
	if len(f.problems) == maxKept {
		return &Problem{} // nobody reads so far
	}
	f.index[finding{at, sentence}] = len(f.problems)
	f.problems = append(f.problems, Problem{Line: at.line, Column: at.column, Sentence: sentence})
	return &f.problems[len(f.problems)-1]
}

// A sentence quotes what the file says, which may be a megabyte. Of a long one the
// beginning and the end are kept: what is wrong, and what is wanted. The longest of
// our own, the keys of a scenario, has 500 bytes.
const (
	maxSentence = 1000
	keptAhead   = 600
	keptBehind  = 300
)

func shorten(sentence string) string {
	if len(sentence) <= maxSentence {
		return sentence
	}
	ahead, behind := sentence[:keptAhead], sentence[len(sentence)-keptBehind:]
	return strings.ToValidUTF8(ahead, "") + "..." + strings.ToValidUTF8(behind, "")
}

// Errors is all that is wrong with a file.
type Errors struct {
	File     string
	Problems []Problem // in the order of lines
	lines    [][]rune
}

// A Problem is one thing that is wrong, in one sentence.
type Problem struct {
	Line, Column int // from 1; the column in characters. 0: the file as a whole
	Sentence     string
	Other        []Place // what it contradicts
}

// A Place is a line and a column.
type Place struct{ Line, Column int }

// maxShown bounds what is printed: whoever has more errors has one error, made
// again and again.
const maxShown = 50

// Error returns every problem with its line and a caret below it.
func (e *Errors) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == maxShown {
			fmt.Fprintf(&b, "%s: %d more problems\n", e.File, len(e.Problems)-maxShown)
			break
		}
		if p.Line == 0 {
			fmt.Fprintf(&b, "%s: %s\n", e.File, p.Sentence)
			continue
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s\n", e.File, p.Line, p.Column, p.Sentence)
		e.excerpt(&b, p.Line, p.Column)
		for _, o := range p.Other {
			e.excerpt(&b, o.Line, o.Column)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maxExcerpt is the characters of a line that are shown around a caret.
const maxExcerpt = 100

func (e *Errors) excerpt(b *strings.Builder, line, column int) {
	if line > len(e.lines) {
		return
	}
	text, at := e.lines[line-1], max(column-1, 0)
	at = min(at, len(text))
	before, after := "", ""
	if from := at - maxExcerpt/2; from > 0 && len(text) > maxExcerpt {
		text, at, before = text[from:], at-from, "..."
	}
	if len(text) > maxExcerpt {
		text, after = text[:maxExcerpt], "..."
	}
	blank := make([]rune, at)
	for i := range blank {
		blank[i] = ' '
		switch {
		case text[i] == '\t':
			blank[i] = '\t' // as wide as above, whatever a tab is there
		case wide(text[i]):
			blank[i] = '\u3000' // a blank of two columns
		}
	}
	fmt.Fprintf(b, "%5d | %s%s%s\n      | %*s%s^\n", line, before, string(text), after, len(before), "", string(blank))
}

// wide reports whether a character takes two columns of a terminal, as those of
// Chinese, Japanese and Korean do, and pictures (Unicode Standard Annex 11, by
// blocks).
func wide(r rune) bool {
	for _, b := range [...][2]rune{
		{0x1100, 0x115f},
		{0x2e80, 0x303e},
		{0x3041, 0xa4cf},
		{0xac00, 0xd7a3},
		{0xf900, 0xfaff},
		{0xfe30, 0xfe6f},
		{0xff01, 0xff60},
		{0xffe0, 0xffe6},
		{0x1f300, 0x1f64f},
		{0x1f900, 0x1f9ff},
		{0x20000, 0x3fffd},
	} {
		if r >= b[0] && r <= b[1] {
			return true
		}
	}
	return false
}
