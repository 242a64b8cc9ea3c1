package live

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackendIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBackend(2)
		start := time.Now()
		var ends []time.Duration
		var order []int
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				_ = b.Do(t.Context(), 10*time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				order, ends = append(order, i), append(ends, time.Since(start))
			})
			synctest.Wait()
		}
		all.Wait()
		ms := time.Millisecond
		if want := []time.Duration{10 * ms, 10 * ms, 20 * ms, 20 * ms, 30 * ms, 30 * ms}; !slices.Equal(ends, want) {
			t.Errorf("ended at %v, want %v", ends, want)
		}
		for i, n := range order {
			if n/2 != i/2 { // the two of a round end at one instant, in any order
				t.Errorf("served in the order %v", order)
			}
		}
		if b.Speed() != 1 {
			t.Errorf("speed %v of exact sleeps", b.Speed())
		}
	})
}

func TestBackendResizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBackend(4)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _ = b.Do(t.Context(), 10*time.Millisecond) })
		}
		look := func(what string, waiting, busy int) {
			t.Helper()
			synctest.Wait()
			if w, n := b.Waiting(); w != waiting || n != busy {
				t.Errorf("%s: %d wait and %d are busy, want %d and %d", what, w, n, waiting, busy)
			}
		}
		look("at first", 96, 4)
		b.Resize(1)
		look("what runs goes on", 96, 4)
		time.Sleep(11 * time.Millisecond)
		look("then one begins", 95, 1)
		b.Resize(50)
		look("more begin at once", 46, 50)
		all.Wait()
		look("at the end", 0, 0)
	})
}

// Whoever leaves while it waits gives up its place; a slot that is handed over just
// then is passed on. In the end nothing is held, and there were never more at work than
// slots.
func TestBackendLosesNoSlot(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			b := NewBackend(3)
			served, left := 0, 0
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(20))*time.Millisecond)
				work := time.Duration(rng.IntN(4)) * time.Millisecond
				all.Go(func() {
					defer cancel()
					err := b.Do(ctx, work)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						left++
					} else {
						served++
					}
				})
				time.Sleep(time.Duration(rng.IntN(2)) * time.Millisecond)
				if _, busy := b.Waiting(); busy > 3 {
					t.Fatalf("seed %d: %d are at work in 3 slots", seed, busy)
				}
			}
			all.Wait()
			b.mu.Lock()
			b.hand() // nobody waits: this clears those that left
			b.mu.Unlock()
			if w, busy := b.Waiting(); w != 0 || busy != 0 || b.left != 0 || len(b.waiting) != 0 || served+left != 200 {
				t.Errorf("seed %d: %d wait, %d are busy, %d served and %d left of 200", seed, w, busy, served, left)
			}
			if served == 0 || left == 0 {
				t.Errorf("seed %d: %d served and %d left: this tests nothing", seed, served, left)
			}
		})
	}
}

// The caller leaves just when it is handed a slot: the slot comes back.
func TestBackendPassesOnWhatALeaverWasGiven(t *testing.T) {
	left := 0
	for range 200 {
		b := NewBackend(1)
		b.busy = 1
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan error)
		go func() { end <- b.Do(ctx, 0) }()
		for w, _ := b.Waiting(); w == 0; w, _ = b.Waiting() {
			runtime.Gosched()
		}
		b.mu.Lock()
		cancel()
		b.busy--
		b.hand()
		b.mu.Unlock()
		if <-end != nil {
			left++
		}
		if w, busy := b.Waiting(); w != 0 || busy != 0 {
			t.Fatalf("%d wait and %d are busy when all is over", w, busy)
		}
	}
	if left == 0 {
		t.Error("nobody left: this tests nothing")
	}
}
