package demo

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Kept busy for a minute, it serves what it says it can.
func TestBackendHasItsCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBackend(slots, mean, 1)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var clients sync.WaitGroup
		for range 2 * slots {
			clients.Go(func() {
				for ctx.Err() == nil && b.serve(ctx) {
				}
			})
		}
		<-ctx.Done()
		served := float64(b.Served())
		clients.Wait()
		// 72,000 exponential services: the count varies by its square root.
		if want := 60 * b.Capacity(); math.Abs(served-want) > 4*math.Sqrt(want) {
			t.Errorf("served %v in a minute, want %v +- %.0f", served, want, 4*math.Sqrt(want))
		}
	})
}

func TestBackendIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBackend(1, mean, 1)
		var mu sync.Mutex
		var order []int
		for i := range 100 {
			go func() {
				if b.serve(t.Context()) {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
				}
			}()
			synctest.Wait() // it has its place
		}
		if now, peak := b.Waiting(); now != 99 || peak != 99 {
			t.Errorf("waiting %d, peak %d, want 99", now, peak)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.IsSorted(order) || len(order) != 100 {
			t.Errorf("served in the order %v", order)
		}
		if now, peak := b.Waiting(); now != 0 || peak != 99 {
			t.Errorf("in the end waiting %d, peak %d", now, peak)
		}
		if _, peak := b.Waiting(); peak != 0 {
			t.Errorf("nobody waited since, and the peak is %d", peak)
		}
	})
}

// Who leaves while waiting is not served; who has started is, to its end.
func TestBackendForgetsWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBackend(1, mean, 1)
		ctx, leave := context.WithCancel(t.Context())
		served := make([]bool, 3)
		for i := range served {
			go func() { served[i] = b.serve(ctx) }()
			synctest.Wait()
		}
		leave()
		synctest.Wait()
		if now, _ := b.Waiting(); now != 0 {
			t.Errorf("%d wait, and all have left", now)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(served, []bool{true, false, false}) || b.Served() != 1 {
			t.Errorf("served %v, counted %d", served, b.Served())
		}
		if !b.serve(t.Context()) {
			t.Error("the slot is lost")
		}
	})
}

// A service that took too long shortens the next one on its slot, within bounds.
func TestBackendMakesUpForLateTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct{ late, want time.Duration }{
			{0, 0}, {time.Millisecond, time.Millisecond}, {time.Hour, maxLate},
		} {
			b := NewBackend(1, mean, 1)
			s := b.acquire(t.Context())
			b.release(s, time.Now().Add(-tc.late))
			if s.late != tc.want {
				t.Errorf("%v late: %v to make up for, want %v", tc.late, s.late, tc.want)
			}
			// The same seed draws the same service times.
			twin := NewBackend(1, mean, 1)
			took := func(b *Backend) time.Duration {
				begin := time.Now()
				b.serve(t.Context())
				return time.Since(begin)
			}
			if full, short := took(twin), took(b); full-short != min(tc.want, full) {
				t.Errorf("%v late: the next service took %v, and %v on a punctual slot", tc.late, short, full)
			}
		}
	})
}
