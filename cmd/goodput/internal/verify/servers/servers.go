// Package servers has services that are good under an overload and services that are broken,
// each in one way, for the tests of what tells them apart. Nothing but tests imports it.
//
// All of them do the same work, a Pool of slots that each take a fixed time, and answer the
// same three bytes. They differ in what they do about a request that finds no slot.
package servers

import (
	"io"
	"math"
	"net/http"
	"sync"
	"time"
)

// A Pool is the work: so many slots, each for so long, first come, first served.
//
// It keeps no queue. The times are known before, so the instant at which a request gets its slot
// is, too, when it comes: that of the slot that is free first. It is booked, and whoever has it
// sleeps. Slots are free by the book and not by when a timer rang, so the capacity is exact; and
// whatever is between the end of one request and the begin of the next, in a proxy before it
// or on the way, a slot makes up for.
type Pool struct {
	Each   time.Duration // that one request takes
	Spread float64       // 0 to 1: it takes up to so much of Each more or less, Each in the mean

	mu   sync.Mutex
	free []time.Time // of each slot: from when on
	n    int         // requests so far
}

// lag is what a slot makes up for: half of the shortest work, and more than a timer is late.
func (p *Pool) lag() time.Duration { return time.Duration((1 - p.Spread) * float64(p.Each) / 2) }

// NewPool returns one of slots that take each.
func NewPool(slots int, each time.Duration) *Pool {
	return &Pool{Each: each, free: make([]time.Time, slots)}
}

// Slots is how many there are.
func (p *Pool) Slots() int { return len(p.free) }

// Capacity is what it does in a second.
func (p *Pool) Capacity() float64 { return float64(len(p.free)) / p.Each.Seconds() }

// book takes the slot that is free first if that is within most, and returns how long it takes
// until the work is done.
func (p *Pool) book(most time.Duration) (done time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, first := time.Now(), 0
	for i, t := range p.free {
		if t.Before(p.free[first]) {
			first = i
		}
	}
	begin := p.free[first]
	if begin.Sub(now) > most {
		return 0, false
	}
	if now.Sub(begin) > p.lag() {
		begin = now
	}
	p.free[first] = begin.Add(p.next())
	return max(p.free[first].Sub(now), 0), true
}

// next returns how long the next one takes. The fractions of multiples of the golden ratio
// fill the range as evenly as any: the mean of a few is Each already.
func (p *Pool) next() time.Duration {
	p.n++
	_, x := math.Modf(float64(p.n) * math.Phi)
	return time.Duration((1 + p.Spread*(2*x-1)) * float64(p.Each))
}

// sleep is for d, or until the caller has left. It reports whether it slept.
func sleep(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// Body is what a request that is served gets.
const Body = "ok\n"

// busy is a refusal as it should be: at once, 503, and when to come back.
func busy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "busy", http.StatusServiceUnavailable)
}

// A Door lets in who gets a slot within Wait, and does something about everybody else.
type Door struct {
	*Pool
	Wait   time.Duration    // the longest that is waited for a slot
	Refuse http.HandlerFunc // of who would wait longer
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	done, ok := d.book(d.Wait)
	if !ok {
		d.Refuse(w, r)
		return
	}
	finish(w, r, done)
}

// finish answers after the work. Its slot is busy all that time, whether or not the caller is
// there: if it is not nobody reads the answer.
func finish(w http.ResponseWriter, r *http.Request, done time.Duration) {
	if !sleep(r, done) {
		busy(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, Body)
}

// A Meter knows how many came in the last fifth of a second, or a little less.
type Meter struct {
	mu       sync.Mutex
	at       time.Time // of the present tenth of a second
	now, was int
}

const tick = 100 * time.Millisecond

// add counts an arrival and returns how many come in a second.
func (m *Meter) add() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch since := time.Since(m.at); {
	case since >= 2*tick:
		m.at, m.now, m.was = time.Now(), 0, 0
	case since >= tick:
		m.at, m.now, m.was = m.at.Add(tick), 0, m.now
	}
	m.now++
	// The present tenth is not over: of the one before counts what of it is in the last one.
	part := min(float64(time.Since(m.at))/float64(tick), 1)
	return (float64(m.now) + (1-part)*float64(m.was)) / tick.Seconds()
}
