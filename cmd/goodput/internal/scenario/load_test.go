package scenario

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

func load(t *testing.T, name string) *File {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Load(name, src)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return f
}

// A short file means what it says.
func TestShortForm(t *testing.T) {
	f := load(t, "overload.yaml")
	cfg := admission.Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond}
	want := sim.Scenario{
		Name: "overload-3x", Length: time.Minute, Warmup: 5 * time.Second,
		Tiers: []sim.Tier{{
			Name: "main", Policy: sim.Policy{Name: "goodput", Core: &cfg}, Objective: 400 * time.Millisecond,
			Service: sim.Dist{Kind: sim.Exponential, Mean: 50 * time.Millisecond},
		}},
		Classes: []sim.Class{{
			Name:      "all",
			Arrivals:  sim.Arrivals{Rate: 3600}, // 3 x 60 slots / 50 ms
			Deadlines: []sim.Deadline{{After: 2 * time.Second, Share: 1}},
		}},
	}
	if !reflect.DeepEqual(f.Sim, want) {
		t.Errorf("the scenario is\n%+v, want\n%+v", f.Sim, want)
	}
	if f.Seed != 1 || f.Repeat != 1 || !slices.Equal(f.Seeds(), []uint64{1}) {
		t.Errorf("seed %d, %d times: %v", f.Seed, f.Repeat, f.Seeds())
	}
	fifo := f.Compare[1].Tiers[0]
	// The rule of thumb: 60 / 50 ms x 400 ms = 480.
	if want := (sim.Baseline{Limit: 60, Depth: 480}); fifo.Name != "fifo" || *fifo.Baseline != want {
		t.Errorf("fifo is %q %+v, want %+v", fifo.Name, *fifo.Baseline, want)
	}
	if b := f.Compare[4].Tiers[0].Baseline; b.Limit != sim.Unbounded {
		t.Errorf("none has a limit of %d", b.Limit)
	}
}

// The long form with the same content is the same file.
func TestLongForm(t *testing.T) {
	short, long := load(t, "overload.yaml"), load(t, "overload-long.yaml")
	for i := range short.Expect { // functions are not comparable
		short.Expect[i].read, long.Expect[i].read = nil, nil
	}
	if !reflect.DeepEqual(short, long) {
		t.Errorf("short:\n%+v\nlong:\n%+v", short, long)
	}
}

// Every exported field that a scenario is made of can be set from a file: the one
// that has every key sets each of them somewhere.
func TestEveryField(t *testing.T) {
	f := load(t, "everything.yaml")
	set, all := map[string]bool{}, map[string]bool{}
	f.Unjudged = 1 // it is no key: LoadFor counts it
	walk(reflect.ValueOf(*f), set, all)
	for i := range f.Compare {
		walk(reflect.ValueOf(f.Play(i)), set, all)
	}
	delete(all, "admission.Config.Seed") // a run gives each instance its own
	delete(all, "sim.Baseline.Law")      // what others do with a law is played by the suite alone
	delete(all, "sim.Tier.Absences")     // no baseline has a word for them: tests of the simulator play them
	delete(all, "admission.Config.MaxAbsence")
	for field := range all {
		if !set[field] {
			t.Errorf("%s is not set by everything.yaml", field)
		}
	}
	if len(all) < 90 {
		t.Errorf("only %d fields were looked at: %v", len(all), all)
	}
}

// walk notes the exported fields of every struct of ours below v, and those that
// are not zero.
func walk(v reflect.Value, set, all map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem(), set, all)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), set, all)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			name := v.Type().String() + "." + field.Name
			all[name] = true
			set[name] = set[name] || !v.Field(i).IsZero()
			walk(v.Field(i), set, all)
		}
	}
}

// Every key that a reader knows is in everything.yaml, so that its comments are
// complete.
func TestEveryKeyIsExplained(t *testing.T) {
	src, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Concat(tierKeys, classKeys, sim.Baselines[:1], []string{
		"trace", "compare", "expect", "label", "fixed", "exponential", "lognormal", "pareto", "modes", "empirical",
		"poisson", "unbounded", "derived", "displace", "refuse_newest", "block", "newest_first", "vanishes", "leaves",
		"sheddable", "background", "latest_only", "fresh", "zipf", "uncorrected", "max_in_use", "quota", "highest", "buckets", "durable",
	}) {
		if !strings.Contains(string(src), key) {
			t.Errorf("everything.yaml does not have %s", key)
		}
	}
}

// A policy that is compared differs in what it says and in nothing else; the
// tiers of the file are left alone.
func TestPlay(t *testing.T) {
	f := load(t, "everything.yaml")
	twice := f.Play(slices.IndexFunc(f.Compare, func(c Compared) bool { return c.Name == "twice" }))
	cfg, own := *twice.Tiers[0].Policy.Core, *f.Sim.Tiers[0].Policy.Core
	if cfg.Limit != limit.Fixed(120) || cfg.Depth != 0 {
		t.Errorf("twice has limit %v and depth %d", cfg.Limit, cfg.Depth)
	}
	if own.Limit != limit.Fixed(60) || own.Depth != 480 {
		t.Errorf("the file's own policy became limit %v, depth %d", own.Limit, own.Depth)
	}
	cfg.Limit, cfg.Depth = own.Limit, own.Depth
	if cfg != own {
		t.Errorf("twice differs in more: %+v, %+v", cfg, own)
	}
	for i := range 2 { // every play has the whole trace
		var jobs []sim.Job
		for j := (sim.Job{}); twice.Trace(&j); {
			jobs = append(jobs, j)
		}
		if !reflect.DeepEqual(jobs, f.Trace) {
			t.Errorf("play %d: the trace is %+v", i, jobs)
		}
		twice = f.Play(0)
	}
}

// The deadlines of the policy are those that serve gives: a default for requests
// that bring none, a cap for all.
func TestPolicyDeadlines(t *testing.T) {
	for _, c := range []struct {
		policy, class string
		want          time.Duration
	}{
		{"", "", 0},
		{"", "deadline: 3s", 3 * time.Second},
		{", deadline: 1s", "", time.Second},
		{", deadline: 1s", "deadline: 3s", 3 * time.Second},
		{", deadline_cap: 2s", "deadline: 3s", 2 * time.Second},
		{", deadline_cap: 2s", "deadline: 1s", time.Second},
		{", deadline_cap: 2s", "", 2 * time.Second},
		{", deadline: 1s, deadline_cap: 2s", "", time.Second},
		{", deadline: 1s", "untold: true", 0},
		{", deadline_cap: 2s", "{deadline: 3s, untold: true}", 3 * time.Second},
	} {
		class := strings.NewReplacer("{", "", "}", "", ", ", "\n").Replace(c.class)
		f, err := Load("x.yaml", []byte("version: 1\nname: x\nlength: 1s\nservice: 50ms fixed\nload: 1x\npolicy: {limit: 6"+c.policy+"}\n"+class+"\n"))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		var got time.Duration
		for _, d := range f.Sim.Classes[0].Deadlines {
			got = d.After
		}
		if got != c.want {
			t.Errorf("policy%s, class {%s}: deadline %v, want %v", c.policy, c.class, got, c.want)
		}
	}
}

// What the capacity is that a load of 1x is measured by: slots / mean service.
func TestCapacity(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64
	}{
		{"policy: {limit: 60}\nservice: 50ms exponential", 1200},
		{"policy: {limit: 60}\nservice: 50ms lognormal 2", 1200},
		{"policy: {limit: 60}\nservice: 50ms pareto 2.5", 1200},
		{"policy: {limit: 60}\nservice: {modes: [{value: 10ms, share: 3}, {value: 170ms, share: 1}]}", 1200},
		{"policy: {limit: 60}\nservice: {empirical: [40ms, 60ms]}", 1200},
		{"policy: {limit: 60}\ninstances: 2\nservice: 50ms fixed", 2400},
		{"policy: {limit: 60}\ninstances: 2\nslots: 30\nservice: 50ms fixed", 600},
		{"policy: {limit: 60}\nslots: 90\nservice: 50ms fixed", 1200},
		{"policy: {limit: 60}\ncost: 7\nservice: 50ms fixed", 160}, // 8 of them fit
		{"policy: {limit: 60}\nsize: 3\nservice: 50ms fixed", 400},
		{"policy: {limit: 60}\nsize: [{units: 1, share: 3}, {units: 9, share: 1}]\nservice: 50ms fixed", 400},
		{"policy: {baseline: fifo, limit: 60}\nservice: 50ms fixed", 1200},
		{"policy: {baseline: none}\nslots: 60\nservice: 50ms fixed", 1200},
	} {
		f, err := Load("f", []byte("version: 1\nname: x\nlength: 1s\nload: 1x\n"+c.text+"\n"))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if got := f.Sim.Classes[0].Arrivals.Rate; math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%s\nis %v/s, want %v/s", c.text, got, c.want)
		}
	}
}

// Every word of the file is the constant of the same meaning.
func TestWords(t *testing.T) {
	words := func(line string, read func(*File) any, want map[string]any) {
		for word, v := range want {
			f, err := Load("f", []byte("version: 1\nname: x\nlength: 1s\nservice: 1ms fixed\npolicy: {limit: 1}\n"+strings.ReplaceAll(line, "WORD", word)+"\n"))
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			if got := read(f); got != v {
				t.Errorf("%s of %q is %v, want %v", word, line, got, v)
			}
		}
	}
	class := func(read func(sim.Class) any) func(*File) any {
		return func(f *File) any { return read(f.Sim.Classes[0]) }
	}
	words("load: 1x\npatience: WORD", class(func(c sim.Class) any { return c.Patience }), map[string]any{
		"leaves": sim.Leaves, "vanishes": sim.Vanishes, "stays": sim.Stays,
	})
	words("load: 1x\npriority: WORD", class(func(c sim.Class) any { return c.Priority }), map[string]any{
		"critical": admission.Critical, "default": admission.Default, "sheddable": admission.Sheddable, "background": admission.Background,
	})
	words("load: {rate: 1x, process: WORD}", class(func(c sim.Class) any { return c.Arrivals.Process }), map[string]any{
		"poisson": sim.Poisson, "constant": sim.Constant,
	})
	words("load: 1x\ncompare: [{codel: {order: WORD}}]", func(f *File) any { return f.Compare[0].Tiers[0].Baseline.Order }, map[string]any{
		"fifo": sim.FIFO, "lifo": sim.LIFO, "edf": sim.EDF, "adaptive": sim.Adaptive,
	})
	words("load: 1x\ncompare: [{fifo: {depth: WORD}}]", func(f *File) any { return f.Compare[0].Tiers[0].Baseline.Depth }, map[string]any{
		"none": 0, "unbounded": sim.Unbounded, "7": 7,
	})
	words("load: 1x\ncompare: [{fifo: {limit: WORD}}]", func(f *File) any { return f.Compare[0].Tiers[0].Baseline.Limit }, map[string]any{
		"unbounded": sim.Unbounded, "7": 7,
	})
	words("load: 1x\nretry: {attempts: 2, budget: WORD}", class(func(c sim.Class) any { return c.Retry.Budget }), map[string]any{
		"0": sim.Budget{}, "0.2": sim.Budget{Ratio: 0.2}, "{ratio: 0.2}": sim.Budget{Ratio: 0.2},
	})
	words("load: 1x\nretry: {attempts: 2, throttle: WORD}", class(func(c sim.Class) any { return c.Retry.Throttle }), map[string]any{
		"1.5": sim.Throttle{K: 1.5}, "{k: 1.5}": sim.Throttle{K: 1.5},
	})
	words("load: 1x\nretry: {attempts: 2, jitter: WORD}", class(func(c sim.Class) any { return c.Retry.NoJitter }), map[string]any{
		"true": false, "false": true,
	})
}

// Every baseline can be compared, and is what sim.Named says with the depth of the
// rule of thumb: 60 / 50 ms x 400 ms = 480. That of the tier keeps what the file
// says of it.
func TestBaselines(t *testing.T) {
	names := strings.Join(sim.Baselines, ", ")
	base := "version: 1\nname: x\nlength: 1s\nload: 1x\nservice: 50ms exponential\n"
	f, err := Load("f", []byte(base+"policy: {limit: 60, objective: 400ms}\ncompare: ["+names+"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range sim.Baselines {
		want, err := sim.Named(name, 60, 480, f.Sim.Tiers[0].Service)
		if got := f.Compare[i].Tiers[0]; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, want %+v, %v", name, got.Baseline, want.Baseline, err)
		}
	}
	f, err = Load("f", []byte(base+"policy: {baseline: fifo, limit: 30, depth: 2400}\ncompare: [fifo, {fifo: {limit: 20, label: less}}, lifo, goodput]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []sim.Baseline{{Limit: 30, Depth: 2400}, {Limit: 20, Depth: 2400}, {Limit: 30, Depth: 600, Order: sim.LIFO, PushOut: true, Expire: true}} {
		if got := *f.Compare[i].Tiers[0].Baseline; got != want {
			t.Errorf("%s is %+v, want %+v", f.Compare[i].Name, got, want)
		}
	}
	if c := f.Compare[3].Tiers[0].Core; c.Limit != limit.Fixed(30) || c.Objective != time.Second {
		t.Errorf("goodput in its place has %+v", c)
	}
}

// The resource is what the policy of the file lets in, whoever is compared: without a
// limit nobody has a better one.
func TestComparedOnOneResource(t *testing.T) {
	f, err := Load("test.yaml", []byte(`
version: 1
name: one-resource
length: 20s
warmup: 5s
policy: {limit: 60, objective: 400ms}
service: 50ms exponential
load: 3x
deadline: 2s
compare: [goodput, none, {fifo: {limit: 180, label: fifo-180}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.9, 0, 0.9} { // 180 at once wait 0.1 s longer, behind the limit
		r, err := sim.Run(f.Play(i), 1)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(r.Capacity-1200) > 1e-6 {
			t.Errorf("%s: capacity %v, want 1200", r.Policy, r.Capacity)
		}
		if got := r.Ratio(); got < want || got > want+0.2 {
			t.Errorf("%s: goodput %.3f, want %v or a little more", r.Policy, got, want)
		}
	}
}

// Two words for one thing: as scenarios write a service time, and as plan's flag does.
func TestServiceAsPlanWritesIt(t *testing.T) {
	read := func(service string) sim.Dist {
		f, err := Load("test.yaml", []byte("version: 1\nname: x\nlength: 1s\npolicy: {limit: 6}\nload: 1x\nservice: "+service+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		return f.Sim.Tiers[0].Service
	}
	for plan, here := range map[string]string{
		"50ms:exp": "50ms exponential", "50ms:fixed": "50ms fixed", "50ms:lognormal:1.5": "50ms lognormal 1.5",
	} {
		if a, b := read(plan), read(here); !reflect.DeepEqual(a, b) {
			t.Errorf("%s is %+v, and %s is %+v", plan, a, here, b)
		}
	}
}

// What is wrong with the policy of a tier is said once, there, and not of those that
// are compared with it.
func TestWrongPolicyIsOneError(t *testing.T) {
	_, err := Load("test.yaml", []byte(`
version: 1
name: x
length: 10s
policy: {limit: 0, objective: 400ms}
service: 50ms exponential
load: 3x
compare: [goodput, {fifo: {depth: 500, label: f500}}]
`))
	var all *strictyaml.Errors
	if !errors.As(err, &all) || len(all.Problems) != 1 || all.Problems[0].Line != 5 {
		t.Errorf("%v", err)
	}
}
