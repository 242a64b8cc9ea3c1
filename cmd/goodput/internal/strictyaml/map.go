package strictyaml

import "slices"

// A Map is a mapping that remembers what was asked of it.
type Map struct {
	node  Node
	known []string
	since int  // how many problems the file had when reading began
	under *Map // whose keys count where this one has none
}

// Map returns the value as a mapping; one without keys if it is none.
func (n Node) Map() *Map {
	if n.tree != nil && n.tree.kind != mapping {
		n.Fail("%s is %s: keys with values are wanted", n.name, n.tree.kind)
		n.tree = nil
	}
	return &Map{node: n, since: n.f.said}
}

// Over returns a mapping that has the keys of m and, of those that m has not, the ones of
// under: what one thing says, over what is said for all of them. Done is then about m; under
// is read, and done, by itself.
func (m *Map) Over(under *Map) *Map {
	return &Map{node: m.node, since: m.since, under: under}
}

// Has reports whether the mapping itself has a key, and asks for nothing.
func (m *Map) Has(name string) bool {
	return m.node.tree != nil && slices.ContainsFunc(m.node.tree.keys, func(k *key) bool { return k.name == name })
}

// Known returns the keys that were asked for, in that order.
func (m *Map) Known() []string { return slices.Clone(m.known) }

// Empty returns a mapping without keys that stands where the value stands, for
// what may be written with a mapping or without. Of keys that the value has nothing is read.
func (n Node) Empty() *Map {
	if n.tree != nil {
		bare := *n.tree
		bare.keys = nil
		n.tree = &bare
	}
	return &Map{node: n, since: n.f.said}
}

// List returns the items of a list of at most longest. Their errors call them by
// the name of the list.
func (n Node) List(longest int) []Node {
	switch {
	case n.tree == nil:
		return nil
	case n.tree.kind != list:
		n.Fail("%s is %s: a list is wanted", n.name, n.tree.kind)
		return nil
	case len(n.tree.items) == 0:
		n.Fail("%s is empty", n.name)
	case len(n.tree.items) > longest:
		n.Fail("%s has %d items, at most %d", n.name, len(n.tree.items), longest)
		return nil
	}
	items := make([]Node, len(n.tree.items))
	for i, t := range n.tree.items {
		items[i] = n.f.note(Node{n.f, t, n.name})
	}
	return items
}

// Node returns the mapping as a value, for a sentence about it.
func (m *Map) Node() Node { return m.node }

// Get returns the value of a key, absent if there is none.
func (m *Map) Get(name string) Node {
	n := Node{f: m.node.f, name: name}
	if !slices.Contains(m.known, name) {
		m.known = append(m.known, name)
	}
	if m.node.tree == nil {
		return n
	}
	for _, k := range m.node.tree.keys {
		if k.name == name {
			k.asked = true
			n.tree = k.value
			return m.node.f.note(n)
		}
	}
	if m.under != nil {
		return m.under.Get(name)
	}
	return n
}

// Need returns the value of a key and reports its absence.
func (m *Map) Need(name, example string) Node {
	n := m.Get(name)
	if n.tree == nil && m.node.tree != nil {
		m.node.Fail("%s is missing: for example %s: %s", name, name, example)
	}
	return n
}

// Keys returns the keys that are in the file, in its order, for mappings whose keys
// are names. Get says which of them are known.
func (m *Map) Keys() []string {
	if m.node.tree == nil {
		return nil
	}
	names := make([]string, len(m.node.tree.keys))
	for i, k := range m.node.tree.keys {
		names[i] = k.name
	}
	return names
}

// At returns the place of a key, for a sentence about the key itself.
func (m *Map) At(name string) Node {
	n := m.Get(name)
	if n.tree == nil {
		return n
	}
	for _, k := range m.node.tree.keys {
		if k.name == name {
			n.tree = &tree{at: k.at, path: n.tree.path}
		}
	}
	return n
}

// Done reports the keys that nobody asked for. It is called once, at the end.
func (m *Map) Done() {
	if m.node.tree == nil {
		return
	}
	for _, k := range m.node.tree.keys {
		if k.asked {
			continue
		}
		if where := m.node.f.whereElse(k.name); where != "" {
			m.node.f.fail(k.at, "%s is unknown here: it belongs to %s", k.name, where)
			continue
		}
		m.node.f.fail(k.at, "%s is unknown%s", k.name, Unknown(k.name, slices.Sorted(slices.Values(m.known))))
	}
}

// maxHomes is how many places a reader can choose from; a key that is in more of them says
// nothing about what was meant.
const maxHomes = 3

func (f *File) whereElse(key string) string {
	if f.belongs == nil {
		return ""
	}
	homes := f.belongs(key)
	if len(homes) > maxHomes {
		return ""
	}
	return Either(homes)
}

// Sound reports whether nothing wrong was found since the mapping was asked for:
// only then is it worth while to look for contradictions in it.
func (m *Map) Sound() bool { return m.node.f.said == m.since }

func (f *File) note(n Node) Node {
	f.seen = append(f.seen, n)
	return n
}
