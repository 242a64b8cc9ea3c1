package simulated

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/internal/sim"
)

// A Hard is a scene in which nobody can have it all, and what the best of other disciplines
// makes of it.
type Hard struct {
	Work     string  `json:"work"`
	Slots    int     `json:"slots"`
	Mean     float64 `json:"mean_ms"`
	Load     float64 `json:"load_x"`
	Deadline float64 `json:"deadline_ms"`

	Goodput Spread  `json:"goodput"`
	P99     float64 `json:"p99_ms"`

	// Best is the best of the others, by its median. Where callers wait longer than the
	// objective, it is the best of those that keep the objective, or miss it by no more
	// than goodput does: without one a longer queue is always better.
	Best        string  `json:"best"`
	BestGoodput Spread  `json:"best_goodput"`
	BestP99     float64 `json:"best_p99_ms"`
	BestTold    float64 `json:"best_refusal_p50_ms"` // until one that it refuses knows, or has left; goodput tells at once
	Tried       int     `json:"tried"`               // others

	Behind  float64 `json:"behind"`  // the best, in the median; below 0: ahead
	Ceiling float64 `json:"ceiling"` // of who knows every arrival and its work beforehand
}

// others are the disciplines that a limit of so many slots may have, each with a range of
// what its owner has to choose: the depth of a queue and the margin of the doomed test.
func others(slots int, work sim.Dist) (all []sim.Policy, err error) {
	add := func(name string, depth int, label string) {
		p, e := sim.Named(name, slots, depth, work)
		if e != nil {
			err = e
		}
		p.Name = label
		all = append(all, p)
	}
	for _, name := range []string{"fifo_doomed_mean", "fifo_doomed_p95", "fifo_doomed_p99", "codel", "edf_expiry", "reject"} {
		add(name, 0, name)
	}
	for _, depth := range []int{1, 2, 3, 4, 6, 8, 16, 32, 64} {
		for _, name := range []string{"fifo", "lifo"} {
			add(name, depth, fmt.Sprintf("%s, depth %d", name, depth))
		}
	}
	for _, quantile := range []float64{0.5, 0.8, 0.9, 0.95} {
		doomed := func(name string, order sim.Discipline) {
			all = append(all, sim.Policy{
				Name:     fmt.Sprintf("%s, doomed p%.0f", name, 100*quantile),
				Baseline: &sim.Baseline{Limit: slots, Depth: sim.Unbounded, Order: order, Expire: true, Margin: work.Quantile(quantile)},
			})
		}
		doomed("edf", sim.EDF)
		doomed("lifo", sim.LIFO)
	}
	return all, err
}

// hard is what the grid leaves out: fewer than 8 slots, and work of which the slowest percent
// takes more than half of the objective. What waits when the arrivals end is served in peace,
// which favours who has a deep queue: newest first, of all that come in 0.4 s, 0.4 % of 100 s.
func hard(s Setup, r *Result) error {
	const second = time.Second
	for _, c := range []scene{
		{exponential, 1, 50 * ms, 1.5, Objective, 1000 * second},
		{exponential, 1, 50 * ms, 3, Objective, 1000 * second},
		{exponential, 2, 50 * ms, 1.5, Objective, 600 * second},
		{exponential, 4, 50 * ms, 1.5, Objective, 400 * second},
		{exponential, 60, 50 * ms, 1.5, Objective, 100 * second},
		{exponential, 60, 100 * ms, 3, Objective, 100 * second},
		{wide, 60, 50 * ms, 1.5, Objective, 100 * second},
		{wide, 60, 50 * ms, 3, Objective, 100 * second},
		{wide, 4, 50 * ms, 1.5, Objective, 400 * second},
		{exponential, 1, 50 * ms, 1.5, 2 * second, 1000 * second},
		{exponential, 4, 50 * ms, 1.5, 2 * second, 400 * second},
	} {
		c.length = s.length(c.length)
		h, err := c.hard(r.Seeds)
		if err != nil {
			return err
		}
		r.Hard = append(r.Hard, h)
	}
	return nil
}

func (s scene) hard(seeds []uint64) (Hard, error) {
	o, err := s.overload(seeds)
	if err != nil {
		return Hard{}, err
	}
	h := Hard{
		Work: o.Work, Slots: o.Slots, Mean: o.Mean, Load: o.Load, Deadline: o.Deadline, Goodput: o.Goodput, P99: o.P99.Median,
	}
	all, err := others(s.slots, s.work.of(s.mean))
	if err != nil {
		return Hard{}, err
	}
	best := -1.0
	for _, p := range all {
		var goodput, p99, told []float64
		for _, seed := range seeds {
			r, err := s.play(p, seed)
			if err != nil {
				return Hard{}, err
			}
			goodput, p99 = append(goodput, s.goodput(r)), append(p99, milliseconds(&r.Total.Latency, 0.99))
			// Whoever is never served is told when its turn comes, but has left before.
			told = append(told, min(milliseconds(&r.Total.Told, 0.5), s.deadline.Seconds()*1e3))
		}
		// By the median: the best of each seed would be whom chance has favoured in it.
		g, slow := spreadOf(goodput), spreadOf(p99).Median
		if s.deadline > Objective && slow > max(Objective.Seconds()*1e3, h.P99) {
			continue
		}
		if g.Median > best {
			best = g.Median
			h.Best, h.BestGoodput, h.BestP99, h.BestTold = p.Name, g, slow, spreadOf(told).Median
		}
	}
	h.Tried, h.Behind = len(all), best-h.Goodput.Median
	var ceilings []float64
	for _, seed := range seeds {
		c, err := s.scenario(ours(s.slots)).Ceilings(seed)
		if err != nil {
			return Hard{}, err
		}
		ceilings = append(ceilings, c.Clairvoyant)
	}
	h.Ceiling = spreadOf(ceilings).Median
	return h, nil
}
