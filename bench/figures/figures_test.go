package figures

import (
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goodput/goodput/bench/figures/passes"
	"github.com/goodput/goodput/bench/figures/simulated"
	"github.com/goodput/goodput/bench/live"
	"github.com/goodput/goodput/bench/proxies"
	"github.com/goodput/goodput/bench/virtual"
)

// docs/benchmarks.md is what is made of the files beside it, to the last byte.
func TestTheDocumentIsThatOfTheFiles(t *testing.T) {
	dir, err := fs.Sub(Published, "run")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/benchmarks.md is not what figures/run says: in the folder bench, GOWORK=off go run ./cmd/benchmarks -from figures/run -publish")
	}
	for _, h := range r.Heads() {
		if h.Quick {
			t.Errorf("part %s is published and was quick", h.Part)
		}
	}
}

// What is kept in the repository is small, and says nothing of where it was measured but what
// counts.
func TestPublishedFilesAreSmall(t *testing.T) {
	sum := int64(0)
	err := fs.WalkDir(Published, "run", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum += info.Size()
		data, err := fs.ReadFile(Published, path)
		if err != nil {
			return err
		}
		host, _ := os.Hostname()
		for _, word := range []string{"/tmp/", "/home/", "/root/", "/work/"} {
			if strings.Contains(string(data), word) {
				t.Errorf("%s has %q in it", path, word)
			}
		}
		if len(host) > 3 && strings.Contains(string(data), host) {
			t.Errorf("%s has the name of this machine in it", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum > 250_000 {
		t.Errorf("%d bytes are kept, want 250,000 at the most", sum)
	}
}

// Each number that goodput promises is in the table, so many of each line.
func TestEveryPromiseIsThere(t *testing.T) {
	count := map[string]int{}
	for _, p := range promises() {
		count[p.Line]++
		if p.Text == "" || p.Part == "" || p.measure == nil || p.Least && p.Bound == 0 {
			t.Errorf("%+v says too little", p)
		}
	}
	for line, n := range map[string]int{
		lineTogether: 13, // at 1x refused; at 3x and 10x goodput for two deadlines, p50, p99, told; from cold; no rival
		lineUntuned:  7,  // goodput at three loads, p99; of a limit that finds itself; at the edge
		lineHard:     1,
		lineSized:    4,  // loads
		lineChange:   4,  // halved, restored, a stall simulated and live
		lineHot:      6,  // ratio and allocations of fixed and adaptive, a refusal and its allocations
		lineProxy:    16, // 2 protocols x (bare, Caddy, refusal); 2 of ours x (refusal, 2 loads x (rival, slots))
		lineSim:      3,  // speed, memory, the same again
		lineLoad:     1,
	} {
		if count[line] != n {
			t.Errorf("%s: %d promises, want %d", line, count[line], n)
		}
		delete(count, line)
	}
	for line := range count {
		t.Errorf("line %q is not counted", line)
	}
	text, err := Render(&Run{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range promises() {
		if !strings.Contains(text, "| "+p.Text+" |") {
			t.Errorf("%q is not in the document", p.Text)
		}
	}
	if !strings.Contains(text, "Of 55 numbers 0 are met, 0 missed, and 55 were not measured in this run") {
		t.Error("an empty run is not said to be one")
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		v    Verdict
		word string
		why  string
	}{
		{Verdict{Promise: Promise{Least: true, Bound: 1}, Figure: Figure{Value: 1}, Measured: true}, "met", ""},
		{Verdict{Promise: Promise{Least: true, Bound: 1, Reason: "so"}, Figure: Figure{Value: 0.999}, Measured: true}, "**MISSED**", "so"},
		{Verdict{Promise: Promise{Bound: 0}, Measured: true}, "met", ""},
		{Verdict{Promise: Promise{Bound: 1}, Figure: Figure{Value: 1.001}, Measured: true}, "**MISSED**", "No reason is known; it was met before."},
		{Verdict{Promise: Promise{Bound: 1}, Figure: Figure{Value: never}, Measured: true}, "**MISSED**", "No reason is known; it was met before."},
		{Verdict{Promise: Promise{Bound: 1}}, "not measured", ""},
	} {
		if c.v.Word() != c.word || c.v.Why() != c.why {
			t.Errorf("%+v: %s, %q; want %s, %q", c.v, c.v.Word(), c.v.Why(), c.word, c.why)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1: "1", 12: "12", 0.97: "0.970", 12.34: "12.3", 123.4: "123", 1234: "1,234", 1234567.8: "1,234,568", -1234: "-1,234", 0.0004: "0.0004",
	} {
		if got := number(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
	if number(math.NaN()) != "never" {
		t.Error("a time without an end has a number")
	}
}

// A file that is broken is one clear sentence about which and why; one that is not there is a
// part that was not measured.
func TestBrokenFiles(t *testing.T) {
	good := complete(t)
	if _, err := Load(good); err != nil {
		t.Fatal(err)
	}
	for part, empty := range map[string]string{
		PartHot: `{"part":"hot","data":{"rows":[]}}`, PartGenerator: `{"part":"generator","data":[]}`,
		PartProxies: `{"part":"proxies","data":null}`, PartLive: `{"part":"live","data":[]}`,
		PartDemo: `{"part":"demo","data":[]}`, PartCore: `{"part":"core","data":{}}`,
		PartVirtual: `{"part":"virtual","data":{}}`, PartLaws: `{"part":"laws","data":{}}`,
	} {
		for _, c := range []struct{ name, text, want string }{
			{"cut off", `{"part":"` + part + `","da`, name(part) + " is no part of a run: unexpected EOF"},
			{"of another part", `{"part":"x"}`, name(part) + ` has part "x", want "` + part + `"`},
			{"empty", empty, name(part) + ": "},
			{"of another type", `{"part":"` + part + `","data":7}`, name(part) + " is no part of a run: json: cannot unmarshal number"},
		} {
			broken := fstest.MapFS{}
			for k, v := range good {
				broken[k] = v
			}
			broken[name(part)] = &fstest.MapFile{Data: []byte(c.text)}
			_, err := Load(broken)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %s: %v, want %q", part, c.name, err, c.want)
			}
			delete(broken, name(part))
			r, err := Load(broken)
			if err != nil || len(r.Heads()) != len(Parts)-1 {
				t.Errorf("without %s: %v", part, err)
			}
		}
	}
}

func TestBrokenPeers(t *testing.T) {
	for text, want := range map[string]string{
		"{":  "peers.json is no file of peers",
		"{}": "one of conditions, cost and overload is empty",
		`{"conditions":"c","cost":[{"name":"x"}],"overload":[{"name":"x","ratios":[1]}]}`: "x has 1 ratios, want one for each of [0.5 1 1.5 3 10]",
	} {
		if _, err := ReadPeers([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// complete is a run that has every part, with made-up figures.
func complete(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	put := func(part string, data any) {
		text, err := json.Marshal(map[string]any{"part": part, "command": "run " + part, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		files[name(part)] = &fstest.MapFile{Data: text}
	}
	var rows []*passes.Row
	for _, b := range []string{"AcquireRelease", "Parallel", "Refusal", "HandOff"} {
		for _, procs := range []int{1, 2} {
			for who, ns := range map[string]float64{"xsync": 10, "goodput": 12, "goodput-auto": 20, "failsafe-adaptive": 200} {
				rows = append(rows, &passes.Row{Benchmark: b, Procs: procs, Contestant: who, Nanos: []float64{ns, ns + 1, ns - 1}})
			}
		}
	}
	put(PartHot, Hot{Time: "1x", Rows: rows})
	put(PartGenerator, []*passes.Row{{Benchmark: "Generator", Procs: 1, Contestant: "http2=true/rate=10000", Others: map[string][]float64{lateUnit: {1, 2, 3}}}})
	put(PartProxies, madeProxies())
	settle := 0.5
	put(PartLive, []*live.Result{
		{Contestant: "goodput-auto", Plan: "cold 3x", Ratio: 0.99, Phases: []live.PhaseResult{{Slots: 60}}},
		{Contestant: "failsafe-cold", Plan: "cold 3x", Ratio: 0.4, Phases: []live.PhaseResult{{Slots: 60}}},
		{Contestant: "kratos-bbr", Plan: "cold 3x", Void: "it rained", Phases: []live.PhaseResult{{Slots: 60}}},
		{Contestant: "goodput-auto", Plan: "step", Ratio: 0.99, Phases: []live.PhaseResult{{Slots: 60}, {Slots: 20}, {Slots: 60}}},
		{Contestant: "goodput-auto", Plan: "stall", Recovered: &settle, Phases: []live.PhaseResult{{Slots: 60}, {Slots: 0}, {Slots: 60}}},
		{Contestant: "kratos-bbr", Plan: "stall", Phases: []live.PhaseResult{{Slots: 60}, {Slots: 0}, {Slots: 60}}},
	})
	put(PartDemo, []*Demo{{Flags: "--load 10", Runs: []*DemoRun{{Name: "goodput", Ratio: 0.99}}}})
	put(PartCore, simulated.Result{
		Seeds: []uint64{1, 2}, Same: true, PerRequest: 0.1,
		Grid:  []simulated.Overload{{Work: "fixed", Slots: 8, Load: 1.5, Goodput: simulated.Spread{Median: 1, Smallest: 1, Largest: 1}}, {Work: "fixed", Slots: 60, Load: 1.5, Goodput: simulated.Spread{Median: 0.98, Smallest: 0.9, Largest: 1}}},
		Hard:  []simulated.Hard{{Work: "exponential", Slots: 1, Mean: 50, Load: 1.5, Deadline: 400, Best: "lifo", Behind: 0.02, Tried: 30}},
		Trace: []simulated.Sized{{Load: 2, OfBound: simulated.Spread{Median: 0.953, Smallest: 0.952, Largest: 0.954}}},
		Steps: []simulated.Step{{What: "slots", First: simulated.Spread{Median: 0.99}}}, Stalls: []simulated.Stall{{Policy: "goodput", Deadline: 400}},
		Speeds: []simulated.Speed{{Policy: "goodput", Load: 3, Rate: simulated.Spread{Median: 2.5e6}}},
	})
	var table virtual.Table
	table.Seeds = []uint64{1}
	for _, load := range []string{"1x", "3x", "10x"} {
		for _, scene := range []string{"exponential ", "deadline 400ms "} {
			table.Scenes = append(table.Scenes, virtual.Scene{Name: scene + load, Load: map[string]float64{"1x": 1, "3x": 3, "10x": 10}[load]})
			for who, even := range map[string]float64{told: 0.995, auto: 0.98, "chan/try": 0.97, "lifo/x": 1.01} {
				table.Rows = append(table.Rows, virtual.Row{Scene: scene + load, Contestant: who, Figures: virtual.Figures{Even: even, P50: 40, P99: 300, No50: map[bool]float64{true: 200}[who == "lifo/x"]}})
			}
		}
	}
	for _, who := range []string{told, auto, "chan/try", "lifo/x"} {
		table.Contestants = append(table.Contestants, virtual.Words{Name: who})
	}
	put(PartVirtual, table)
	ratio := 0.97
	put(PartLaws, Laws{Rows: []LawRow{{Scenario: "x", Law: "auto", Ratio: &ratio}, {Scenario: "y", Law: "auto"}}, Criteria: []LawCriterion{{"a", false, "b"}}})
	return files
}

func madeProxies() *proxies.Report {
	r := &proxies.Report{Versions: map[string]string{"haproxy": "2.6"}}
	for _, protocol := range []string{proxies.HTTP1, proxies.H2C} {
		for who, per := range map[string]float64{proxies.Bare: 100, proxies.Goodput: 97, proxies.Caddy: 70, "haproxy": 300} {
			r.Costs = append(r.Costs, &proxies.Cost{Contestant: who, Protocol: protocol, What: proxies.Pass, PerCPU: []float64{per, per}, Rate: []float64{1, 1}})
		}
		for who, per := range map[string]float64{proxies.Floor: 500, proxies.Goodput: 250} {
			r.Costs = append(r.Costs, &proxies.Cost{Contestant: who, Protocol: protocol, What: proxies.Refusal, PerCPU: []float64{per, per}, Rate: []float64{1, 1}})
		}
	}
	for _, load := range []float64{3, 10} {
		for who, quick := range map[string]float64{proxies.Goodput: 0.98, proxies.Auto: 0.96, "haproxy-short": 0.985} {
			refused := 1 - 1/load
			r.Overloads = append(r.Overloads, &proxies.Overload{
				Result: &live.Result{Contestant: who, Load: load, Quick: quick, Refused: refused}, Offered: int(1000 * load), CPU: 1 + 0.2*(load-1),
			})
		}
	}
	return r
}
