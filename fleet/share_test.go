package fleet

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// applied is what a Share was told, and when.
type applied struct {
	at    time.Duration
	units int
}

// A Share starts when the others have made room, shrinks at once, grows late, and only by
// what no place of the last minute forbids.
func TestShareFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var told []applied
		share, err := New(func(units int) error {
			told = append(told, applied{time.Since(start), units})
			return nil
		}, Split{Budget: 100}, Place{Count: 5})
		if err != nil {
			t.Fatal(err)
		}
		step := func(after time.Duration, count int) {
			t.Helper()
			time.Sleep(time.Until(start.Add(after)))
			if err := share.Set(Place{Count: count}); err != nil {
				t.Error(err)
			}
		}
		if s := share.State(); s.Units != 0 || s.Share != 20 || s.Settled {
			t.Errorf("at the start: %+v", s)
		}
		step(10*time.Second, 4)
		step(20*time.Second, 5)
		step(100*time.Second, 10) // shrinks at once
		step(101*time.Second, 10) // changes nothing
		step(110*time.Second, 4)  // grows at 170 s
		step(120*time.Second, 8)  // but not as far: 8 counts until it is gone
		step(130*time.Second, 4)  // for a minute more
		step(300*time.Second, 2)
		step(350*time.Second, 4) // back before it grew: nothing happens
		time.Sleep(time.Hour)
		share.Stop()
		want := []applied{
			{0, 0},
			{60 * time.Second, 20},
			{100 * time.Second, 10},
			{170 * time.Second, 12},
			{190 * time.Second, 25},
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %v\nwant %v", told, want)
		}
		if s := share.State(); s != (State{Units: 25, Share: 25, Settled: true, Budget: 100, Applied: 5}) {
			t.Errorf("at the end: %+v", s)
		}
	})
}

// With a surge a new instance starts at once; Settle changes when it grows; Stop keeps what
// is in force and ends the timer.
func TestShareKnobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(1)})
		share, err := New(lim.SetLimit, Split{Budget: 100, Surge: 1, Settle: 5 * time.Second}, Place{Count: 4})
		if err != nil || lim.Stats().Limit != 20 {
			t.Fatalf("limit %d: %v", lim.Stats().Limit, err)
		}
		set := func(count, want int) {
			t.Helper()
			if err := share.Set(Place{Count: count}); err != nil || lim.Stats().Limit != want {
				t.Errorf("of %d: limit %d, want %d: %v", count, lim.Stats().Limit, want, err)
			}
		}
		set(9, 10)
		set(4, 10)
		time.Sleep(5*time.Second - 1)
		set(4, 10)
		time.Sleep(2 * time.Nanosecond)
		set(4, 20)
		set(1, 20)
		share.Stop()
		time.Sleep(time.Hour)
		if n := lim.Stats().Limit; n != 20 {
			t.Errorf("a stopped share set the limit to %d", n)
		}
		if err := share.Set(Place{Count: 1}); err == nil || err.Error() != "fleet: the share was stopped" {
			t.Errorf("Set after Stop: %v", err)
		}
	})
}

// An error of apply is told to who calls, kept in State, and tried again.
func TestShareErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var fails atomic.Bool
		var limit atomic.Int64
		share, err := New(func(units int) error {
			if fails.Load() {
				return boom
			}
			limit.Store(int64(units))
			return nil
		}, Split{Budget: 100}, Place{Count: 4})
		if err != nil {
			t.Fatal(err)
		}
		fails.Store(true)
		time.Sleep(2 * time.Minute)
		if s := share.State(); s.Units != 0 || !errors.Is(s.Err, boom) || s.Settled {
			t.Errorf("%+v", s)
		}
		err = share.Set(Place{Count: 4})
		if want := "fleet: a share of 25 units was not applied: boom"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		fails.Store(false)
		if err := share.Set(Place{Count: 4}); err != nil || limit.Load() != 25 || share.State().Err != nil {
			t.Errorf("limit %d: %v, %+v", limit.Load(), err, share.State())
		}
		if err := share.Set(Place{}); err == nil || !strings.Contains(err.Error(), "fleet: a fleet of 0 instances") {
			t.Errorf("Set of an invalid place: %v", err)
		}
		if limit.Load() != 25 {
			t.Errorf("and the limit is %d", limit.Load())
		}
	})
}

func TestNewErrors(t *testing.T) {
	apply := func(int) error { return nil }
	for _, tt := range []struct {
		apply func(int) error
		split Split
		place Place
		says  string
	}{
		{nil, Split{Budget: 1}, Place{Count: 1}, "fleet: there is nothing to apply a share to: apply is nil"},
		{apply, Split{}, Place{Count: 1}, "fleet: a budget of 0 units"},
		{apply, Split{Budget: 1}, Place{}, "fleet: a fleet of 0 instances"},
		{func(int) error { return errors.New("boom") }, Split{Budget: 1}, Place{Count: 1}, "fleet: a share of 0 units was not applied: boom"},
	} {
		share, err := New(tt.apply, tt.split, tt.place)
		if share != nil || err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v, want %q", err, tt.says)
		}
	}
}

// The history of a Share is as long as there are different shares, however often it is
// set, and what is in force is the smallest of the last minute: against a list of all.
func TestShareAgainstModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := seeded(t)
		const budget = 12
		force := -1
		share, err := New(func(units int) error { force = units; return nil }, Split{Budget: budget}, Place{Count: 3})
		if err != nil {
			t.Fatal(err)
		}
		type span struct {
			until time.Time // it was at this share until then
			units int
		}
		model := []span{{time.Now(), 0}}
		units := budget / 3
		for range 5000 {
			time.Sleep(time.Duration(1 + r.Int64N(int64(20*time.Second))))
			want := units
			for _, s := range model {
				if time.Since(s.until) < time.Minute {
					want = min(want, s.units)
				}
			}
			synctest.Wait()
			if force != want {
				t.Fatalf("%d in force, want %d", force, want)
			}
			count := 1 + r.IntN(budget)
			model = append(model[max(0, len(model)-400):], span{time.Now(), units})
			units = budget / count
			if err := share.Set(Place{Count: count}); err != nil {
				t.Fatal(err)
			}
			share.mu.Lock()
			kept := len(share.past)
			share.mu.Unlock()
			if kept > budget {
				t.Fatalf("%d places are kept", kept)
			}
		}
		share.Stop()
	})
}

// A group of limiters follows a Share as one limiter does, if it is never told 0.
func TestShareOfGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := goodput.NewGroup(goodput.GroupConfig{Units: 2, Members: []goodput.Member{
			{Config: goodput.Config{Name: "search"}}, {Config: goodput.Config{Name: "reports"}},
		}})
		if _, err := New(group.SetUnits, Split{Budget: 100}, Place{Count: 4}); err == nil {
			t.Error("a group of two with 0 units, and no error")
		}
		share, err := New(group.SetUnits, Split{Budget: 100, Surge: 1}, Place{Count: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer share.Stop()
		if n := group.Stats().Units; n != 20 {
			t.Errorf("the group has %d units, want 20", n)
		}
	})
}

// What was not applied is tried again a second later, whoever fails: a growth of the timer,
// and a smaller share of Set, which has said so.
func TestApplyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit, fails atomic.Int64
		s, err := New(func(n int) error {
			if fails.Load() > 0 {
				fails.Add(-1)
				return errors.New("not now")
			}
			limit.Store(int64(n))
			return nil
		}, Split{Budget: 10, Settle: 10 * time.Second}, Place{Count: 1, Nth: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		fails.Store(2)
		time.Sleep(11500 * time.Millisecond) // failed at 10 s and at 11 s
		synctest.Wait()
		if st := s.State(); limit.Load() != 0 || st.Err == nil || st.Settled {
			t.Errorf("after two failures: limit %d, %+v", limit.Load(), st)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if st := s.State(); limit.Load() != 10 || st.Err != nil || !st.Settled {
			t.Errorf("a second later: limit %d, %+v", limit.Load(), st)
		}
		fails.Store(1)
		if err := s.Set(Place{Count: 5, Nth: 1}); err == nil || limit.Load() != 10 {
			t.Errorf("Set that fails: %v, limit %d", err, limit.Load())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if limit.Load() != 2 {
			t.Errorf("a second after a Set that failed the limit is %d, want 2", limit.Load())
		}
	})
}
