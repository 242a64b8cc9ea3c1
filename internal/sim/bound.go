package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/goodput/goodput/internal/theory"
)

// Ceilings are what no policy can exceed, beside a result. Each is a goodput
// ratio, in the unit of Result.Ratio, or 0 with the reason in Missing.
type Ceilings struct {
	Offered  float64 // requests per second of the window
	Capacity float64 // as Result.Capacity

	// NoQueue is what refusing at once reaches with Poisson arrivals: 1 - B, by
	// Erlang's loss formula, less those whose work alone takes longer than they care.
	// It is a floor for anybody with a queue.
	NoQueue float64

	// SizeAware is the fluid bound of who knows the size of each request: only the
	// shortest are served, times the slots that they take, as many as fit.
	SizeAware float64

	// Clairvoyant is the most that anybody who knew every arrival and its work
	// could serve in time, on one server as fast as all slots together; Exact says
	// that it is the optimum of that server and not a bound above it. Of clients that
	// try again only Retry.Within counts, for the request with all its attempts.
	Clairvoyant float64
	Exact       bool
	Jobs        int // the arrivals of the window that the last two are about, at most 300,000

	// Missing says in one sentence each why a ceiling is 0.
	Missing []string
}

// maxJobs bounds the arrivals that a ceiling looks at: 300,000 of them, sorted and copied a few
// times, are about 40 MB.
const maxJobs = 300_000

// Ceilings returns the ceilings of s for seed: of the very arrivals, with the very
// work, that the policies meet. It takes all of the trace, as a run does. The error is
// the sentence of Scenario.Validate.
func (s Scenario) Ceilings(seed uint64) (Ceilings, error) {
	if err := s.Validate(); err != nil {
		return Ceilings{}, err
	}
	w, err := newWorld(&s, seed)
	if err != nil {
		return Ceilings{}, err
	}
	g := w.gather()
	w.fold()
	if g.all == 0 {
		return Ceilings{Missing: []string{"nothing arrived in the window"}}, nil
	}
	w.capacity()
	c := Ceilings{Jobs: len(g.jobs), Capacity: w.result.Capacity}
	c.Offered = float64(g.all) / w.result.Window.Seconds()
	switch t := w.tiers[0]; {
	case t.slots() == 0:
		c.miss("clairvoyant, size-aware and no queue are missing: nothing bounds the resource")
		return c, nil
	case c.Capacity == 0:
		c.miss("clairvoyant, size-aware and no queue are missing: the resource does nothing in the window")
		return c, nil
	case t.Next != nil || !w.single():
		c.miss("clairvoyant, size-aware and no queue are missing: they are about one tier")
		return c, nil
	}
	w.ceil(&c, &g)
	return c, nil
}

// ceil fills in the ceilings of one tier, which is bounded.
func (w *world) ceil(c *Ceilings, g *gathered) {
	slots := w.tiers[0].fewest()
	n := float64(len(g.jobs))
	unit := c.Offered / min(c.Offered, c.Capacity) // a ratio is a share of the offered times this
	sorted, fit := make([]float64, len(g.jobs)), 0
	for i, j := range g.jobs {
		sorted[i] = j.Service.Seconds() * float64(min(g.widths[i], slots))
		if j.Service <= j.Deadline-j.Release {
			fit++
		}
	}
	slices.Sort(sorted)
	c.SizeAware = theory.SizeAwareSample(c.Offered/c.Capacity, sorted) * c.Capacity / c.Offered * unit

	switch {
	case w.tiers[0].Faults != nil:
		c.miss("no queue is missing: Erlang's formula is about work that does not fail")
	case w.memoryless():
		served := 1 - theory.ErlangB(slots, c.Offered*w.demands()[0].units)
		c.NoQueue = served * float64(fit) / n * unit
	default:
		c.miss("no queue is missing: Erlang's formula is about Poisson arrivals at a constant rate, at a constant speed, before one limiter")
	}
	if w.renewed() {
		c.miss("clairvoyant is missing: who tries again has the whole deadline again, and nothing bounds the request with all of its attempts")
		return
	}
	span := g.last - w.Warmup
	if len(g.jobs) == g.all {
		span = w.result.Window
	}
	jobs, widths := w.pool(g)
	most, exact := theory.Clairvoyant(theory.Pool(jobs, widths, slots))
	rate := n / span.Seconds()
	c.Clairvoyant = float64(most) / n * rate / min(rate, c.Capacity)
	c.Exact = exact
}

func (c *Ceilings) miss(why string) { c.Missing = append(c.Missing, why) }

// renewed reports whether a deadline begins anew with an attempt, for any class.
func (w *world) renewed() bool {
	return slices.ContainsFunc(w.classes, func(c *class) bool { return c.Retry.Attempts > 1 && c.Retry.Within == 0 })
}

// What gather has drawn: at most maxJobs of the arrivals of the window.
type gathered struct {
	jobs   []theory.Job
	widths []int         // slots that each takes
	last   time.Duration // arrival of the last of them
	all    int           // arrivals of the window
}

// gather draws the arrivals of the window without playing them.
func (w *world) gather() (g gathered) {
	for {
		from, at := w.soonest()
		if at == never {
			return g
		}
		w.now = at
		c := w.draw(from)
		if c.counted {
			g.all++
			if len(g.jobs) < maxJobs {
				until := c.arrival + c.class.objective
				switch {
				case c.class.Retry.Attempts > 1:
					until = never
				case c.after != never:
					until = c.arrival + c.after
				}
				g.jobs = append(g.jobs, theory.Job{Release: c.arrival, Service: c.service, Deadline: min(until, c.within)})
				g.widths = append(g.widths, c.cost)
				g.last = at
			}
		}
		w.retire(c)
	}
}

// single reports whether all classes arrive at the first tier.
func (w *world) single() bool {
	for _, c := range w.classes {
		if c.entry.index != 0 {
			return false
		}
	}
	return true
}

// memoryless reports whether Erlang's loss formula holds for the first tier, as
// it does for any distribution of the work: one limiter, before a resource that is as
// it is.
func (w *world) memoryless() bool {
	for _, c := range w.classes {
		if c.Arrivals.Process != Poisson || !c.Arrivals.plain() || c.Retry.Attempts > 1 || c.Cost > 1 {
			return false
		}
	}
	t := w.tiers[0]
	return w.Trace == nil && t.time.still && t.SlotSteps == nil && t.Contention == Contention{} && !t.mortal && t.Instances <= 1
}

// pool returns the jobs of g in the time of a resource that has always the fewest of its
// slots. One that has twice as many does in the same time twice as much: for all jobs
// together time passes twice as fast, though not for one of them, which still has to
// fit its window on one slot.
func (w *world) pool(g *gathered) ([]theory.Job, []int) {
	t := w.tiers[0]
	jobs := w.straighten(g.jobs, &t.Speed)
	if t.SlotSteps == nil {
		return jobs, g.widths
	}
	all := w.straighten(g.jobs, t.together())
	kept, widths := make([]theory.Job, 0, len(all)), make([]int, 0, len(all))
	for i, j := range jobs {
		if j.Service <= j.Deadline-j.Release {
			kept, widths = append(kept, all[i]), append(widths, g.widths[i])
		}
	}
	return kept, widths
}

// straighten returns the jobs in the time of a resource whose speed is always 1:
// an instant becomes the work that could have been done until then. What fits into
// a window fits as well in the one, however the speed has changed.
func (w *world) straighten(jobs []theory.Job, speed *Speed) []theory.Job {
	released := newTimeline(*speed, stream(w.result.Seed, streamSpeed, 0))
	if released.still {
		return jobs
	}
	out := make([]theory.Job, len(jobs))
	for i, j := range jobs {
		out[i].Release = released.work(j.Release)
	}
	// Deadlines of several classes do not rise with the arrivals.
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Deadline, jobs[b].Deadline) })
	due := newTimeline(*speed, stream(w.result.Seed, streamSpeed, 0))
	for _, i := range order {
		out[i].Service = jobs[i].Service
		out[i].Deadline = due.work(jobs[i].Deadline)
	}
	return out
}
