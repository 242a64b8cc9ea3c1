package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"

	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// Bounds of a file. Each class, upstream and listener has metrics of its own, so that none
// of them may come in any number.
const (
	maxListeners = 16
	maxUpstreams = 64
	maxServers   = 256
	maxClasses   = 64
	maxList      = 64 // what else a person lists: paths, hosts, headers
	maxName      = 64
	maxText      = 1024 // a URL, a path, the name of a file
	maxProxies   = 1024 // the ranges of a large network of balancers are some hundred

	// MaxProcesses is more than anybody runs of one sidecar before one service.
	MaxProcesses = 4096
)

// Read reads a policy file. name is how errors call it; the error is a
// *strictyaml.Errors with a sentence, a line and a caret for each thing that is wrong, and
// then there is no Config. Files that it names are not looked at: see ReadAll.
func Read(name string, src []byte) (*Config, error) {
	r, _, err := read(name, src)
	if err != nil {
		return nil, err
	}
	return r.cfg, nil
}

// read is Read for those that have more to say about the file.
func read(name string, src []byte) (*reader, *strictyaml.File, error) {
	f, err := strictyaml.Parse(name, src)
	if err != nil {
		return nil, nil, err
	}
	var index map[string][]string // made for a file that has something wrong
	f.Belongs(func(key string) []string {
		if index == nil {
			index = homes()
		}
		return index[key]
	})
	sum := sha256.Sum256(src)
	r := &reader{
		root: f.Root(),
		cfg:  &Config{Source: name, SHA256: hex.EncodeToString(sum[:]), Processes: 1},
	}
	r.read()
	if err := f.Err(); err != nil {
		return nil, nil, err
	}
	if err := r.cfg.Validate(); err != nil { // what a contradiction should have said
		r.root.Blame(err.Error())
		return nil, nil, f.Err()
	}
	return r, f, nil
}

// A reader makes a Config, and remembers where in the file its parts stand.
type reader struct {
	root      *strictyaml.Map
	cfg       *Config
	listening []*strictyaml.Map // of cfg.Listeners
	behind    []strictyaml.Node // of cfg.Upstreams
	classes   []*classAt        // of cfg.Classes
}

func (r *reader) read() {
	m := r.root
	m.Need("version", "1").Whole(1, 1)
	r.listen(m.Get("listen"))
	r.upstreams()
	r.cfg.TrustedProxies = networks(m.Get("trusted_proxies"))
	set(&r.cfg.Processes, m.Get("processes"), func(n strictyaml.Node) int { return int(n.Whole(1, MaxProcesses)) })
	defaults := m.Get("defaults")
	if list := m.Get("classes"); list.Present() {
		r.several(list, defaults.Map())
	} else {
		r.single()
	}
	m.Done()
	for _, k := range r.classes {
		r.contradictions(k)
		r.cfg.Classes = append(r.cfg.Classes, *k.Class)
	}
	r.among()
}

// single reads a file without classes: it is the one class that there is.
func (r *reader) single() {
	for _, key := range having(r.root, "match", "defaults") {
		r.root.At(key).Fail("%s needs classes: without them the file is one class, which has every request", key)
	}
	r.class(r.root, DefaultName)
}

// several reads the classes, over what they have in common.
func (r *reader) several(list strictyaml.Node, defaults *strictyaml.Map) {
	for _, key := range having(defaults, "name", "match") {
		defaults.At(key).Fail("%s is what tells a class from the others: it has no default", key)
	}
	r.part(defaults, &Class{})
	defaults.Done()
	for _, key := range defaults.Known() {
		if r.root.Has(key) && key != "upstream" {
			r.root.At(key).Clash(list, "%s stands beside classes: put it under defaults, for all of them, or into one", key)
		}
	}
	for _, n := range list.List(maxClasses) {
		m := n.Map().Over(defaults)
		r.class(m, label(m.Need("name", "search")))
		m.Done()
	}
}

// having returns those of the keys that a mapping has; to ask for one would make it known.
func having(m *strictyaml.Map, keys ...string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { return !m.Has(key) })
}

// networks reads addresses and ranges of them.
func networks(n strictyaml.Node) (all []netip.Prefix) {
	for _, n := range n.List(maxProxies) {
		if p, ok := network(n); ok {
			all = append(all, p)
		}
	}
	return all
}

func network(n strictyaml.Node) (p netip.Prefix, ok bool) {
	text := n.Text(maxText)
	if text == "" {
		return p, false
	}
	var f flags.Network
	if err := f.UnmarshalText([]byte(text)); err != nil {
		n.Fail("%s %v", n.Name(), err)
		return p, false
	}
	return netip.Prefix(f).Masked(), true
}

// items returns the values of what may be one or a list.
func items(n strictyaml.Node) []strictyaml.Node {
	if n.IsList() {
		return n.List(maxList)
	}
	if n.Present() {
		return []strictyaml.Node{n}
	}
	return nil
}

// words reads one word or a list of them, each once.
func words(n strictyaml.Node, known ...string) []string {
	var all []string
	for _, n := range items(n) {
		w := known[n.Word(known...)]
		if n.Raw() != w {
			continue // reported
		}
		if slices.Contains(all, w) {
			n.Fail("%s has %s twice", n.Name(), w)
		}
		all = append(all, w)
	}
	return all
}

func set[T any](field *T, n strictyaml.Node, read func(strictyaml.Node) T) {
	if n.Present() {
		*field = read(n)
	}
}
