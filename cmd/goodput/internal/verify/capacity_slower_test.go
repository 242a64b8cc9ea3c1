package verify

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// slowing does what so many slots of 10 ms do, up to so many times that, and less while more come,
// since each takes so long then. Who would wait for more than wait is refused.
func slowing(slots int, times float64, then, wait time.Duration) load.Send {
	var mu sync.Mutex
	var came []time.Time                             // in the last fifth of a second
	free := make([]time.Time, slots)                 // of each slot: from when on
	most := times*float64(slots)/0.010*0.200 + 1     // with the one at either end
	book := func() (done time.Duration, full bool) { // knows before when the work is done: nobody waits for a slot
		mu.Lock()
		defer mu.Unlock()
		now, each := time.Now(), 10*time.Millisecond
		for came = append(came, now); now.Sub(came[0]) > 200*time.Millisecond; came = came[1:] {
		}
		if float64(len(came)) > most {
			each = then
		}
		first := slices.MinFunc(free, time.Time.Compare)
		if first.Sub(now) > wait {
			return 0, true
		}
		i := slices.Index(free, first)
		if first.Before(now) {
			first = now
		}
		free[i] = first.Add(each)
		return free[i].Sub(now), false
	}
	return func(ctx context.Context) load.Answer {
		done, full := book()
		if full {
			return refusal
		}
		if pause(ctx, done); ctx.Err() != nil {
			return load.Answer{Err: ctx.Err()}
		}
		return load.Answer{Status: 200}
	}
}

// A service that does less as soon as a little more comes than it can do is measured by what it
// can do, and not by the rest of it that any load above that shows. Of 4 slots 400/s are carried,
// which is all, and of 7 they are little more than half: 539/s of 700 at twice that are more.
func TestWhatAnOverloadTakesIsOfTheCapacity(t *testing.T) {
	for _, c := range []struct {
		slots int
		times float64
	}{{4, 1.02}, {4, 1.05}, {4, 1.08}, {7, 1.05}} {
		t.Run(fmt.Sprintf("%d slots, %v", c.slots, c.times), func(t *testing.T) {
			s := settings()
			s.Deadline, s.Objective = 300*time.Millisecond, 100*time.Millisecond
			s.Loads, s.Length, s.Calm = []float64{0.5, 1.5}, 2*time.Second, 3*time.Second
			r := measured(t, Config{Settings: s}, slowing(c.slots, c.times, 13*time.Millisecond, 30*time.Millisecond))
			Judge(r)
			// By tenths: the last load that was carried is at least 10 in 11 of it, and 2 % are
			// what loads of a second are exact to.
			whole := 100 * float64(c.slots)
			if got := r.Capacity.PerSecond; got < whole/1.1*0.98 || got > 1.02*whole {
				t.Errorf("capacity %.0f/s, want %.0f to %.0f: %s", got, whole/1.1*0.98, 1.02*whole, r.Capacity.Why)
			}
			if got := failedNames(r); !slices.Contains(got, Goodput) || r.Void != "" {
				t.Errorf("%.0f/s of %.0f fail %q, want %s among them; void %q", whole/1.3, whole, got, Goodput, r.Void)
			}
		})
	}
}

// A queue at the end of a load is answered after it. That is no capacity: neither does it hide
// that a service has slowed by an eighth, nor is a queue of 1.4 s more than what was found.
func TestAQueueIsNoCapacity(t *testing.T) {
	for _, c := range []struct {
		wait, each time.Duration
		met        bool
	}{
		{100 * time.Millisecond, 11400 * time.Microsecond, false},
		{900 * time.Millisecond, 11400 * time.Microsecond, false},
		{1400 * time.Millisecond, 10 * time.Millisecond, true},
	} {
		s := settings()
		s.Loads = []float64{0.5, 1.5, 3}
		r := measured(t, Config{Settings: s}, slowing(4, 1.35, c.each, c.wait))
		Judge(r)
		if failed := slices.Contains(failedNames(r), Goodput); failed == c.met || r.Void != "" {
			t.Errorf("a wait of %v and %v each: void %q, not met %q", c.wait, c.each, r.Void, failedNames(r))
		}
	}
}
