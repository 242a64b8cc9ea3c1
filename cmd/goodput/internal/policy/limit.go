package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/limit"
)

// A limit is a number, for a resource whose size is known, or a law that finds one,
// by its name or with its constants. In a file
//
//	limit: 60
//	limit: auto
//	limit: {law: auto, from: 50, min: 10, max: 200}
//	limit: {law: auto, shared: true}
//
// and on a command line, where braces and spaces would need quotes,
//
//	--limit 60
//	--limit auto
//	--limit auto:from=50,min=10,max=200
//	--limit auto:shared=true
//
// are the same: the second form is read as the first one.

// laws are those that find a limit, by their names. Each reads the constants that m has,
// and leaves the others at 0, which is their default.
var laws = []struct {
	name string
	read func(m *strictyaml.Map) limit.Law
}{
	{"auto", func(m *strictyaml.Map) limit.Law {
		var l limit.Auto
		units(m, &l.From, &l.Min, &l.Max)
		set(&l.Shared, m.Get("shared"), strictyaml.Node.Bool)
		return l
	}},
	{"aimd", func(m *strictyaml.Map) limit.Law {
		var l limit.AIMD
		units(m, &l.From, &l.Min, &l.Max)
		number(m, "backoff", &l.Backoff, 0.5, 0.99)
		spell(m, "timeout", &l.Timeout, shortest)
		spell(m, "window", &l.Window, lawWindow)
		return l
	}},
	{"vegas", func(m *strictyaml.Map) limit.Law {
		var l limit.Vegas
		units(m, &l.From, &l.Min, &l.Max)
		number(m, "alpha", &l.Alpha, 0.1, 100)
		number(m, "beta", &l.Beta, 0.1, 100)
		number(m, "smoothing", &l.Smoothing, 0.01, 1)
		whole(m, "probe", &l.Probe, 1)
		spell(m, "window", &l.Window, lawWindow)
		return l
	}},
	{"gradient2", func(m *strictyaml.Map) limit.Law {
		var l limit.Gradient2
		units(m, &l.From, &l.Min, &l.Max)
		whole(m, "queue", &l.Queue, 1)
		number(m, "tolerance", &l.Tolerance, 1, 100)
		number(m, "smoothing", &l.Smoothing, 0.01, 1)
		whole(m, "long", &l.Long, 10)
		number(m, "drift", &l.Drift, 0.1, 1)
		spell(m, "window", &l.Window, lawWindow)
		return l
	}},
}

// Ranges, in the words of package limit.
const (
	lawWindow = 100 * time.Millisecond // the shortest
	lawSpell  = time.Hour              // the longest
	lawWhole  = 1_000_000
)

// units reads what every law has.
func units(m *strictyaml.Map, from, low, high *int) {
	whole := func(n strictyaml.Node) int { return int(n.Whole(1, limit.Max)) }
	set(from, m.Get("from"), whole)
	set(low, m.Get("min"), whole)
	set(high, m.Get("max"), whole)
}

func number(m *strictyaml.Map, key string, field *float64, low, high float64) {
	set(field, m.Get(key), func(n strictyaml.Node) float64 { return n.Number(low, high) })
}

func whole(m *strictyaml.Map, key string, field *int, low int64) {
	set(field, m.Get(key), func(n strictyaml.Node) int { return int(n.Whole(low, lawWhole)) })
}

func spell(m *strictyaml.Map, key string, field *time.Duration, low time.Duration) {
	set(field, m.Get(key), func(n strictyaml.Node) time.Duration { return n.Span(low, lawSpell) })
}

// LawNames returns the names of the laws that find a limit.
func LawNames() []string {
	names := make([]string, len(laws))
	for i, l := range laws {
		names[i] = l.name
	}
	return names
}

// A law with a constant, as a file has it and as a flag has it.
const (
	inBraces   = "{law: auto, max: 200}"
	afterColon = "auto:max=200"
)

// ReadLimit returns the limit that n is, or nil if it cannot read it, which is then an
// error of the file.
func ReadLimit(n strictyaml.Node) limit.Law {
	names := LawNames()
	if !n.IsMap() {
		if i := slices.Index(names, n.Raw()); i >= 0 {
			return laws[i].read(n.Empty())
		}
		number := n.WholeOr(1, limit.Max, strings.Join(names, ", ")+", or one of these with its constants, such as "+inBraces)
		if number == 0 {
			return nil
		}
		return limit.Fixed(number)
	}
	m := n.Map()
	name := m.Need("law", "auto")
	i := name.Word(names...)
	if !m.Sound() {
		return nil // of which law the other keys are, nobody knows
	}
	law := laws[i].read(m)
	m.Done()
	if !m.Sound() {
		return nil
	}
	if _, err := law.Start(); err != nil {
		m.Blame(err.Error())
		return nil
	}
	return law
}

// A Limit is a limit on a command line.
type Limit struct {
	Law  limit.Law
	text string
}

// String returns the limit as it was given, or, of one that a file said, the law.
func (l Limit) String() string {
	if l.text == "" && l.Law != nil {
		return fmt.Sprint(l.Law)
	}
	return l.text
}

// Fixed returns the number that the limit is; 0 if a law finds it.
func (l Limit) Fixed() int { return Number(l.Law) }

// Number returns the number that a law is; 0 if it finds one.
func Number(law limit.Law) int {
	n, _ := law.(limit.Fixed)
	return int(n)
}

// maxFlag is longer than every constant of a law can make it.
const maxFlag = 200

// UnmarshalText parses "60", "auto" and "auto:from=50,max=200".
func (l *Limit) UnmarshalText(text []byte) error {
	value, err := inFile(string(text))
	if err != nil {
		return err
	}
	f, err := strictyaml.Parse("limit", []byte("limit: "+value))
	if err != nil {
		return first(err)
	}
	m := f.Root()
	law := ReadLimit(m.Get("limit"))
	m.Done()
	if err := f.Err(); err != nil {
		return first(err)
	}
	l.Law, l.text = law, string(text)
	return nil
}

// inFile returns what a file has for the text of a flag.
func inFile(text string) (string, error) {
	odd := strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.%+-:=,", r))
	})
	name, constants, has := strings.Cut(text, ":")
	if text == "" || odd || len(text) > maxFlag || !has && strings.ContainsAny(text, "=,") {
		return "", fmt.Errorf("%.60q is not a limit: a number such as 60, auto, or a law with its constants, such as %s", text, afterColon)
	}
	if !has {
		return text, nil
	}
	keys := []string{"law: " + name}
	for c := range strings.SplitSeq(constants, ",") {
		key, value, ok := strings.Cut(c, "=")
		if !ok || key == "" || value == "" || strings.ContainsAny(c, ":") {
			return "", fmt.Errorf("%q of %q is not a constant with a value, such as max=200", c, text)
		}
		keys = append(keys, key+": "+value)
	}
	return "{" + strings.Join(keys, ", ") + "}", nil
}

// first is the first sentence about a file that a flag was made to be, in the form of a
// flag. Whoever prints it begins with the name of that.
func first(err error) error {
	all := (*strictyaml.Errors)(nil)
	if !errors.As(err, &all) || len(all.Problems) == 0 {
		return err
	}
	sentence := strings.TrimPrefix(all.Problems[0].Sentence, "limit ")
	return errors.New(strings.Replace(sentence, inBraces, afterColon, 1))
}
