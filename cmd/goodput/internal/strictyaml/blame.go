package strictyaml

import (
	"slices"
	"strings"
	"unicode"
)

// Blame adds a sentence that somebody else found, such as a Validate, to the values
// below m that it is about: the value whose path shares most words with it, and of
// those the one named first. A second value of the same mapping that is named too
// is shown as what the first contradicts.
//
// A path is keys, and for an item of a list its name, as in `tier "db": slots`,
// or, without one, its number from 1, as in "restart 2: at". Plural and singular
// are the same word.
func (m *Map) Blame(sentence string) {
	words := split(sentence)
	var best Node
	var most score
	for _, n := range m.node.f.seen {
		if s := m.match(n, words); s.better(most) {
			best, most = n, s
		}
	}
	if best.tree == nil {
		m.node.Fail("%s", sentence)
		return
	}
	var other Node
	var least score
	for _, n := range m.node.f.seen {
		s := m.match(n, words)
		sibling := s.last > 0 && n.tree != best.tree && slices.Equal(m.parent(n), m.parent(best))
		if sibling && (least.last == 0 || s.at < least.at) {
			other, least = n, s
		}
	}
	best.Clash(other, "%s", sentence)
}

// A score is how well a path fits a sentence.
type score struct {
	last  int // words of the last key: without them the value is not meant
	total int // words of all of the path
	depth int
	at    int // where the last key is named: the earlier, the better
}

func (s score) better(o score) bool {
	switch {
	case s.last == 0:
		return false
	case s.total != o.total:
		return s.total > o.total
	case s.at != o.at:
		return s.at < o.at
	}
	return s.depth < o.depth
}

// match scores a value below m, or below what is under m where m has no such key.
func (m *Map) match(v Node, words []string) score {
	if m.under != nil && m.under.node.holds(v) && !m.Has(v.tree.path[len(m.under.node.tree.path)]) {
		return m.under.node.match(v, words)
	}
	return m.node.match(v, words)
}

// parent is the path of what holds v, which is below m, from m or from what is under it.
func (m *Map) parent(v Node) []string {
	base := m.node
	if m.under != nil && m.under.node.holds(v) {
		base = m.under.node
	}
	return v.tree.path[len(base.tree.path) : len(v.tree.path)-1]
}

// holds reports whether v is below n.
func (n Node) holds(v Node) bool {
	return n.tree != nil && v.tree != nil && len(v.tree.path) > len(n.tree.path) &&
		slices.Equal(v.tree.path[:len(n.tree.path)], n.tree.path)
}

// match scores a value below n; a value elsewhere scores nothing.
func (n Node) match(v Node, words []string) (s score) {
	if !n.holds(v) {
		return s
	}
	base := len(n.tree.path)
	s.depth = len(v.tree.path) - base
	from := 0 // the words of a path follow one another
	for i, p := range v.tree.path[base:] {
		if name := n.f.names[strings.Join(v.tree.path[:base+i+1], ".")]; name != "" {
			p = name
		}
		parts := split(p)
		at := find(words, parts, from)
		if at < 0 {
			continue
		}
		from = at + len(parts)
		s.total += len(parts)
		if i == s.depth-1 {
			s.last, s.at = len(parts), at
		}
	}
	return s
}

// split returns the words of a text in lower case, without the ending of a plural:
// restart and restarts are alike, and so are class and classes.
func split(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for i, w := range words {
		if stem := strings.TrimRight(w, "es"); stem != "" {
			words[i] = stem
		}
	}
	return words
}

// find returns where parts are in words, one after the other, or -1.
func find(words, parts []string, from int) int {
	for i := from; len(parts) > 0 && i+len(parts) <= len(words); i++ {
		if slices.Equal(words[i:i+len(parts)], parts) {
			return i
		}
	}
	return -1
}
