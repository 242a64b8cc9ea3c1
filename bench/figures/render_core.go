package figures

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goodput/goodput/bench/figures/simulated"
)

// core is what the core does in simulated time.
func core(p *page, r *Run) {
	if r.Core == nil {
		return
	}
	c := &r.Core.Data
	p.say("## In simulated time: the core where it is hard")
	p.say("The same admission code on a clock of its own; everything here but the speed follows from the seeds (%s) to the last bit. Ratios are at the mean of the work that was served, so that the draws of a run do not move them.", list(c.Seeds))
	grid(p, c)
	hardScenes(p, c)
	p.say("### A trace of requests to a language model, whose sizes are known")
	p.say("The Azure trace of 2023 (%d requests), a request taking 0.1 ms for each token that it reads and 20 ms for each that it writes; two slots, callers that wait for 10 s, time stretched to each load. The bound is what one server of twice the speed could serve who knew the future. Means of three rotations, of the others as well; in brackets their range.", c.Trace[0].Requests)
	p.head(1, "load", "bound", "goodput, told each size", "of the bound", "without sizes", "best of eight others")
	for _, s := range c.Trace {
		p.row(fmt.Sprintf("%gx", s.Load), share(s.Bound), share(s.Known), spread(s.OfBound), share(s.Blind), fmt.Sprintf("%s (%s)", share(s.Rival), s.Best))
	}
	p.end()
	p.say("### A capacity that changes, and a stall")
	p.say("60 slots of 50 ms at 1.5x; after 20 s capacity halves, after 40 s it is restored; eight seeds, a limit that finds itself. *95 %% again* is the start of the first 2 s of which 95 %% of what can be is in time: later ones may have less.")
	p.head(1, "what halves", "first 10 s, of the new capacity", "95 % again after s")
	for _, s := range c.Steps {
		p.row("the "+s.What, spread(s.First), spread(s.Restored))
	}
	p.end()
	p.say("A stall of 5 s at 0.9x, with clients that ask three times, 0.1 s apart, and have no budget for it:")
	p.head(1, "policy", "callers leave after", "all is well again after s", "never, of the seeds")
	for _, s := range c.Stalls {
		back := spread(s.Back)
		if s.Never > 0 {
			back = "-"
		}
		p.row(s.Policy, spanOf(s.Deadline), back, fmt.Sprintf("%d of %d", s.Never, len(c.Seeds)))
	}
	p.end()
	p.say("### The simulator")
	p.head(1, "60 slots of 50 ms, behind", "load", "million requests per second of a processor")
	for _, s := range c.Speeds {
		p.row(s.Policy, fmt.Sprintf("%gx", s.Load), fmt.Sprintf("%.2f (%.2f to %.2f)", s.Rate.Median/1e6, s.Rate.Smallest/1e6, s.Rate.Largest/1e6))
	}
	p.end()
}

func share(x float64) string { return fmt.Sprintf("%.3f", x) }

func spread(s simulated.Spread) string {
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Smallest), number(s.Largest))
}

// grid is the table of scenes that need no tuning.
func grid(p *page, c *simulated.Result) {
	p.say("### No tuning")
	p.say("Work of 20 ms, of which the slowest percent takes 20, 92 and 127 ms, within half of the objective; callers that leave after it. Goodput and p99 in ms, medians of the seeds. Nothing is set but the number of slots and the objective: it is the depth that is not tuned. Below it the same before a limit that finds itself, to which nobody tells the slots either, once it has had 20 s. Latencies of all tables in simulated time come from buckets of 9.1 %% (385.6 to 420.4 ms is one): a p99 of 419 ms may be one of 400.")
	gridRows(p, c.Grid)
	if len(c.Finds) == 0 {
		return
	}
	p.say("The same, by a limit that finds itself:")
	gridRows(p, c.Finds)
}

func gridRows(p *page, all []simulated.Overload) {
	loads := []float64{1.5, 3, 10}
	columns := []string{"work", "slots"}
	for _, l := range loads {
		columns = append(columns, fmt.Sprintf("%gx", l), "p99")
	}
	p.head(1, columns...)
	var seen []string
	for _, o := range all {
		key := fmt.Sprint(o.Work, o.Slots)
		if slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		cells := []string{o.Work, fmt.Sprint(o.Slots)}
		for _, l := range loads {
			goodput, p99 := "-", "-"
			for _, g := range all {
				if g.Work == o.Work && g.Slots == o.Slots && g.Load == l {
					goodput, p99 = share(g.Goodput.Median), fmt.Sprintf("%.0f", g.P99.Median)
				}
			}
			cells = append(cells, goodput, p99)
		}
		p.row(cells...)
	}
	p.end()
}

// hardScenes is the table of what the grid leaves out, beside the best there is.
func hardScenes(p *page, c *simulated.Result) {
	p.say("### Few slots, and work that varies much")
	p.say("Beside the best of %d other disciplines: FIFO, newest first, earliest deadline and CoDel, each with a range of depths and of margins of the doomed test, chosen with hindsight. Where callers wait longer than the objective, only those count that keep the objective as well as goodput does. The ceiling knows every arrival and its work beforehand and serves the short: nobody here does.", c.Hard[0].Tried)
	p.head(1, "work", "slots", "load", "callers leave after", "goodput", "p99 ms", "best other", "has", "p99 ms", "tells a refusal after ms (p50)", "behind it", "ceiling")
	var lost []string
	for _, h := range c.Hard {
		behind := fmt.Sprintf("%.3f", h.Behind)
		if h.Behind < 0 {
			behind = "ahead"
		}
		p.row(fmt.Sprintf("%s, %g ms", h.Work, h.Mean), fmt.Sprint(h.Slots), fmt.Sprintf("%gx", h.Load), spanOf(h.Deadline), share(h.Goodput.Median), fmt.Sprintf("%.0f", h.P99),
			h.Best, share(h.BestGoodput.Median), fmt.Sprintf("%.0f", h.BestP99), fmt.Sprintf("%.0f", h.BestTold), behind, share(h.Ceiling))
		if h.Behind > 0.01 {
			lost = append(lost, fmt.Sprintf("%s, %s work of %g ms, at %gx, by %.1f points", slotsOf(h.Slots), h.Work, h.Mean, h.Load, 100*h.Behind))
		}
	}
	p.end()
	if len(lost) == 0 {
		p.say("Nobody is more than a point better.")
		return
	}
	p.say("Where we lose by more than a point: %s.", strings.Join(lost, "; "))
}

// lawsOf is what laws of others make of the scenarios of the suite.
func lawsOf(p *page, r *Run) {
	if r.Laws == nil {
		return
	}
	l := &r.Laws.Data
	p.say("## Limits that find themselves: laws of others in the same core")
	p.say("%d scenarios, %s requests, in simulated time. Each law stands in the same core with the same queue, arrivals and work, and its ratio is to an oracle that knows the slots; in the mean, what is above 1 counts as 1. `limit.Auto` is ours; gcl are what the Go port makes of the laws of Netflix.", scenariosOf(l), number(float64(l.Requests)))
	p.head(1, "law", "mean", "worst", "in")
	var names []string
	for _, row := range l.Rows {
		if !slices.Contains(names, row.Law) {
			names = append(names, row.Law)
		}
	}
	for _, name := range names {
		w := worst{least: true}
		sum, n := 0.0, 0.0
		for _, row := range l.Rows {
			if row.Law == name && row.Ratio != nil {
				w.add(*row.Ratio, row.Scenario)
				sum, n = sum+min(*row.Ratio, 1), n+1
			}
		}
		if n > 0 {
			p.row(name, share(sum/n), share(w.value), w.note)
		}
	}
	p.end()
	p.say("What the suite asks of ours:")
	p.head(3, "criterion", "", "the worst")
	for _, c := range l.Criteria {
		word := "met"
		if !c.Met {
			word = "**MISSED**"
		}
		p.row(c.Text, word, c.Measured)
	}
	p.end()
	if slices.ContainsFunc(l.Criteria, func(c LawCriterion) bool { return !c.Met }) {
		p.say("What is missed is asked of every scenario, the worst included: a service that takes twice as long on twice as many slots looks like one that does not change; instances that share a resource cannot see their own effect, so their shares drift; and whole steps of a few slots are more than a tenth of a small limit.")
	}
}

func scenariosOf(l *Laws) int {
	var names []string
	for _, row := range l.Rows {
		if !slices.Contains(names, row.Scenario) {
			names = append(names, row.Scenario)
		}
	}
	return len(names)
}
