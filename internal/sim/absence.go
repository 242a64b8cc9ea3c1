package sim

import (
	"errors"
	"fmt"
	"time"
)

// An Absence is a time in which the limiters of a tier have nothing to run work on, and know it:
// the servers behind them are down. What runs when it begins ends as it would have, as it
// does where servers are stopped in good order. Beside a Restart, in which the limiter itself is gone.
type Absence struct {
	At  time.Duration
	For time.Duration // above 0
}

func (t *Tier) validateAbsences() error {
	if len(t.Absences) > maxParts {
		return fmt.Errorf("absences are %d: at most %d", len(t.Absences), maxParts)
	}
	if len(t.Absences) > 0 && t.Policy.Core == nil {
		return errors.New("absences are for a policy with a core: a baseline knows nothing of them")
	}
	var last time.Duration
	for i, a := range t.Absences {
		if err := follows(a.At, last, "the end of the one before it"); err != nil {
			return fmt.Errorf("absence %d: %w", i+1, err)
		}
		if a.For <= 0 || a.For > maxTime {
			return fmt.Errorf("absence %d: for %v is out of range: above 0, to %v", i+1, a.For, maxTime)
		}
		last = a.At + a.For
	}
	return nil
}

// turn begins an absence of a tier or ends it.
func (w *world) turn(t *tier, present bool) {
	t.absent = !present
	for _, in := range t.instances {
		if !in.down {
			in.core.SetPresent(w.now, present)
			w.collect(in)
		}
	}
}

// scheduleAbsences has them begin and end.
func (w *world) scheduleAbsences(t *tier) {
	for _, a := range t.Absences {
		w.events.push(event{at: a.At, what: turns, who: int32(t.index), gen: 0})
		w.events.push(event{at: a.At + a.For, what: turns, who: int32(t.index), gen: 1})
	}
}
