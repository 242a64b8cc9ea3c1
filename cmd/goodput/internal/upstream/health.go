package upstream

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// How well a server is. All are taken for well at first. One goes out after several requests in
// a row without an answer, or after as many checks that failed; it is back once checks
// succeed, and then takes its share by and by. The last one stays as long as it takes
// connections. Where no check is configured a server that is out
// is tried by connecting to it, and one that is well is not tried at all.

const (
	// A server that is out is tried after 250 ms at first, which is a quarter of what
	// requests wait by default when there is no other, then after twice as long each
	// time, to 4 s, and up to a quarter more, so that the proxies of a fleet do not
	// come at once: from 250 ms to 5 s.
	firstBackoff = 250 * time.Millisecond
	lastBackoff  = 4 * time.Second
	jitter       = 0.25

	// aloneBackoff is the longest while no server is well: a connect per second costs
	// nothing, and who waits for one gives up after about as long.
	aloneBackoff = time.Second

	// calm is for how long a server must have been well for its next absence to begin with
	// the first backoff again: one that takes connections and breaks every request is out
	// for longer each time, and costs the requests that take it out once in 5 s at the end.
	calm = 2 * lastBackoff

	// A server that is back begins with a tenth of its share, as much as a cold process
	// bears, and has all of it after Upstream.SlowStart, in steps of a twentieth: the shares of
	// others change by less than what two requests of ten make.
	firstShare = full / 10
	shareStep  = full / 20
)

// health is guarded by the lock of the pool.
type health struct {
	well     bool
	since    time.Time
	why      error         // it is out; nil if it is well
	backoff  time.Duration // until it is tried next, while it is out
	good     int           // checks in a row that succeeded while it is out
	bad      int           // checks in a row that failed while it is well
	checking bool          // a goroutine looks after it. Invariant: one at most
	removed  bool          // from the configuration: it takes nothing, and is not checked
	ramp     *time.Timer   // of its slow start
	wake     chan struct{} // capacity 1: the goroutine is to look again
}

// tolerated is how many requests in a row may stay without an answer, less one.
func (p *Pool) tolerated() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(max(p.cfg.Failures, 1))
}

// out takes s out for err, after n of what.
func (s *server) out(err error, what string, n int64) {
	p := s.pool
	p.mu.Lock()
	if !s.well || s.removed {
		p.mu.Unlock()
		return
	}
	now := time.Now()
	if s.backoff = min(max(2*s.backoff, firstBackoff), lastBackoff); now.Sub(s.since) > calm {
		s.backoff = firstBackoff
	}
	s.well, s.since, s.why, s.good, s.bad = false, now, err, 0, 0
	s.share.Store(0)
	s.ejections.Add(1)
	s.stopRamp()
	s.recheck()
	p.mu.Unlock()
	s.back.closeIdle() // they lead to what was there before
	p.log.Warn("server out", "server", s.name, "after", n, "of", what, "err", err)
	p.tell()
}

// come takes s in again. The caller holds the lock, and logs and tells after it.
func (s *server) come() {
	s.well, s.since, s.why, s.good, s.bad = true, time.Now(), nil, 0, 0
	s.failed.Store(0)
	s.closed.Store(0)
	slow := s.pool.cfg.SlowStart
	if slow <= 0 {
		s.share.Store(full)
		return
	}
	s.share.Store(firstShare)
	s.ramp = time.AfterFunc(slow*shareStep/(full-firstShare), s.climb)
}

// climb gives s as much of its share as it has by now.
func (s *server) climb() {
	p := s.pool
	p.mu.Lock()
	if s.ramp == nil {
		p.mu.Unlock()
		return // it rang while it was stopped
	}
	slow := max(p.cfg.SlowStart, 1)
	share := firstShare + int64(float64(full-firstShare)*float64(time.Since(s.since))/float64(slow))
	if share < full {
		s.ramp.Reset(slow * shareStep / (full - firstShare))
	} else {
		s.ramp = nil
	}
	s.share.Store(min(share, full))
	p.mu.Unlock()
	p.tell()
}

func (s *server) stopRamp() {
	if s.ramp != nil {
		s.ramp.Stop()
		s.ramp = nil
	}
}

// remove has s take nothing new. The caller holds the lock.
func (s *server) remove() {
	s.removed = true
	s.share.Store(0)
	s.stopRamp()
	s.recheck()
}

// recheck has somebody look after s if it is to be checked, or look again. The caller holds
// the lock.
func (s *server) recheck() {
	p := s.pool
	switch {
	case s.checking:
		select {
		case s.wake <- struct{}{}:
		default:
		}
	case (p.cfg.Health != nil || !s.well) && !s.removed && p.ends.Err() == nil:
		s.checking = true
		p.work.Go(s.lookAfter)
	}
}

// lookAfter checks s for as long as it is to be checked.
func (s *server) lookAfter() {
	p := s.pool
	for {
		p.mu.Lock()
		h := p.cfg.Health
		if s.removed || h == nil && s.well || p.ends.Err() != nil {
			s.checking = false
			p.mu.Unlock()
			return
		}
		wait := s.wait(h)
		p.mu.Unlock()
		if !s.sleep(wait) {
			continue
		}
		s.checks.Add(1)
		err := s.check(h)
		if p.ends.Err() == nil {
			s.checked(h, err)
		}
	}
}

// wait is how long it is until the next check. The caller holds the lock.
func (s *server) wait(h *config.Health) time.Duration {
	if s.well {
		return time.Duration(float64(h.Interval) * (1 - jitter/2 + jitter*rand.Float64()))
	}
	d := s.backoff
	switch {
	case s.good > 0:
		d = firstBackoff // one more like that
	case s.pool.capacity().Present:
	default:
		d = min(d, aloneBackoff)
	}
	return time.Duration(float64(d) * (1 + jitter*rand.Float64()))
}

// sleep reports whether it slept for so long; else something has changed.
func (s *server) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.wake:
	case <-s.pool.ends.Done():
	}
	return false
}

// checked takes the result of a check.
func (s *server) checked(h *config.Health, err error) {
	fall, rise := 1, 1
	if h != nil {
		fall, rise = max(h.Fall, 1), max(h.Rise, 1)
	}
	if err != nil {
		s.sick.Add(1)
	}
	p := s.pool
	p.mu.Lock()
	switch {
	case s.removed:
	case s.well && err == nil:
		s.bad = 0
	case s.well:
		if s.bad++; s.bad >= fall {
			n := s.bad
			p.mu.Unlock()
			s.out(err, "checks in a row that failed", int64(n))
			return
		}
	case err != nil:
		s.good, s.why = 0, err
		s.backoff = min(2*s.backoff, lastBackoff)
	default:
		if s.good++; s.good >= rise {
			away := time.Since(s.since)
			s.come()
			p.mu.Unlock()
			p.log.Info("server back", "server", s.name, "out_for_seconds", away.Seconds(), "slow_start_seconds", p.slow().Seconds())
			p.tell()
			return
		}
	}
	p.mu.Unlock()
}

func (p *Pool) slow() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cfg.SlowStart
}

// check asks s whether it is well: by its Health, or by connecting to it.
func (s *server) check(h *config.Health) error {
	ctx := context.WithValue(s.pool.ends, checkKey{}, true)
	if h == nil {
		ctx, cancel := context.WithTimeout(ctx, aloneBackoff)
		defer cancel()
		return s.connect(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, max(h.Timeout, time.Millisecond))
	defer cancel()
	return s.probe(ctx, h.Path)
}
