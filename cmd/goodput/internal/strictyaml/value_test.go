package strictyaml

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// get parses "a: text" and returns a.
func get(t *testing.T, text string) (*File, Node) {
	t.Helper()
	f, err := Parse("f", []byte("a: "+text+"\n"))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return f, f.Root().Get("a")
}

// Each kind of value takes what it says and nothing beside it.
func TestValues(t *testing.T) {
	whole := func(n Node) any { return n.Whole(1, 1000) }
	number := func(n Node) any { return n.Number(0, 10) }
	span := func(n Node) any { return n.Span(time.Millisecond, Day) }
	size := func(n Node) any { return n.Size() }
	boolean := func(n Node) any { return n.Bool() }
	word := func(n Node) any { return n.Word("leaves", "vanishes", "stays") }
	text := func(n Node) any { return n.Text(8) }
	or := func(n Node) any { return n.WholeOr(1, 9, "none or derived") }
	part := func(n Node) any { return n.Part(0.01) }
	rate := func(n Node) any { return n.Rate(0.5, 100) }
	for _, c := range []struct {
		kind func(Node) any
		text string
		want any    // or
		says string // an error with this in it
	}{
		{part, "0.2", 0.2, ""},
		{part, "20%", 0.2, ""},
		{part, "100%", 1.0, ""},
		{part, "1%", 0.01, ""},
		{part, "0.5%", nil, `a "0.5%" is not a part of 0.01 to 1, such as 0.2 or 20%`},
		{part, "101%", nil, "is not a part"},
		{part, ".nan", nil, "is not a part"},
		{part, "20 %", nil, "is not a part"},
		{part, "'20%'", nil, "is text"},
		{part, "0x1p-2", nil, "is not a part"},
		{rate, "30/min", 0.5, ""},
		{rate, "100/s", 100.0, ""},
		{rate, "29/min", nil, `a "29/min" is out of range: 0.5/s to 1e+02/s`},
		{rate, "101/s", nil, "is out of range"},
		{rate, "100", nil, "is not a rate"},
		{rate, ".nan/s", nil, "is not a rate"},
		{whole, "1", int64(1), ""},
		{whole, "1000", int64(1000), ""},
		{whole, "+7", int64(7), ""},
		{whole, "0", nil, `a "0" is not a whole number of 1 to 1000`},
		{whole, "017", nil, `a "017" begins with 0, which some take for octal: a whole number of 1 to 1000 is wanted`},
		{whole, "1001", nil, `a "1001" is not a whole number of 1 to 1000`},
		{whole, "1.0", nil, `a "1.0" is not a whole number`},
		{whole, "1e2", nil, `a "1e2" is not a whole number`},
		{whole, "0x10", nil, `a "0x10" is not a whole number`},
		{whole, "1_0", nil, `a "1_0" is not a whole number`},
		{whole, "99999999999999999999", nil, "is not a whole number"},
		{whole, "'1'", nil, `a "1" is text: a whole number of 1 to 1000 is wanted, without quotes`},
		{whole, "true", nil, "is not a whole number"},
		{or, "10", nil, `a "10" is not a whole number of 1 to 9, none or derived`},

		{number, "0", 0.0, ""},
		{number, "0.5", 0.5, ""},
		{number, "1e-3", 0.001, ""},
		{number, ".5", 0.5, ""},
		{number, "10.1", nil, `a "10.1" is not a number of 0 to 10`},
		{number, ".nan", nil, "is not a number"},
		{number, "nan", nil, "is not a number"},
		{number, ".inf", nil, "is not a number"},
		{number, "inf", nil, "is not a number"},
		{number, "0x1p-2", nil, "is not a number"},
		{number, "50%", nil, "is not a number"},

		{span, "400ms", 400 * time.Millisecond, ""},
		{span, "1m30s", 90 * time.Second, ""},
		{span, "'2s'", 2 * time.Second, ""},
		{span, "0.5s", 500 * time.Millisecond, ""},
		{span, "24h", Day, ""},
		{span, "400", nil, `a "400" has no unit: write 400ms or 400s`},
		{span, "0", nil, `a "0" is not a duration of 1ms to 24h`},
		{span, "999us", nil, "is not a duration of 1ms to 24h"},
		{span, "25h", nil, "is not a duration"},
		{span, "-1s", nil, "is not a duration"},
		{span, "1d", nil, "is not a duration"},
		{span, "1 s", nil, "is not a duration"},

		{size, "64MiB", int64(64 << 20), ""},
		{size, "4096", int64(4096), ""},
		{size, "1.5kB", int64(1500), ""},
		{size, "0", nil, "is not a size of 1B"},
		{size, "64mb", nil, "is not a size"},

		{boolean, "true", true, ""},
		{boolean, "false", false, ""},
		{boolean, "yes", nil, `a "yes" is neither true nor false`},
		{boolean, "True", nil, "neither true nor false"},
		{boolean, "1", nil, "neither true nor false"},
		{boolean, "'true'", nil, "is text: true or false is wanted, without quotes"},

		{word, "stays", 2, ""},
		{word, "'leaves'", 0, ""},
		{word, "Stays", nil, `a "Stays" is unknown, did you mean stays?`},
		{word, "goes", nil, `a "goes" is unknown: leaves, vanishes or stays`},

		{text, "hello", "hello", ""},
		{text, "12", "12", ""},
		{text, "' a '", "a", ""},
		{text, "''", nil, "a is empty"},
		{text, "123456789", nil, "a has 9 bytes, at most 8"},
		{text, "", nil, "a has no value: text is wanted"},
		{text, "~", nil, "a has no value"},
		{text, "[a]", nil, "a is a list: text is wanted"},
	} {
		f, n := get(t, c.text)
		got := c.kind(n)
		switch err := f.Err(); {
		case c.says == "" && (err != nil || got != c.want):
			t.Errorf("%q is %v, %v, want %v", c.text, got, err, c.want)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%q is %v and says %v, want %s", c.text, got, err, c.says)
		case c.says != "" && strings.Count(err.Error(), "f:") != 1:
			t.Errorf("%q says more than one thing:\n%v", c.text, err)
		}
	}
}

// What is not there is the zero value of everything, and no error.
func TestAbsent(t *testing.T) {
	f, _ := get(t, "1")
	n := f.Root().Get("b")
	zero := n.Whole(5, 9) == 0 && n.Number(5, 9) == 0 && n.Span(1, 9) == 0 && n.Size() == 0 && !n.Bool() &&
		n.Word("x", "y") == 0 && n.Text(9) == "" && n.List(9) == nil && len(n.Map().Keys()) == 0 && n.Raw() == "" &&
		!n.Present() && !n.IsMap() && !n.IsList() && !n.IsText()
	m := n.Map()
	m.Need("c", "1").Map().Done()
	m.Done()
	n.Fail("nothing")
	if !zero || f.Err() != nil {
		t.Errorf("something is said about nothing: %v", f.Err())
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]float64{
		"1200/s": 1200, "0.5/s": 0.5, "90/min": 1.5, "3600/h": 1, "0/s": 0, "1e3/s": 1000, "1000000000/s": 1e9,
		"1200": -1, "/s": -1, "-1/s": -1, "nan/s": -1, "inf/s": -1, "2000000000/s": -1, "5/d": -1, "5 per s": -1, "": -1,
	} {
		v, err := ParseRate(text)
		if want < 0 {
			if err == nil || !strings.Contains(err.Error(), "is not a rate, such as 1200/s") {
				t.Errorf("%q is %v, %v", text, v, err)
			}
		} else if err != nil || math.Abs(v-want) > 1e-12 {
			t.Errorf("%q is %v, %v, want %v", text, v, err, want)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		Day: "24h", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour + time.Minute: "1h1m", 0: "0s",
		20 * time.Hour: "20h", 10 * time.Minute: "10m", 400 * time.Millisecond: "400ms", 20 * time.Second: "20s",
	} {
		if got := Short(d); got != want {
			t.Errorf("%d is %s, want %s", d, got, want)
		}
		if back, err := time.ParseDuration(Short(d)); err != nil || back != d {
			t.Errorf("%s is not %v", Short(d), d)
		}
	}
}

func TestUnknown(t *testing.T) {
	known := []string{"deadline", "deadline_cap", "limit", "max_queue_bytes", "max_wait", "objective", "order"}
	for word, want := range map[string]string{
		"objektive": ", did you mean objective?",
		"Objective": ", did you mean objective?",
		"obejctive": ", did you mean objective?",
		"limits":    ", did you mean limit?",
		"limt":      ", did you mean limit?",
		"odrer":     ", did you mean order?",
		"max_bytes": ", did you mean max_queue_bytes?",
		"max_waits": ", did you mean max_wait?",
		"color":     ": deadline, deadline_cap, limit, max_queue_bytes, max_wait, objective or order",
		"":          ": deadline, deadline_cap, limit, max_queue_bytes, max_wait, objective or order",
	} {
		if got := Unknown(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// distance is a metric up to one swap, and that of a dumb recursion.
func TestDistance(t *testing.T) {
	words := []string{"", "a", "ab", "ba", "abc", "acb", "bca", "limit", "limti", "lmiit", "time"}
	for _, a := range words {
		for _, b := range words {
			if got, want := distance(a, b), dumb(a, b); got != want || got != distance(b, a) {
				t.Errorf("%q to %q is %d, want %d", a, b, got, want)
			}
		}
	}
	if d := distance(strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20)); d != math.MaxInt {
		t.Errorf("two long words are %d apart", d)
	}
}

func dumb(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	cost := 1
	if a[0] == b[0] {
		cost = 0
	}
	d := min(dumb(a[1:], b)+1, dumb(a, b[1:])+1, dumb(a[1:], b[1:])+cost)
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		d = min(d, dumb(a[2:], b[2:])+1)
	}
	return d
}

// A sentence of somebody else stands at the value that it is about.
func TestBlame(t *testing.T) {
	src := `limit: 60
service: 3s
objective: 2s
max_wait: 1s
tiers:
  - name: api
    slots: 3
    restarts:
      - {at: 5s, cold: 2}
      - {at: 3s, cold: 1}
  - name: db
    slots: 4
    policy: {limit: 7}
`
	for _, c := range []struct {
		sentence string
		lines    []int // of the value, and of what it contradicts
	}{
		{"service 3s is longer than objective 2s: nothing could meet it", []int{2, 3}},
		{"objective 2s is out of range", []int{3}},
		{"max wait 1s is out of range", []int{4}},
		{`tier "db": slots 4 is out of range`, []int{12}},
		{`tier "api": slots 3 is out of range`, []int{7}},
		{`tier "api": restart 2: at 3s comes before the one before it, 5s`, []int{10}},
		{`tier "db": policy: limit 7 is out of range`, []int{13}},
		{`limit 60 is out of range`, []int{1}},
		{"the weather is bad", []int{1}}, // nothing is meant: the mapping
	} {
		f, err := Parse("f", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		m := f.Root()
		for _, key := range m.Keys() {
			m.Get(key)
		}
		for _, n := range m.Get("tiers").List(9) {
			tier := n.Map()
			for _, key := range tier.Keys() {
				tier.Get(key)
			}
			for _, n := range tier.Get("restarts").List(9) {
				r := n.Map()
				r.Get("at")
				r.Get("cold")
			}
			tier.Get("policy").Map().Get("limit")
		}
		m.Blame(c.sentence)
		p := f.problems[0]
		lines := []int{p.Line}
		for _, o := range p.Other {
			lines = append(lines, o.Line)
		}
		if len(f.problems) != 1 || p.Sentence != c.sentence || !slices.Equal(lines, c.lines) {
			t.Errorf("%q stands at %v, want %v", c.sentence, lines, c.lines)
		}
	}
}

// What a mapping says over another one: its own keys first, sentences where the value is
// that counts, and what both readers find wrong is said once.
func TestOver(t *testing.T) {
	src := `defaults:
  objective: 2s
  service: 1s
  depth: x
classes:
  - service: 3s
  - objective: 4s
`
	f, err := Parse("f", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	m := f.Root()
	under := m.Get("defaults").Map()
	read := func(m *Map) (service, objective time.Duration) {
		m.Get("depth").Whole(1, 9)
		return m.Get("service").Span(1, Day), m.Get("objective").Span(1, Day)
	}
	read(under)
	under.Done()
	list := m.Get("classes").List(9)
	first, second := list[0].Map().Over(under), list[1].Map().Over(under)
	if s, o := read(first); s != 3*time.Second || o != 2*time.Second || first.Sound() || first.Has("objective") || !first.Has("service") {
		t.Errorf("%v, %v, sound %v", s, o, first.Sound())
	}
	first.Done()
	if s, o := read(second); s != time.Second || o != 4*time.Second {
		t.Errorf("%v, %v", s, o)
	}
	second.Done()
	first.Blame("service 3s is longer than objective 2s")
	second.Blame("service 1s is not objective 4s")
	second.Blame("service 1s is not objective 4s")
	m.Done()
	got := ""
	for _, p := range f.problems {
		got += p.Sentence
		for _, o := range append([]Place{{p.Line, p.Column}}, p.Other...) {
			got += "," + strconv.Itoa(o.Line)
		}
		got += ";"
	}
	want := `depth "x" is not a whole number of 1 to 9,4;` + // once, of three that read it
		"service 3s is longer than objective 2s,6,2;service 1s is not objective 4s,3,7;"
	if known := strings.Join(first.Known(), " "); got != want || known != "depth service objective" {
		t.Errorf("%s, want\n%s; known %s", got, want, known)
	}
}
