package goodputhttp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
)

// metered is a limiter whose tenant has a quota of 1000, and hardly more for an hour.
func metered() *goodput.Limiter {
	return limiter(2, goodput.Config{Tenants: &goodput.Tenants{
		Rows: []goodput.Tenant{{ID: "a", Quota: goodput.Quota{Rate: 1e-6, Burst: 1000}}},
	}})
}

// charged returns what the tenant has been charged, and checks that its quota agrees.
func charged(t *testing.T, lim *goodput.Limiter) uint64 {
	t.Helper()
	settled(t, lim)
	for _, a := range lim.Tenants(9) {
		if a.ID == "a" {
			// 1e-6/s are less than 0.01 in the 10,000 s that no test takes.
			if left := 1000 - float64(a.Granted); a.Left < left || a.Left > left+0.01 {
				t.Errorf("%v left of 1000 after %d", a.Left, a.Granted)
			}
			return a.Granted
		}
	}
	t.Fatal("no tenant")
	return 0
}

func ofA(lim *goodput.Limiter, next http.HandlerFunc) *Server {
	return &Server{Limiter: one(lim), Next: next, Tenant: func(*http.Request) string { return "a" }}
}

// Whatever a handler does with its response before and after, its tenant pays what it
// says last.
func TestSetCostIsCharged(t *testing.T) {
	for name, tc := range map[string]struct {
		next http.HandlerFunc
		want uint64
	}{
		"says nothing": {func(http.ResponseWriter, *http.Request) {}, 1},
		"before the header": {func(w http.ResponseWriter, r *http.Request) {
			if !SetCost(r.Context(), 9) || !SetCost(r.Context(), 40) {
				t.Error("no slot to correct")
			}
			w.WriteHeader(http.StatusOK)
		}, 40},
		"after the header": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			below, cancel := context.WithCancel(r.Context())
			defer cancel()
			SetCost(below, 700)
		}, 700},
		"failed": {func(w http.ResponseWriter, r *http.Request) {
			SetCost(r.Context(), 7)
			w.WriteHeader(http.StatusInternalServerError)
		}, 7},
		"out of range": {func(_ http.ResponseWriter, r *http.Request) { SetCost(r.Context(), -7) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			lim := metered()
			status(ofA(lim, tc.next), from(""))
			if got := charged(t, lim); got != tc.want {
				t.Errorf("charged %d, want %d", got, tc.want)
			}
		})
	}
}

// Work that goes on after the answer still has a slot to correct, until it releases it;
// a request that was upgraded, and one that has ended, have none.
func TestSetCostNeedsASlot(t *testing.T) {
	if SetCost(t.Context(), 3) || SetSize(t.Context(), 3) {
		t.Error("corrected the slot of no request")
	}
	lim := metered()
	var ctx context.Context
	var release func()
	status(ofA(lim, func(_ http.ResponseWriter, r *http.Request) {
		ctx = r.Context()
		release, _ = Hold(ctx)
	}), from(""))
	if !SetCost(ctx, 50) || !SetSize(ctx, 50) {
		t.Error("a slot that is held cannot be corrected")
	}
	release()
	if SetCost(ctx, 99) || SetSize(ctx, 99) {
		t.Error("corrected a slot that has ended")
	}
	if got := charged(t, lim); got != 50 {
		t.Errorf("charged %d, want 50", got)
	}
	status(ofA(lim, func(_ http.ResponseWriter, r *http.Request) { ctx = r.Context() }), from(""))
	if SetCost(ctx, 99) {
		t.Error("corrected the slot of a request that has ended")
	}
	upgrade := from("")
	upgrade.Header.Set("Connection", "Upgrade")
	upgrade.Header.Set("Upgrade", "echo")
	status(ofA(lim, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusSwitchingProtocols)
		if SetCost(r.Context(), 99) {
			t.Error("corrected the slot that an upgraded connection has given back")
		}
	}), upgrade)
	if got := charged(t, lim); got != 52 {
		t.Errorf("charged %d, want 50, 1 and 1", got)
	}
}

// The time that a request took was that of the size that its handler found out.
func TestSetSizeIsLearned(t *testing.T) {
	learned := func(size int) (service time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			lim := limiter(1, goodput.Config{Objective: time.Second})
			h := Handler(lim, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				time.Sleep(90 * time.Millisecond)
				if size != 0 && !SetSize(r.Context(), size) {
					t.Error("no slot to correct")
				}
			}))
			for range 1000 { // far more than the prior is worth
				status(h, from(""))
			}
			defer hold(t, lim, 1)()
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			defer cancel()
			_, err := lim.Acquire(ctx)
			var r *goodput.Rejection
			if !errors.As(err, &r) || r.Reason != goodput.NoBudget {
				t.Fatalf("%v, want no_budget", err)
			}
			service = r.Service
		})
		return service
	}
	if one, same, third := learned(0), learned(1), learned(3); one != same || third >= one/2 {
		t.Errorf("a unit is taken to need %v, with size 1 %v, with size 3 %v", one, same, third)
	}
}

// Goroutines that a handler leaves behind correct its slot while it answers and ends: the
// race detector sees all of it, and what is charged is what was accepted last.
func TestSetCostBesideTheEnd(t *testing.T) {
	for range 200 {
		lim := metered()
		var wg sync.WaitGroup
		last := uint64(1)
		status(ofA(lim, func(w http.ResponseWriter, r *http.Request) {
			wg.Go(func() {
				for n := 2; n < 500 && SetCost(r.Context(), n); n++ {
					last = uint64(n)
					SetSize(r.Context(), n)
				}
			})
			w.WriteHeader(http.StatusOK)
		}), from(""))
		wg.Wait()
		if got := charged(t, lim); got != last {
			t.Fatalf("charged %d, want %d", got, last)
		}
	}
}
