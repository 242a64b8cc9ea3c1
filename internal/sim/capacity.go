package sim

import "slices"

// A demand is what requests want of a resource.
type demand struct {
	n     float64 // how many they are, or visits
	units float64 // their work times the slots that it takes
	alone float64 // their work
	cost  float64 // their cost
}

// add adds n requests of the given work and cost.
func (d *demand) add(n, work, cost float64) {
	d.n += n
	d.units += n * work * cost
	d.alone += n * work
	d.cost += n * cost
}

// record counts a recorded request by what it says itself, and by the mean of what
// was drawn for it: the ratio is about means.
func (c *class) record(r *call, drawn bool) {
	work := float64(r.service)
	if drawn {
		work = c.average
		if c.sizes != nil {
			work *= float64(r.size)
		}
	}
	c.recorded.add(1, work, float64(r.cost))
}

// capacity fills in what the resources can do of the mix that came, as fast as an
// allowance lets them.
//
// Tiers that share requests are one system, whose narrowest tier bounds it. Systems
// that share none do not slow one another down: where one of them is overloaded, the
// capacity of the whole is what each can do of its own.
func (w *world) capacity() {
	r := w.result
	demands := w.demands()
	offered := 0.0
	for i := range r.Classes {
		offered += float64(r.Classes[i].Requests) / r.Window.Seconds()
	}
	system := w.systems()
	busiest := make([]float64, len(w.tiers)) // of each system: slots wanted over slots there are
	for i, t := range w.tiers {
		d := &demands[i]
		if t.slots() == 0 || d.units == 0 {
			continue
		}
		best := w.best(t, d.units/d.alone)
		r.Tiers[i].Capacity = best / d.units * d.n
		busiest[system[i]] = max(busiest[system[i]], offered*d.units/best)
		if a := t.allowed(); a > 0 {
			r.Tiers[i].Capacity = min(r.Tiers[i].Capacity, a/d.cost*d.n)
			busiest[system[i]] = max(busiest[system[i]], offered*d.cost/a)
		}
	}
	top := slices.Max(busiest)
	switch {
	case top == 0: // nothing is bounded: everything that comes can be done
		r.Capacity = offered
	case top <= 1:
		r.Capacity = offered / top
	default:
		for i, c := range w.classes {
			mine := float64(r.Classes[i].Requests) / r.Window.Seconds()
			r.Capacity += mine / max(busiest[system[c.entry.index]], 1)
		}
	}
}

// best returns the most slots worth of work that the resource of t does at once and at
// the speed of 1, mean over the window.
func (w *world) best(t *tier, each float64) float64 {
	speed := newTimeline(t.Speed, stream(w.result.Seed, streamSpeed, t.index))
	slots, from, sum := t.slots(), w.Warmup, 0.0
	for _, s := range t.SlotSteps {
		if at := min(s.At, w.Length); at > from {
			sum += t.best(slots, each) * speed.mean(from, at) * float64(at-from)
			from = at
		}
		slots = s.Slots
	}
	if from < w.Length {
		sum += t.best(slots, each) * speed.mean(from, w.Length) * float64(w.Length-from)
	}
	return sum / float64(w.Length-w.Warmup)
}

// best returns the most slots worth of work that so many slots do at once, of
// requests that take each of them, on average over their work: all slots, or
// fewer where contention makes less more.
func (t *tier) best(slots int, each float64) float64 {
	if t.Contention == (Contention{}) {
		return float64(slots)
	}
	most := 0.0
	for n := 1; n == 1 || float64(n)*each <= float64(slots)*(1+1e-12); n++ {
		most = max(most, min(float64(n)*each, float64(slots))/t.Contention.at(n, 0))
	}
	return most
}

// systems returns, for each tier, the first tier of those that it shares requests with.
func (w *world) systems() []int {
	first := make([]int, len(w.tiers))
	for i := range first {
		first[i] = i
	}
	for range w.tiers { // as often as a request may go on
		for i, t := range w.tiers {
			if t.Next != nil {
				least := min(first[i], first[t.Next.Tier])
				first[i], first[t.Next.Tier] = least, least
			}
		}
	}
	return first
}

// demands returns what a request of a client wants of each tier, in seconds, mean
// over what came.
func (w *world) demands() []demand {
	demands := make([]demand, len(w.tiers))
	total := 0.0
	for i, c := range w.classes {
		n := float64(w.result.Classes[i].Requests)
		if n == 0 {
			continue
		}
		total += n
		d := &demands[c.entry.index]
		d.add(n-c.recorded.n, c.average/1e9*c.meanSize(), float64(max(c.Cost, 1)))
		d.n += c.recorded.n
		d.units += c.recorded.units / 1e9
		d.alone += c.recorded.alone / 1e9
		d.cost += c.recorded.cost
		for t := c.entry; t.Next != nil && !c.Local; {
			n *= float64(t.Next.least())
			work := w.fanWork(t.Next).average().Seconds()
			t = w.tiers[t.Next.Tier]
			demands[t.index].add(n, work, 1)
		}
	}
	for i := range demands {
		d := &demands[i]
		d.n, d.units, d.alone, d.cost = d.n/max(total, 1), d.units/max(total, 1), d.alone/max(total, 1), d.cost/max(total, 1)
	}
	return demands
}

func (c *class) meanSize() float64 {
	if len(c.Sizes) == 0 {
		return 1
	}
	sum, last := 0.0, 0.0
	for i, s := range c.Sizes {
		sum += float64(s.Units) * (c.sizes[i] - last)
		last = c.sizes[i]
	}
	return sum
}
