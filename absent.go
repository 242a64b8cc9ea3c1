package goodput

import "time"

// SetPresent says whether there is anything to run work on; at first there is. Say false when the
// last server behind the limiter has gone, and true when one is back; the same again changes
// nothing, and it may be called from any goroutine. Meanwhile nobody is admitted, whatever the
// limit is, the limit is not judged by what happens, and who comes waits for Config.MaxAbsence at
// most, to be refused as unavailable, as are those that wait already once it has lasted for so
// long: a restart of half a second loses nothing, and a longer one is told soon. What runs goes
// on. To pause a resource for as long as it takes, use SetLimit(0).
//
// In observe mode everybody runs all the same; the shadow decides as if they did not.
func (l *Limiter) SetPresent(present bool) {
	now := l.enter()
	l.setPresentCall(now, present)
	clear(l.refusals[:]) // they would tell of before
	l.leave(now)
}

// explainAbsent says that there is nothing to run work on, since when, and what becomes of
// those who wait.
func explainAbsent(f *facts, s *Stats) {
	if absent, bound := s.absent(); absent > 0 {
		f.add("absent", "nothing to run work on since %v: who waits is refused as unavailable after %v", short(absent), short(bound))
	}
}

// absent returns for how long there has been nothing to run work on, and how long anybody waits
// for it; 0 if there is something.
func (s *Stats) absent() (absent, bound time.Duration) {
	core := &s.Stats
	if s.Observe {
		core = &s.Shadow
	}
	if !core.Absent {
		return 0, 0
	}
	return max(core.AbsentFor, 1), core.MaxAbsence
}
