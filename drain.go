package goodput

import (
	"context"
	"time"
)

// Drain ends the service of the limiter: newcomers are refused with the reason
// draining, who waits is served, who runs ends. It returns nil once nobody waits
// or runs. If ctx is over first, it refuses whoever still waits and returns the
// error of ctx; what runs goes on, because nothing can stop it but its own
// context. Exempt requests are not waited for.
//
// Several calls may be made; a limiter once drained stays so. In observe mode
// nothing is refused, and Drain only waits; once that is switched off newcomers are refused.
func (l *Limiter) Drain(ctx context.Context) error {
	now := l.enter()
	l.draining = true // leave lends nothing from here on
	l.drainCall(now, false)
	clear(l.refusals[:])
	if l.drained == nil {
		l.drained = make(chan struct{})
	}
	drained := l.drained
	l.leave(now) // closes it if nobody waits or runs
	select {
	case <-drained:
		return nil
	default:
	}
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
	}
	now = l.enter()
	l.drainCall(now, true)
	l.leave(now)
	select {
	case <-drained:
		return nil
	default:
		return ctx.Err()
	}
}

// takeDrained returns the channel on which calls of Drain wait if nobody waits
// or runs any more. The caller holds the lock and closes it after unlocking.
func (l *Limiter) takeDrained(now time.Duration) chan struct{} {
	if l.drained == nil || !l.isIdle(now) {
		return nil
	}
	drained := l.drained
	l.drained = nil
	return drained
}

func (l *Limiter) isIdle(now time.Duration) bool {
	s, _ := l.apart(now, l.statsCall(now))
	return s.Waiting == 0 && s.Running == 0
}
