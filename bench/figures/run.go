package figures

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/goodput/goodput/bench/figures/passes"
	"github.com/goodput/goodput/bench/figures/simulated"
	"github.com/goodput/goodput/bench/live"
	"github.com/goodput/goodput/bench/proxies"
	"github.com/goodput/goodput/bench/virtual"
)

// Names of the parts.
const (
	PartHot       = "hot"
	PartGenerator = "generator"
	PartProxies   = "proxies"
	PartLive      = "live"
	PartDemo      = "demo"
	PartCore      = "core"
	PartVirtual   = "virtual"
	PartLaws      = "laws"
)

// Parts are in the order in which they are measured: first those that the machine's mood
// spoils.
var Parts = []string{PartHot, PartGenerator, PartProxies, PartLive, PartDemo, PartCore, PartVirtual, PartLaws}

// A Run is what is there of one; a part that is not is nil.
type Run struct {
	Hot       *File[Hot]
	Generator *File[[]*passes.Row]
	Proxies   *File[*proxies.Report]
	Live      *File[[]*live.Result]
	Demo      *File[[]*Demo]
	Core      *File[simulated.Result]
	Virtual   *File[virtual.Table]
	Laws      *File[Laws]
}

// Hot is what a limiter costs per request.
type Hot struct {
	Time string        `json:"benchtime"`
	Rows []*passes.Row `json:"rows"`
}

// A Demo is what `goodput demo --format json` writes, of which this is what is shown.
type Demo struct {
	Flags    string     `json:"flags"` // of the demo
	Load     float64    `json:"load"`
	Law      string     `json:"law"`
	Duration float64    `json:"duration_seconds"`
	Void     string     `json:"void,omitempty"`
	Runs     []*DemoRun `json:"runs"`
}

// A DemoRun is one of the two runs of a Demo.
type DemoRun struct {
	Name       string   `json:"name"`
	Offered    float64  `json:"offered_per_second"`
	Ratio      float64  `json:"goodput_ratio"`
	P50        *float64 `json:"p50_seconds"`
	P99        *float64 `json:"p99_seconds"`
	Refused    float64  `json:"refused_per_second"`
	RefusalP50 *float64 `json:"refusal_p50_seconds"`
	PeakQueue  int      `json:"peak_queue"`
}

// Laws is what `goodput simulate --suite adaptive --format json` writes, of which this is
// what is shown.
type Laws struct {
	Requests  uint64         `json:"requests_simulated"`
	Scenarios []LawScenario  `json:"scenarios"`
	Rows      []LawRow       `json:"rows"`
	Criteria  []LawCriterion `json:"criteria"`
}

// A LawScenario is one that laws play.
type LawScenario struct {
	Name string `json:"name"`
}

// A LawRow is what one law made of one scenario.
type LawRow struct {
	Scenario string   `json:"scenario"`
	Law      string   `json:"law"`
	Ratio    *float64 `json:"ratio"` // of the goodput of who knows the slots
	Seeds    []uint64 `json:"seeds"`
}

// A LawCriterion is what is asked of ours.
type LawCriterion struct {
	Text     string `json:"text"`
	Met      bool   `json:"met"`
	Measured string `json:"measured"`
}

// Load reads what is there of a run.
func Load(dir fs.FS) (*Run, error) {
	r := &Run{}
	var errs [8]error
	r.Hot, errs[0] = load(dir, PartHot, func(h *Hot) error { return checkRows(h.Rows) })
	r.Generator, errs[1] = load(dir, PartGenerator, func(rows *[]*passes.Row) error { return checkRows(*rows) })
	r.Proxies, errs[2] = load(dir, PartProxies, checkProxies)
	r.Live, errs[3] = load(dir, PartLive, checkLive)
	r.Demo, errs[4] = load(dir, PartDemo, checkDemo)
	r.Core, errs[5] = load(dir, PartCore, checkCore)
	r.Virtual, errs[6] = load(dir, PartVirtual, checkVirtual)
	r.Laws, errs[7] = load(dir, PartLaws, checkLaws)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return r, nil
}

// Heads are those of the parts that are there, in the order of Parts.
func (r *Run) Heads() (heads []Head) {
	add := func(h *Head) {
		if h != nil {
			heads = append(heads, *h)
		}
	}
	add(head(r.Hot))
	add(head(r.Generator))
	add(head(r.Proxies))
	add(head(r.Live))
	add(head(r.Demo))
	add(head(r.Core))
	add(head(r.Virtual))
	add(head(r.Laws))
	return heads
}

func head[T any](f *File[T]) *Head {
	if f == nil {
		return nil
	}
	return &f.Head
}

// Publishable says what keeps these parts of r from being published: one that was quick, or
// none at all. One that is missing is said to be in the document.
func (r *Run) Publishable(parts []string) error {
	heads := slices.DeleteFunc(r.Heads(), func(h Head) bool { return !slices.Contains(parts, h.Part) })
	if len(heads) == 0 {
		return errors.New("no part was measured")
	}
	for _, h := range heads {
		if h.Quick {
			return fmt.Errorf("part %s was measured with -quick, whose figures mean little", h.Part)
		}
	}
	return nil
}

func checkRows(rows []*passes.Row) error {
	if len(rows) == 0 {
		return errors.New("there is no benchmark in it")
	}
	for _, r := range rows {
		if r == nil || r.Benchmark == "" || len(r.Nanos)+len(r.Others) == 0 {
			return errors.New("a benchmark has no name or no pass")
		}
	}
	return nil
}

func checkProxies(r **proxies.Report) error {
	if *r == nil || len((*r).Costs)+len((*r).Overloads) == 0 {
		return errors.New("there is neither a cost nor an overload in it")
	}
	for _, c := range (*r).Costs {
		if c == nil || len(c.PerCPU) == 0 || len(c.Rate) != len(c.PerCPU) {
			return errors.New("a cost has no pass")
		}
	}
	for _, o := range (*r).Overloads {
		if o == nil || o.Result == nil {
			return errors.New("an overload has no result")
		}
	}
	(*r).Judge()
	return nil
}

func checkLive(results *[]*live.Result) error {
	if len(*results) == 0 {
		return errors.New("there is no load in it")
	}
	for _, r := range *results {
		if r == nil || r.Plan == "" || len(r.Phases) == 0 {
			return errors.New("a load has no name or no phase")
		}
	}
	return nil
}

func checkDemo(demos *[]*Demo) error {
	if len(*demos) == 0 {
		return errors.New("there is no demo in it")
	}
	for _, d := range *demos {
		if d == nil || len(d.Runs) == 0 || slices.Contains(d.Runs, nil) {
			return errors.New("a demo has no run")
		}
	}
	return nil
}

func checkCore(r *simulated.Result) error {
	if len(r.Seeds) == 0 || len(r.Grid) == 0 || len(r.Hard) == 0 || len(r.Trace) == 0 || len(r.Steps) == 0 || len(r.Stalls) == 0 || len(r.Speeds) == 0 {
		return errors.New("one of seeds, grid, hard, trace, steps, stalls and speeds is empty")
	}
	return nil
}

func checkVirtual(t *virtual.Table) error {
	if len(t.Seeds) == 0 || len(t.Rows) == 0 || len(t.Contestants) == 0 || len(t.Scenes) == 0 {
		return errors.New("one of seeds, rows, contestants and scenes is empty")
	}
	return nil
}

func checkLaws(l *Laws) error {
	if len(l.Rows) == 0 || len(l.Criteria) == 0 {
		return errors.New("there is no row or no criterion in it")
	}
	return nil
}
