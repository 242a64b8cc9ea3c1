package live

import (
	"context"
	"sync"
	"time"
)

// sampleEvery is how often limit and queue are looked at: five times a bin.
const sampleEvery = 100 * time.Millisecond

// Run plays p against a fresh c and returns what became of it. The error is one of the
// network.
func Run(ctx context.Context, c Contestant, p Plan) (*Result, error) {
	b := NewBackend(p.Phases[0].Slots)
	limited, limit := c.Wrap(p.Phases[0].Slots, work(b))
	w, err := dial(limited, p.Deadline)
	if err != nil {
		return nil, err
	}
	defer w.close()
	exposes := limit != nil
	if !exposes {
		limit = func() int { return 0 }
	}

	begun, start := processors(), time.Now()
	seen := newTally(p) // samples have bins of their own: the generator's are being counted
	ended := make(chan struct{})
	var sides sync.WaitGroup
	sides.Go(func() { resize(b, p, start, ended) })
	sides.Go(func() {
		every := time.NewTicker(sampleEvery)
		defer every.Stop()
		for {
			select {
			case <-ended:
				return
			case <-every.C:
			}
			waiting, busy := b.Waiting()
			seen.sample(time.Since(start), limit(), waiting, busy)
		}
	})
	t := offer(ctx, p, start, w.send)
	cpu := (processors() - begun).Seconds() / time.Since(start).Seconds()
	close(ended)
	sides.Wait()
	for i := range t.bins {
		s := &seen.bins[i]
		t.bins[i].Limit, t.bins[i].Waiting, t.bins[i].Busy = s.Limit, s.Waiting, s.Busy
	}
	return t.result(c.Name, b.Speed(), cpu, exposes), nil
}

// resize gives b the slots of each phase of p when it begins.
func resize(b *Backend, p Plan, start time.Time, ended <-chan struct{}) {
	at := time.Duration(0)
	for _, ph := range p.Phases {
		select {
		case <-time.After(at - time.Since(start)):
			b.Resize(ph.Slots)
		case <-ended:
			return
		}
		at += ph.Length
	}
}
