package goodput

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// What Refused says adds up to what the counters say, for each reason: refusals at the door
// and after a wait, for a quota, of callers that had left, of drains, and what only tried, while observe mode is switched, under
// random loads. So few values are made that none has left the ring: windows are 100 ms.
func TestRefusedAddsUp(t *testing.T) {
	seen := map[Reason]uint64{}
	waited := 0
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 19))
			cfg := Config{
				Limit: limit.Fixed(1 + rng.IntN(3)), Objective: time.Hour, Service: time.Second, Depth: 1 + rng.IntN(4), MaxBytes: 10,
				MaxWait: time.Duration(1+rng.IntN(50)) * time.Millisecond, Overflow: Overflow(rng.IntN(4)),
			}
			if seed%3 == 0 {
				cfg.Tenants = &Tenants{Rows: []Tenant{{ID: "a", Quota: Quota{Rate: 20, Burst: 2}}, {ID: "b"}}}
			}
			cfg.Observe = seed%10 == 9
			l := New(cfg)
			for i := range 40 {
				w := Work{Cost: 1 + rng.IntN(4)*rng.IntN(2), Bytes: int64(rng.IntN(7) * rng.IntN(3)), Priority: Priority(1 + rng.IntN(4)), Tenant: []string{"a", "b"}[rng.IntN(2)]}
				ctx, cancel := context.WithCancel(t.Context())
				switch rng.IntN(6) {
				case 0:
					cancel()
				case 1:
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(40))*time.Millisecond)
				case 2:
					time.AfterFunc(time.Duration(rng.IntN(40))*time.Millisecond, cancel)
				case 3:
					if slot, ok := l.TryAcquire(); ok {
						time.AfterFunc(20*time.Millisecond, slot.Release)
					}
				}
				go func() {
					defer cancel()
					slot, err := l.AcquireWork(ctx, w)
					if err == nil {
						time.Sleep(time.Duration(20+i%7*5) * time.Millisecond)
						slot.Release()
					}
				}()
				time.Sleep(time.Duration(rng.IntN(6)) * time.Millisecond)
				if seed%10 == 8 && i%8 == 7 {
					if err := l.SetObserve(i%16 == 7); err != nil {
						t.Fatal(err)
					}
				}
			}
			if seed%4 == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
				_ = l.Drain(ctx)
				cancel()
				_, _ = l.TryAcquire()
			}
			time.Sleep(time.Minute)
			s := l.Stats()
			got := [len(s.Refusals)]uint64{}
			all := l.Refused()
			for i, r := range all {
				got[r.Reason] += r.Count
				if r.Count == 0 || i > 0 && r.Ago < all[i-1].Ago || r.Ago < 59*time.Second {
					t.Errorf("seed %d: %d of %v %v ago, after %+v", seed, r.Count, r.Reason, r.Ago, all[max(i-1, 0)])
				}
				if r.Waited > 0 {
					waited++
				}
			}
			if l.refused.n > keptRefusals {
				t.Logf("seed %d: %d values", seed, l.refused.n)
			} else if got != s.Refusals {
				t.Errorf("seed %d: told %v\n counted %v", seed, got, s.Refusals)
			}
			for i, n := range got {
				seen[Reason(i)] += n
			}
		})
	}
	for _, r := range []Reason{QueueFull, BytesFull, TooCostly, OverQuota, Shed, Displaced, WaitBound, Draining, Deadline, Client} {
		if seen[r] == 0 {
			t.Errorf("nobody was refused as %v: %v", r, seen)
		}
	}
	if waited == 0 {
		t.Error("nobody was refused after a wait")
	}
}

// Who leaves at the moment at which it is granted is told so, and is no refusal: the core had
// admitted it.
func TestRefusedWithoutWhoWasGranted(t *testing.T) {
	granted := uint64(0)
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			l := New(Config{Limit: limit.Fixed(1)})
			slot := mustAcquire(t, l)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _, _ = l.Acquire(ctx) }()
			synctest.Wait()
			slot.Release()
			cancel() // before the waiter has run, or after
			synctest.Wait()
			s, n := l.Stats(), uint64(0)
			for _, r := range l.Refused() {
				n += r.Count
			}
			if n != s.Refusals[Client] {
				t.Errorf("%d were told, %d are counted", n, s.Refusals[Client])
			}
			granted += s.Outcomes[Abandoned]
		})
	}
	if granted == 0 {
		t.Error("nobody left at that moment")
	}
}
