package scenario

import (
	"slices"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
)

// Load reads a scenario file; name is how its errors call it. The error is a
// *strictyaml.Errors with everything that is wrong.
func Load(name string, src []byte) (*File, error) { return loadWith(name, src, nil) }

// loadWith is Load with a policy in place of one of the file's.
func loadWith(name string, src []byte, instead *instead) (*File, error) {
	doc, err := strictyaml.Parse(name, src)
	if err != nil {
		return nil, err
	}
	r := &reader{root: doc.Root(), instead: instead}
	r.top()
	r.tiers()
	r.groups()
	r.classes()
	r.trace()
	r.services()
	if doc.Err() == nil {
		r.check(r.root, r.file.Sim)
	}
	r.valid = doc.Err() == nil
	r.compare()
	r.expect()
	r.root.Done()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return &r.file, nil
}

// A reader is what Load has found so far.
type reader struct {
	root     *strictyaml.Map
	file     File
	maps     []*strictyaml.Map // one per tier
	policies []policy.Policy   // of our core, one per tier; a baseline leaves its limit
	instead  *instead          // nil: every policy is the file's
	valid    bool              // without what is compared; otherwise only they would be blamed
}

// check attaches the sentence of Scenario.Validate to what it is about in m.
func (r *reader) check(m *strictyaml.Map, s sim.Scenario) {
	if len(r.file.Trace) > 0 {
		s.Trace = func(*sim.Job) bool { return false } // validation asks whether there is one
	}
	err := s.Validate()
	if err == nil {
		return
	}
	sentence := err.Error()
	if _, policy, ok := strings.Cut(sentence, "policy: "); ok && m != r.root {
		sentence = policy // of every tier
	}
	m.Blame(sentence)
}

// top reads what is neither of a tier nor of a class.
func (r *reader) top() {
	m, f := r.root, &r.file
	f.Version = int(m.Need("version", "1").Whole(1, 1))
	f.Name = word(m.Need("name", "overload-3x"), "_-.", "letters, digits, _, - and .")
	f.About = m.Get("about").Text(maxText)
	f.Rule = m.Get("rule").Text(maxText)
	f.Why = m.Get("why").Text(maxText)
	f.Seed, f.Repeat = 1, 1
	if n := m.Get("seed"); n.Present() {
		f.Seed = uint64(n.Whole(0, 1<<62))
	}
	if n := m.Get("repeat"); n.Present() {
		f.Repeat = int(n.Whole(1, maxRepeat))
	}
	f.Sim.Name = f.Name
	f.Sim.Length = m.Need("length", "60s").Span(1, month)
	f.Sim.Warmup = m.Get("warmup").Span(0, month)
	f.Sim.Bins = int(m.Get("bins").Whole(1, 2000))
}

// expect reads the criteria.
func (r *reader) expect() {
	for _, n := range r.root.Get("expect").List(maxExpect) {
		if c, ok := r.criterion(n); ok {
			r.file.Expect = append(r.file.Expect, c)
		}
	}
}

// label is a name that stands in tables and in criteria: no dots, no spaces.
func label(n strictyaml.Node) string { return word(n, "_-", "letters, digits, _ and -") }

// word is a text of letters, digits and signs; allowed says so in words.
func word(n strictyaml.Node, signs, allowed string) string {
	s := n.Text(maxName)
	odd := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(signs, c))
	}
	if strings.ContainsFunc(s, odd) {
		n.Fail("%s %q has other characters than %s", n.Name(), s, allowed)
		return ""
	}
	return s
}

func (r *reader) labels() []string {
	var names []string
	for _, c := range r.file.Compare {
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

func (r *reader) isCompared(name string) bool { return slices.Contains(r.labels(), name) }

// tierIndex and classIndex return -1 for a name that nothing has.
func (r *reader) tierIndex(name string) int {
	return slices.IndexFunc(r.file.Sim.Tiers, func(t sim.Tier) bool { return t.Name == name && name != "" })
}

func (r *reader) classIndex(name string) int {
	return slices.IndexFunc(r.file.Sim.Classes, func(c sim.Class) bool { return c.Name == name && name != "" })
}
