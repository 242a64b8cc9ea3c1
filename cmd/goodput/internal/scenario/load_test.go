package scenario

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
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
	walk(reflect.ValueOf(*f), set, all)
	for i := range f.Compare {
		walk(reflect.ValueOf(f.Play(i)), set, all)
	}
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
		"sheddable", "background",
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
// that bring none, a cap for those that do.
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
		{", deadline_cap: 2s", "", 0},
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
