package listen

import (
	"context"
	"time"
)

// Under a sustained overload each new connection brings more of what is going to be
// refused. With Listener.PauseAccepts they come one by one, that long apart, and the rest
// waits where it costs us nothing: in the accept queue and in the clients' kernels. The
// connections that are open are served as ever.

const (
	// standing is how long everything has to be overloaded before accepts are held back: a
	// burst that the queues take in is no reason to slow down who comes after it.
	standing = time.Second

	// lookEvery: ten looks in standing, so it begins a tenth late at most.
	lookEvery = standing / 10

	// longestPause: a client whose handshake is done waits for us, and knows of no reason.
	longestPause = time.Second
)

// Pause says whether accepts are to be held back from now on.
func (l *Listener) Pause(on bool) { l.pausing.Store(on) }

// pause waits between two accepts if it was told to.
func (l *Listener) pause() {
	if !l.pausing.Load() || l.cfg.PauseAccepts <= 0 {
		return
	}
	start := time.Now()
	l.sleep(min(l.cfg.PauseAccepts, longestPause))
	l.counts.paused.Add(int64(time.Since(start)))
}

// A pauser decides from what it is told at each look.
type pauser struct {
	since time.Time // of the overload; zero without one
}

// step returns whether to hold back: once the overload has stood for long enough, and not a
// look longer than it does.
func (p *pauser) step(now time.Time, overloaded bool) bool {
	switch {
	case !overloaded:
		p.since = time.Time{}
		return false
	case p.since.IsZero():
		p.since = now
	}
	return now.Sub(p.since) >= standing
}

// Watch tells the listeners when to hold back, until ctx ends: while overloaded has been
// true for a second. It returns at once if none of them would.
func Watch(ctx context.Context, overloaded func() bool, listeners ...*Listener) {
	var able []*Listener
	for _, l := range listeners {
		if l.cfg.PauseAccepts > 0 {
			able = append(able, l)
		}
	}
	if len(able) == 0 {
		return
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var p pauser
	for {
		on := false // also at the end
		select {
		case now := <-look.C:
			on = p.step(now, overloaded())
		case <-ctx.Done():
		}
		for _, l := range able {
			l.Pause(on)
		}
		if ctx.Err() != nil {
			return
		}
	}
}
