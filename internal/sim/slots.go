package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// The number of slots of a resource may change, as that of a database does when a
// replica is lost, and what it does then is the question to every limit that finds itself.
// So its answers are kept too: the limits, and how much is at the resource, over time.

// A SlotStep changes the slots of the resource for good. Where they become fewer, the work
// that is under way goes on, and nothing begins until it fits.
type SlotStep struct {
	At    time.Duration
	Slots int // 1 to 100,000
}

func (t *Tier) validateSteps() error {
	if len(t.SlotSteps) > maxParts {
		return fmt.Errorf("slot steps are %d: at most %d", len(t.SlotSteps), maxParts)
	}
	if len(t.SlotSteps) > 0 && t.Slots == 0 {
		return fmt.Errorf("slot steps change slots of which there are none: say how many there are at first")
	}
	var last time.Duration
	for i, s := range t.SlotSteps {
		if err := follows(s.At, last, "the one before it"); err != nil {
			return fmt.Errorf("slot step %d: %w", i+1, err)
		}
		if s.Slots < 1 || s.Slots > maxParts {
			return fmt.Errorf("slot step %d: slots %d is out of range: 1 to %d; a stall stops everything", i+1, s.Slots, maxParts)
		}
		last = s.At
	}
	return nil
}

// fewest is how many slots the resource always has.
func (t *Tier) fewest() int {
	n := t.slots()
	for _, s := range t.SlotSteps {
		n = min(n, s.Slots)
	}
	return n
}

// together is the speed of all slots together, relative to that of the fewest.
func (t *Tier) together() *Speed {
	s := t.Speed
	s.Steps = nil
	slots, factor, fewest := float64(t.Slots), 1.0, float64(t.fewest())
	add := func(at time.Duration) {
		s.Steps = append(s.Steps, SpeedStep{at, factor * slots / fewest})
	}
	add(0)
	for i, k := 0, 0; i < len(t.SlotSteps) || k < len(t.Speed.Steps); {
		if k == len(t.Speed.Steps) || i < len(t.SlotSteps) && t.SlotSteps[i].At < t.Speed.Steps[k].At {
			slots = float64(t.SlotSteps[i].Slots)
			add(t.SlotSteps[i].At)
			i++
		} else {
			factor = t.Speed.Steps[k].Factor
			add(t.Speed.Steps[k].At)
			k++
		}
	}
	return &s
}

// A gauge adds up a level over time, in the window.
type gauge struct {
	level      float64
	since      time.Duration // when it was added up last
	sum, sumsq float64       // level and its square, times nanoseconds
}

// set notes that the level is to be v from now on.
func (m *gauge) set(w *world, v float64) {
	if v == m.level {
		return
	}
	m.add(w)
	m.level = v
}

// add adds up what has been since it was added up last.
func (m *gauge) add(w *world) {
	if d := min(w.now, w.Length) - max(m.since, w.Warmup); d > 0 {
		part := m.level * float64(d)
		m.sum += part
		m.sumsq += m.level * part
	}
	m.since = w.now
}

// over returns what the level was over the window.
func (m *gauge) over(window time.Duration) Average {
	mean := m.sum / float64(window)
	return Average{mean, math.Sqrt(max(m.sumsq/float64(window)-mean*mean, 0))}
}

// crowd notes that so many units more are at the resource of t.
func (w *world) crowd(t *tier, more int) {
	n := t.crowd.level + float64(more)
	t.crowd.set(w, n)
	t.result.PeakInFlight = max(t.result.PeakInFlight, int(n))
}

// begin returns the limit of in at first, and notes whether it never moves.
func (in *instance) begin() int {
	if in.core == nil {
		return in.queue.Limit
	}
	n, _ := in.tier.cores().Limit.Start() // validated
	_, in.still = in.tier.cores().Limit.(limit.Fixed)
	return n
}

// average adds up the levels to the end. Whoever asks has played all arrivals.
func (w *world) average() {
	for _, t := range w.tiers {
		t.crowd.add(w)
		t.result.InFlight = t.crowd.over(w.result.Window).Mean
		for _, in := range t.instances {
			in.limit.add(w)
			t.result.Limits = append(t.result.Limits, in.limit.over(w.result.Window))
		}
	}
}
