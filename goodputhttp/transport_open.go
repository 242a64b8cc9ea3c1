package goodputhttp

import (
	"sync"
	"time"
)

// sweepEvery is how soon after its context has ended the slot of a body is back that
// nobody reads or closes. A context.AfterFunc for each response would be prompt and cost
// three allocations and a lock; looking at 1,000 open bodies ten times a second costs
// some 20 µs each, or 0.02 % of a core.
const sweepEvery = 100 * time.Millisecond

// bodies are the responses of a dependency that are being read.
type bodies struct {
	mu    sync.Mutex
	first *attempt
	n     int
	timed bool   // a sweep is due: true as long as there are any
	sweep func() // in a goroutine of its own
	timer *time.Timer
	found []*attempt // of the sweep, kept for the next one
}

func (b *bodies) add(a *attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.next = b.first; a.next != nil {
		a.next.prev = a
	}
	b.first = a
	b.n++
	if !b.timed {
		b.timed = true
		b.arm()
	}
}

// arm starts the timer of the next sweep. The caller holds the lock.
func (b *bodies) arm() {
	if b.timer == nil {
		b.timer = time.AfterFunc(sweepEvery, b.sweep)
	} else {
		b.timer.Reset(sweepEvery)
	}
}

// remove takes a out.
func (b *bodies) remove(a *attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.next != nil {
		a.next.prev = a.prev
	}
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		b.first = a.next
	}
	a.prev, a.next = nil, nil
	b.n--
}

func (b *bodies) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}

// sweep ends the attempts whose context has ended.
func (d *Dependency) sweep() {
	b := &d.open
	b.mu.Lock()
	found := b.found
	b.found = nil // ours until the end
	for a := b.first; a != nil; a = a.next {
		found = append(found, a)
	}
	b.mu.Unlock()
	for _, a := range found { // a context is somebody else's code, so not under the lock
		if a.ctx.Err() != nil {
			a.end(nil)
		}
	}
	clear(found)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found = found[:0]
	if b.timed = b.n > 0; b.timed {
		b.arm()
	}
}
