package figures

import (
	"fmt"
	"slices"

	"github.com/goodput/goodput/bench/figures/passes"
	"github.com/goodput/goodput/bench/figures/simulated"
	"github.com/goodput/goodput/bench/proxies"
	"github.com/goodput/goodput/bench/virtual"
)

// What the promises are part of.
const (
	lineTogether = "All at once, told the slots: 60 slots of 50 ms, exponential, an objective of 400 ms"
	lineUntuned  = "Without tuning: the depth of a limit that is told the slots, and of one that finds them, for fixed, exponential and lognormal work whose p99 is within half of the objective, and 8 slots or more"
	lineHard     = "Elsewhere"
	lineSized    = "With known sizes, on a trace of requests to a language model"
	lineChange   = "A capacity that changes, and a stall"
	lineHot      = "What a request costs in process"
	lineProxy    = "What the proxy costs, and keeps"
	lineSim      = "The simulator"
	lineLoad     = "The load generator of verify"
)

// promises are all of them, in the order of the document.
func promises() []Promise {
	return slices.Concat(together(), untuned(), sized(), changes(), hot(), proxy(), simulator())
}

// The contestants of package virtual that are ours.
const (
	told = "goodput/fixed"
	auto = "goodput/auto"
)

// deadlines of package virtual: the scenes of 2 s and of 400 ms.
var deadlines = []struct{ name, scene string }{{"2 s", "exponential %gx"}, {"400 ms", "deadline 400ms %gx"}}

func (r *Run) row(scene, contestant string) *virtual.Row {
	if r.Virtual == nil {
		return nil
	}
	for i := range r.Virtual.Data.Rows {
		if row := &r.Virtual.Data.Rows[i]; row.Scene == scene && row.Contestant == contestant {
			return row
		}
	}
	return nil
}

// inProcess returns the worst of a number over both deadlines, of goodput that is told the
// slots; what finds them is said beside it.
func inProcess(load float64, least bool, of func(*virtual.Row) float64) func(*Run) (Figure, bool) {
	return func(r *Run) (Figure, bool) {
		ours, finds := worst{least: least}, worst{least: least}
		for _, d := range deadlines {
			scene := fmt.Sprintf(d.scene, load)
			if row := r.row(scene, told); row != nil {
				ours.add(of(row), "deadline "+d.name)
			}
			if row := r.row(scene, auto); row != nil {
				finds.add(of(row), "")
			}
		}
		f, ok := ours.figure()
		if finds.any {
			f.Note += "; a limit that finds itself, from cold: " + number(finds.value)
		}
		return f, ok
	}
}

// Reasons of what is missed in simulated and virtual time.
const (
	coldReason = "All other lines of this part are of a limit that is told the slots. This one begins at 20 and has to find 60, which costs a part of the first seconds; once it has, see the part without tuning."
	edgeReason = "Once somebody at the head has waited so long that a service of mean length would miss the objective, the newest are served first, and who was overtaken is served late."
	hardReason = "Where the slowest percent of the work takes longer than the objective, or the slots are fewer than four, others keep more. With callers that leave after the objective they hold what they cannot serve until it is doomed, newest first or not, and those wait for their no; here most are told at once. Of one slot and callers that leave after 2 s, the worst of them, a queue of three, newest first, keeps more: it never leaves the slot idle, and tells at once too but for those that are pushed out, half of them after 79 ms."
)

func together() []Promise {
	p := func(text string, least bool, bound float64, unit, reason string, measure func(*Run) (Figure, bool)) Promise {
		return Promise{Line: lineTogether, Text: text, Part: PartVirtual, Least: least, Bound: bound, Unit: unit, Reason: reason, measure: measure}
	}
	all := []Promise{
		p("refused at 1x, of what is offered", false, 0.02, "", "", inProcess(1, false, func(r *virtual.Row) float64 { return r.Refused })),
	}
	for _, load := range []float64{3, 10} {
		for _, d := range deadlines {
			all = append(all, p(fmt.Sprintf("goodput at %gx, deadlines of %s", load, d.name), true, 0.99, "", "", func(r *Run) (Figure, bool) {
				row := r.row(fmt.Sprintf(d.scene, load), told)
				if row == nil {
					return Figure{}, false
				}
				f := Figure{Value: row.Even}
				if finds := r.row(fmt.Sprintf(d.scene, load), auto); finds != nil {
					f.Note = "a limit that finds itself, from cold: " + number(finds.Even)
				}
				return f, true
			}))
		}
	}
	for _, load := range []float64{3, 10} {
		all = append(all,
			p(fmt.Sprintf("p50 at %gx, of all that get a slot", load), false, 60, " ms", "", inProcess(load, false, func(r *virtual.Row) float64 { return r.P50 })),
			p(fmt.Sprintf("p99 at %gx, late ones included", load), false, 400, " ms", "", inProcess(load, false, func(r *virtual.Row) float64 { return r.P99 })),
			p(fmt.Sprintf("the median refusal is told at %gx after", load), false, 1, " ms", "", inProcess(load, false, func(r *virtual.Row) float64 { return r.No50 })),
		)
	}
	all = append(all, p("goodput at 3x and 10x of a limit that finds itself, from cold, the worst", true, 0.99, "", coldReason, func(r *Run) (Figure, bool) {
		w := worst{least: true}
		for _, load := range []float64{3, 10} {
			for _, d := range deadlines {
				if row := r.row(fmt.Sprintf(d.scene, load), auto); row != nil {
					w.add(row.Even, fmt.Sprintf("at %gx, deadlines of %s; in the second half of the window %s", load, d.name, number(row.EvenSteady)))
				}
			}
		}
		return w.figure()
	}))
	return append(all, p("rivals that reach all of it", false, 0, "", "A rival has caught up.", func(r *Run) (Figure, bool) {
		if r.Virtual == nil || r.row("exponential 10x", told) == nil { // some scenes are not all at once
			return Figure{}, false
		}
		f := Figure{}
		for _, c := range r.Virtual.Data.Contestants {
			if c.Name != told && c.Name != auto && r.reaches(c.Name) {
				f.Value++
				f.Note = c.Name
			}
		}
		return f, true
	}))
}

// reaches reports whether a contestant has all of it at once. Who does not look at its context
// does the same whatever the deadline, and plays with one of 2 s alone: of that, what is
// answered within 400 ms is what is in time.
func (r *Run) reaches(contestant string) bool {
	for _, load := range []float64{1, 3, 10} {
		for _, d := range deadlines {
			row := r.row(fmt.Sprintf(d.scene, load), contestant)
			quick := 1.0
			if row == nil {
				if row = r.row(fmt.Sprintf(deadlines[0].scene, load), contestant); row == nil {
					return false // what has no bound on its queue does not play 10x
				}
				quick = quickly(row) / max(row.Even, 1e-9)
			}
			if load == 1 && row.Refused > 0.02 || load > 1 && (row.Even*quick < 0.99 || row.P50 > 60 || row.P99 > 400 || row.No50 > 1) {
				return false
			}
		}
	}
	return true
}

func untuned() []Promise {
	var all []Promise
	for _, load := range []float64{1.5, 3, 10} {
		all = append(all, Promise{
			Line: lineUntuned, Text: fmt.Sprintf("goodput at %gx, the worst of nine scenes", load), Part: PartCore, Least: true, Bound: 0.99,
			measure: func(r *Run) (Figure, bool) {
				w := worst{least: true}
				if r.Core != nil {
					for _, o := range r.Core.Data.Grid {
						if o.Load == load {
							w.add(o.Goodput.Median, fmt.Sprintf("%s, %d slots", o.Work, o.Slots))
						}
					}
				}
				return w.figure()
			},
		})
	}
	all = append(all, Promise{
		Line: lineUntuned, Text: "p99, the worst of all of them", Part: PartCore, Bound: 400, Unit: " ms",
		measure: func(r *Run) (Figure, bool) {
			w := worst{}
			if r.Core != nil {
				for _, o := range r.Core.Data.Grid {
					w.add(o.P99.Largest, fmt.Sprintf("%s, %d slots, %gx", o.Work, o.Slots, o.Load))
				}
			}
			return w.figure()
		},
	})
	all = append(all, finds()...)
	return append(all, atEdge(), hardest())
}

// atEdge is the p99 of work that takes as long as the objective leaves it.
func atEdge() Promise {
	return Promise{
		Line: lineUntuned, Text: "p99 where the work leaves no room: half of the objective, 8 slots at 1.5x, callers that leave after 2 s", Part: PartVirtual, Bound: 400, Unit: " ms",
		Reason: edgeReason,
		measure: func(r *Run) (Figure, bool) {
			w := worst{}
			missed, finds := 0, worst{}
			for _, e := range edges {
				if row := r.row(e.name, auto); row != nil {
					finds.add(row.P99, "")
				}
				if row := r.row(e.name, told); row != nil {
					w.add(row.P99, e.words)
					if row.P99 > 400 {
						missed++
					}
				}
			}
			f, ok := w.figure()
			if ok {
				f.Note += fmt.Sprintf("; %d of %d scenes miss it, in the median of the seeds; a limit that finds itself, from cold: %s ms, its worst", missed, len(edges), number(finds.value))
			}
			return f, ok
		},
	}
}

// hardest is what the grid leaves out.
func hardest() Promise {
	return Promise{
		Line: lineHard, Text: "goodput behind the best known discipline, the worst of the scenes below", Part: PartCore, Bound: 0.01,
		Reason: hardReason,
		measure: func(r *Run) (Figure, bool) {
			w := worst{}
			missed := 0
			if r.Core != nil {
				for _, h := range r.Core.Data.Hard {
					w.add(h.Behind, fmt.Sprintf("%s, %s of %g ms, %gx, callers that leave after %s", slotsOf(h.Slots), h.Work, h.Mean, h.Load, spanOf(h.Deadline)))
					if h.Behind > 0.01 {
						missed++
					}
				}
			}
			f, ok := w.figure()
			if missed > 0 {
				f.Note += fmt.Sprintf("; %d of %d scenes miss it", missed, len(r.Core.Data.Hard))
			}
			return f, ok
		},
	}
}

// finds are the same scenes before a limit that finds itself.
func finds() []Promise {
	worstOf := func(least bool, of func(simulated.Overload) float64) func(*Run) (Figure, bool) {
		return func(r *Run) (Figure, bool) {
			w := worst{least: least}
			if r.Core != nil {
				for _, o := range r.Core.Data.Finds {
					w.add(of(o), fmt.Sprintf("%s, %d slots, %gx", o.Work, o.Slots, o.Load))
				}
			}
			return w.figure()
		}
	}
	return []Promise{
		{
			Line: lineUntuned, Text: "goodput of a limit that finds itself and has had 20 s, the worst of all 27", Part: PartCore, Least: true, Bound: 0.99,
			measure: worstOf(true, func(o simulated.Overload) float64 { return o.Goodput.Median }),
		},
		{
			Line: lineUntuned, Text: "its p99, the worst of all 27", Part: PartCore, Bound: 400, Unit: " ms",
			measure: worstOf(false, func(o simulated.Overload) float64 { return o.P99.Largest }),
		},
	}
}

func sized() []Promise {
	var all []Promise
	for _, load := range []float64{0.65, 1, 2, 3} {
		all = append(all, Promise{
			Line: lineSized, Text: fmt.Sprintf("of what one server of twice the speed could serve who knew the future, at %gx", load), Part: PartCore, Least: true, Bound: 0.95,
			measure: func(r *Run) (Figure, bool) {
				if r.Core != nil {
					for _, s := range r.Core.Data.Trace {
						if s.Load == load {
							return Figure{Value: s.OfBound.Median, Low: s.OfBound.Smallest, High: s.OfBound.Largest}, true
						}
					}
				}
				return Figure{}, false
			},
		})
	}
	return all
}

func hot() []Promise {
	p := func(text string, bound float64, unit, reason string, measure func(rows []*passes.Row) (Figure, bool)) Promise {
		return Promise{Line: lineHot, Text: text, Part: PartHot, Bound: bound, Unit: unit, Reason: reason, measure: func(r *Run) (Figure, bool) {
			if r.Hot == nil {
				return Figure{}, false
			}
			return measure(r.Hot.Data.Rows)
		}}
	}
	ratio := func(benchmark, ours, theirs string) func([]*passes.Row) (Figure, bool) {
		return func(rows []*passes.Row) (Figure, bool) {
			a, b := passes.Find(rows, benchmark, 1, ours), passes.Find(rows, benchmark, 1, theirs)
			v := a.Over(b)
			if len(v) == 0 {
				return Figure{}, false
			}
			s := proxies.SpreadOf(v)
			return Figure{s.Median, s.Smallest, s.Largest, fmt.Sprintf("%s ns of %s ns", number(passes.Median(a.Nanos)), number(passes.Median(b.Nanos)))}, true
		}
	}
	of := func(benchmark, ours string, figure func(*passes.Row) Figure) func([]*passes.Row) (Figure, bool) {
		return func(rows []*passes.Row) (Figure, bool) {
			if row := passes.Find(rows, benchmark, 1, ours); row != nil {
				return figure(row), true
			}
			return Figure{}, false
		}
	}
	allocs := func(r *passes.Row) Figure { return Figure{Value: r.Allocs} }
	nanos := func(r *passes.Row) Figure {
		s := proxies.SpreadOf(r.Nanos)
		return Figure{Value: s.Median, Low: s.Smallest, High: s.Largest}
	}
	return []Promise{
		p("admit and release with a fixed limit, of x/sync's semaphore", 1.3, "", "", ratio("AcquireRelease", "goodput", "xsync")),
		p("allocations of it", 0, "", "", of("AcquireRelease", "goodput", allocs)),
		p("admit and release with a limit that finds itself and the pressure of scheduler and cgroup, of failsafe-go's adaptive limiter", 0.35, "", "", ratio("AcquireRelease", "goodput-auto", "failsafe-adaptive")),
		p("allocations of it", 0, "", "", of("AcquireRelease", "goodput-auto", allocs)),
		p("a refusal of a fixed limit whose queue is full", 1000, " ns", "", of("Refusal", "goodput", nanos)),
		p("allocations of it", 0, "", "", of("Refusal", "goodput", allocs)),
	}
}
