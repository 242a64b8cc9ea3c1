package live

import (
	"context"
	"sync"
	"time"
)

// A Backend is the service: slots in which work sleeps, and in front of them a queue
// that nobody sees, first come first served, without a bound. Who leaves while it waits
// gives up its place, which favours those who let everybody in; work that has begun
// goes on to its end, wanted or not.
type Backend struct {
	mu      sync.Mutex
	slots   int
	busy    int // above slots only after Resize to fewer
	waiting []*place
	left    int // of waiting, those that have left

	worked time.Duration // work that has been done
	held   time.Duration // time for which it held a slot: a sleep is never shorter
}

// A place is one that waits. Invariant: ready is closed once, under the lock, by who
// hands a slot over; then gone stays false, and the slot is the waiter's to give back.
type place struct {
	ready chan struct{}
	given bool
	gone  bool
}

// NewBackend returns a Backend with so many slots.
func NewBackend(slots int) *Backend { return &Backend{slots: slots} }

// Resize changes the number of slots. Work in slots that go away is finished.
func (b *Backend) Resize(slots int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots = slots
	b.hand()
}

// Do waits for a slot and works in it. The error is that of ctx, if the caller left
// before there was one.
func (b *Backend) Do(ctx context.Context, work time.Duration) error {
	if err := b.take(ctx); err != nil {
		return err
	}
	begin := time.Now()
	time.Sleep(work)
	held := time.Since(begin)

	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy--
	b.worked += work
	b.held += held
	b.hand()
	return nil
}

func (b *Backend) take(ctx context.Context) error {
	b.mu.Lock()
	if b.busy < b.slots {
		b.busy++
		b.mu.Unlock()
		return nil
	}
	p := &place{ready: make(chan struct{})}
	b.waiting = append(b.waiting, p)
	b.mu.Unlock()
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.given { // both at once: pass the slot on
		b.busy--
		b.hand()
		return ctx.Err()
	}
	p.gone = true
	b.left++
	return ctx.Err()
}

// hand gives free slots to those that wait. The caller holds the lock.
func (b *Backend) hand() {
	for len(b.waiting) > 0 && b.busy < b.slots {
		p := b.waiting[0]
		b.waiting[0] = nil
		b.waiting = b.waiting[1:]
		if p.gone {
			b.left--
			continue
		}
		p.given = true
		b.busy++
		close(p.ready)
	}
}

// Waiting returns how many wait for a slot, and how many slots are busy.
func (b *Backend) Waiting() (waiting, busy int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) - b.left, b.busy
}

// Speed returns the part of the time in slots that was work: 1 if every sleep had been
// exact. A sleep overruns by about a millisecond on an idle machine, and by more on a
// busy one; what it overruns by is lost capacity. 1 before anything has been done.
func (b *Backend) Speed() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == 0 {
		return 1
	}
	return float64(b.worked) / float64(b.held)
}
