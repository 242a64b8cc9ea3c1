package verify

import (
	"math"
	"sync"
	"time"
)

// spread is by how many standard errors more than --max-rate one second may have. Random
// arrivals that have it as their mean exceed 5 in one second of 3 million; a burst of a trace, or
// a generator that makes up for what it missed, has no such bound.
const spread = 5

// A pace is what was sent in the last second. It bounds each second, however it is laid, and not
// only those that begin with a tick.
type pace struct {
	mu    sync.Mutex
	start time.Time
	sent  []time.Duration // since start, plus one second: a ring of as many as fit in a second
	n     int64           // that were sent
	held  int64           // that were not
}

// newPace has room for a rate at which each caller asks so often: those of one caller come
// together, so that the error is that of rate / attempts callers, attempts each.
func newPace(rate float64, attempts int) *pace {
	most := rate + spread*math.Sqrt(rate*float64(max(attempts, 1)))
	return &pace{start: time.Now(), sent: make([]time.Duration, int(most))} // MaxRate is 1 or more
}

// admit reports whether one more may be sent now, and counts it.
func (p *pace) admit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, oldest := time.Since(p.start)+time.Second, &p.sent[p.n%int64(len(p.sent))]
	if now-*oldest < time.Second {
		p.held++
		return false
	}
	*oldest = now
	p.n++
	return true
}

func (p *pace) heldBack() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}
