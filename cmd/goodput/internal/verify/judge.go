package verify

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The verdict: a run either cannot be judged, and one sentence says why (void.go), or each of
// the criteria is looked at, and none of them knows of another.
//
// A bound is a bound: 94.9 % is not 95 %. What keeps noise from failing a good service is the
// distance between the bound and what such a service does, which each constant has beside it;
// the standard error of the figure is said with it, and a miss that is smaller than two of
// them is called so.
//
// What has not been shown is not met: a criterion about which nothing was measured fails.

// A load that says nothing, since the generator was late or too few got through, is left out.
// If a criterion is not met at the others, that is the answer, and a note says which were left
// out: a service that has collapsed at 3x is none that 10x, which could not even be offered,
// would have saved. To be certified no load may be missing.

// Judge fills Criteria, all of Names in their order, or Void and of the criteria only those
// that are not met whether or not the load was what it should be. What is in neither is in
// Unjudged: each of Names is in one of the two. It looks at Settings, Capacity, Idle and Steps,
// adds to Notes, and keeps a Void that is there already. It must be called once.
func Judge(r *Report) {
	e := evidenceOf(r)
	if r.Void == "" {
		r.Void = e.void()
	}
	rest, left := e.valid()
	switch {
	case r.Void != "" || len(left) == 0:
		rest = e
	case e.decides(rest):
		for _, why := range left {
			r.Notes = append(r.Notes, "Left out of the verdict: "+why+".")
		}
	default:
		r.Void = left[0]
	}
	for _, c := range criteria {
		f := c.find(e, rest)
		if why := r.unjudged(c, f, left); why != "" {
			// What was seen at all loads, those that say nothing too: it is there to find out why.
			r.Unjudged = append(r.Unjudged, Open{Name: c.name, Text: c.text(r.Settings), Measured: c.look(e).measured, Why: why})
			continue
		}
		why := f.why
		if f.met {
			why = ""
		}
		r.Criteria = append(r.Criteria, Criterion{Name: c.name, Text: c.text(r.Settings), Met: f.met, Measured: f.measured, Why: why})
	}
	r.Notes = append(r.Notes, e.notes()...)
}

// unjudged returns why f, what was found about c, does not stand; "" if it is a verdict.
func (r *Report) unjudged(c criterion, f finding, left []string) string {
	switch {
	case r.Void != "" && (!c.stands || f.met || f == unmeasured):
		return r.Void
	case f != unmeasured || len(left) == 0:
		return ""
	case len(left) > 1:
		return fmt.Sprintf("%s; %d more loads are left out", left[0], len(left)-1)
	}
	return left[0]
}

// decides reports that a criterion is not met at rest, the loads that say something.
func (e evidence) decides(rest evidence) bool {
	return slices.ContainsFunc(criteria, func(c criterion) bool {
		f := c.find(e, rest)
		return !f.met && f != unmeasured
	})
}

// find looks at what says something for c: all of it, or the loads that were as they should be.
func (c criterion) find(all, rest evidence) finding {
	if c.stands {
		return c.look(all)
	}
	return c.look(rest)
}

// A criterion is how one of Names is judged.
type criterion struct {
	name   string
	stands bool // a no stands although the load was late: what was seen on the wire was there
	text   func(Settings) string
	look   func(evidence) finding
}

// A finding is what became of a criterion, or of one load. why is worth nothing if it is met.
type finding struct {
	met           bool
	measured, why string
	miss, err     float64 // of one load: by how much it misses the bound, and the standard error of that; 0: not known
}

// by says by how much a load misses the bound.
func (f finding) by(miss, err float64) finding {
	f.miss, f.err = miss, err
	return f
}

// evidence is a Report as the criteria look at it.
type evidence struct {
	*Report
	ordered []Step // ascending by load, as Settings has them; each with a Result
}

func evidenceOf(r *Report) evidence {
	e := evidence{Report: r}
	for _, s := range r.Steps {
		if s.Result != nil {
			e.ordered = append(e.ordered, s)
		}
	}
	return e
}

// halfLoad is the load up to which nearly nobody may be lost. At exactly 1x random arrivals
// lose some by arithmetic: 4 slots with 8 places to wait 8.9 % (M/M/4/12), without any 31 %
// (Erlang's B). At half of that the former lose 0.03 %.
const halfLoad = 0.5

// below are the steps at which there is room for everybody.
func (e evidence) below() []Step { return e.steps(func(s Step) bool { return s.Load <= halfLoad }) }

// past are the steps above the capacity. That at 1x is in neither: see halfLoad.
func (e evidence) past() []Step { return e.steps(func(s Step) bool { return s.Load > 1 }) }

// apart are all of those.
func (e evidence) apart() []Step {
	return e.steps(func(s Step) bool { return s.Load <= halfLoad || s.Load > 1 })
}

func (e evidence) steps(in func(Step) bool) (some []Step) {
	for _, s := range e.ordered {
		if in(s) {
			some = append(some, s)
		}
	}
	return some
}

// A sight is one load that was offered, and what to call it.
type sight struct {
	at string
	*load.Result
}

// asked is how many attempts were due: those of one caller are as many as it made.
func (s sight) asked() int64 { return s.Offered + s.Earlier.Sum() }

// sights are all loads of the run. A service that served nothing while its capacity was looked
// for has no steps, and is known from its probes.
func (e evidence) sights() (all []sight) {
	for _, s := range e.ordered {
		all = append(all, sight{"at " + loadOf(s.Load), s.Result})
		if s.Calm != nil {
			all = append(all, sight{"after " + loadOf(s.Load), s.Calm})
		}
	}
	if len(e.Steps) == 0 {
		for _, p := range e.Capacity.Probes {
			if p.Result != nil {
				all = append(all, sight{fmt.Sprintf("at %s/s", asRate.show(p.Rate)), p.Result})
			}
		}
	}
	return all
}

// nothing reports that no rate at all was served in time: there is no capacity to multiply.
func (e evidence) nothing() bool { return e.Capacity.PerSecond == 0 }

// unserved is the finding about a service that served nothing. A run without an answer may not
// even have asked it.
func (e evidence) unserved() finding {
	if e.Void != "" {
		return unmeasured
	}
	why := "A service that serves nobody is not overloaded but out of order, or refuses whom it does not know: look at what it answered"
	all := e.sights()
	if len(all) == 0 {
		return finding{measured: "nobody was answered in time", why: sentence(e.Capacity.Why) + " " + why}
	}
	least := slices.MinFunc(all, func(a, b sight) int { return cmp.Compare(a.Offered, b.Offered) })
	return finding{measured: "nobody was answered in time", why: fmt.Sprintf("%s %s of %s came in time, and of the others %s. %s",
		least.at, digits(least.InTime), digits(least.Offered), fates(least.Result), why)}
}

// unmeasured is the finding about what was not seen.
var unmeasured = finding{measured: "not measured", why: "there was no load that could have shown it"}

// over looks at each of some steps: all must meet it, and the worst that does not says why.
func over(some []Step, look func(Step) finding) finding {
	if len(some) == 0 {
		return unmeasured
	}
	var found []finding
	var said []string
	for _, s := range some {
		f := look(s)
		found, said = append(found, f), append(said, f.measured+" at "+loadOf(s.Load))
	}
	all := worst(found)
	all.measured = strings.Join(said, ", ")
	return all
}

// worst is the finding that misses the bound by most, or the first of those, and is met if all of
// them are. That it may be chance is said only if it may be so of each that misses it.
func worst(all []finding) finding {
	w, chance := finding{met: true}, true
	for _, f := range all {
		if f.met {
			continue
		}
		chance = chance && f.narrow()
		if w.met || f.miss > w.miss {
			w = f
		}
	}
	if !w.met && chance {
		w.why += narrowly
	}
	return w
}

// A portion is n of of, with its standard error.
type portion struct{ n, of int64 }

// is returns the share; NaN of nothing, which meets no bound.
func (p portion) is() float64 {
	if p.of <= 0 {
		return math.NaN()
	}
	return float64(p.n) / float64(p.of)
}

// err is the standard error of a share: sqrt(p (1 - p) / n).
func (p portion) err() float64 {
	x := min(max(p.is(), 0), 1)
	return math.Sqrt(x * (1 - x) / float64(p.of))
}

func (p portion) String() string { return withError(p.is(), p.err()) }

// withError is a share in percent with its standard error.
func withError(x, err float64) string {
	if math.IsNaN(x) {
		return "none"
	}
	if !(err*100 >= 0.05) { // less than the last digit that is shown
		return asPercent.show(x) + " %"
	}
	return asPercent.show(x) + " % ± " + asPercent.show(err)
}

// narrow reports whether the miss is smaller than two standard errors, which one run in 44 of a
// service that is right at the bound exceeds.
func (f finding) narrow() bool { return math.Abs(f.miss) < 2*f.err }

const narrowly = ". This is within two standard errors of the bound: before you act on it run this with four times the --duration, which halves them"

// quantileOf is the q-quantile of h, and false if there is none.
func quantileOf(h *load.Histogram, q float64) (time.Duration, bool) {
	if h == nil {
		return 0, false
	}
	return h.Quantile(min(max(q, 0), 1))
}

// slots is how many got one: they have a latency.
func slots(r *load.Result) int64 {
	if r.Latency == nil {
		return 0
	}
	return r.Latency.Count()
}

// fates says what became of those that were not in time.
func fates(r *load.Result) string {
	var said []string
	for _, c := range []struct {
		n    int64
		what string // of many
	}{
		{r.Refused, "were refused"},
		{r.Unlike, "got an answer that is none of the idle service"},
		{r.Failed, "got an error of the service"},
		{lateOf(r), "were answered just after the deadline"},
		{r.TimedOut, "gave up after " + span(r.Plan.Deadline)},
		{r.Errors, "had no connection, or lost it"},
		{r.Dropped, "could not be sent"},
		{r.Aborted, "were interrupted"},
	} {
		if c.n > 0 {
			if c.n == 1 {
				c.what = strings.Replace(c.what, "were ", "was ", 1)
			}
			said = append(said, digits(c.n)+" "+c.what)
		}
	}
	if said == nil {
		return "nothing is known of the others"
	}
	return strings.Join(said, ", ")
}
