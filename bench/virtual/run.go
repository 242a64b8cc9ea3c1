package virtual

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/bench/live"
)

// Run plays s against a fresh c. It must be called inside a bubble of testing/synctest:
// anywhere else it takes the time that it simulates, and its sleeps overrun. On one
// processor it does the same each time.
func Run(s Scene, c Contestant, seed uint64) *Result {
	out := play(s, c, seed).result()
	out.Contestant, out.Seed = c.Name, seed
	return out
}

// play is Run, and returns what was counted.
func play(s Scene, c Contestant, seed uint64) *tally {
	first := s.Phases[0].Slots
	r := &run{
		scene: s, door: c.New(first), backend: live.NewBackend(first),
		seed: seed, start: time.Now(), tally: newTally(s),
	}
	var open sync.WaitGroup
	r.open = &open
	open.Go(r.resize)
	if r.door.Limit != nil {
		open.Go(r.look)
	}
	for q := range s.Requests(seed) {
		time.Sleep(q.Due - r.now())
		r.mu.Lock()
		r.tally.arrive(q, r.waiting())
		r.mu.Unlock()
		open.Go(func() { r.request(q) })
	}
	open.Wait()
	return r.tally
}

// A run is one play of a scene.
type run struct {
	scene   Scene
	door    Door
	backend *live.Backend
	seed    uint64
	start   time.Time
	open    *sync.WaitGroup

	asking atomic.Int64 // callers inside Acquire

	mu    sync.Mutex
	tally *tally
}

func (r *run) now() time.Duration { return time.Since(r.start) }

// waiting returns how many wait, before the limiter and behind it.
func (r *run) waiting() int {
	behind, _ := r.backend.Waiting()
	return int(r.asking.Load()) + behind
}

// resize gives the backend the slots of each phase, and none during a stall.
func (r *run) resize() {
	at := time.Duration(0)
	for _, st := range r.scene.Phases {
		time.Sleep(at - r.now())
		r.backend.Resize(st.Slots)
		at += time.Duration(st.Length)
	}
	if s := r.scene.Stall; s != nil {
		time.Sleep(time.Duration(s.At) - r.now())
		r.backend.Resize(0)
		time.Sleep(time.Duration(s.For))
		r.backend.Resize(r.scene.Phases[len(r.scene.Phases)-1].Slots)
	}
}

// look notes the limit in the middle of every bin.
func (r *run) look() {
	for at := binLength / 2; at < r.scene.length(); at += binLength {
		time.Sleep(at - r.now())
		n := r.door.Limit()
		r.mu.Lock()
		r.tally.limit(at, n)
		r.mu.Unlock()
	}
}

// request is a caller with q.
func (r *run) request(q live.Request) {
	jitter := rand.New(rand.NewPCG(r.seed, uint64(q.Due))) // of this caller alone, so that order does not matter
	began := q.Due
	for attempt := 1; ; attempt++ {
		end := r.ask(q, began)
		if end == inTime || attempt == r.scene.Attempts {
			r.mu.Lock()
			r.tally.end(q.Due, began, r.now(), end)
			r.mu.Unlock()
			return
		}
		time.Sleep(time.Duration(jitter.Float64() * float64(200*time.Millisecond) * float64(int(1)<<(attempt-1))))
		began = r.now()
	}
}

// ask is one attempt, which began at an instant. Who may ask again leaves at the deadline,
// whatever becomes of the work; who may not stays to see what does.
func (r *run) ask(q live.Request, began time.Duration) ending {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.scene.Deadline))
	if r.scene.Attempts == 1 {
		defer cancel()
		return r.serve(ctx, q, began)
	}
	answer := make(chan ending, 1)
	r.open.Go(func() {
		defer cancel()
		answer <- r.serve(ctx, q, began)
	})
	select {
	case end := <-answer:
		return end
	case <-ctx.Done():
	}
	select {
	case end := <-answer: // it was this that ended ctx
		return end
	default:
		return late
	}
}

// serve is what the service does with an attempt. It does not look whether its caller is
// still there.
func (r *run) serve(ctx context.Context, q live.Request, began time.Duration) ending {
	r.asking.Add(1)
	release, err := r.door.Acquire(ctx)
	r.asking.Add(-1)
	if err == nil {
		_ = r.backend.Do(context.Background(), q.Work) // the context never ends
		release()
	}
	now := r.now()
	took := now - began
	end := inTime
	switch {
	case err != nil:
		end = refused
	case took > time.Duration(r.scene.Deadline):
		end = late
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.attempt(end, now, took, q.Work)
	return end
}
