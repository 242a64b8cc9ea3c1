package goodput

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/limit"
)

// flat is text without its line breaks and indents.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// sayings checks what Explain says, and what it does not.
func sayings(t *testing.T, l *Limiter, says, not []string) {
	t.Helper()
	text := flat(l.Explain())
	for _, want := range says {
		if !strings.Contains(text, flat(want)) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	for _, other := range not {
		if strings.Contains(text, flat(other)) {
			t.Errorf("want no %q in\n%s", other, text)
		}
	}
}

// F35: why a limit is what it is. One that adapts says when it last moved, from where and why,
// when its law was asked, and whether it still searches; a fixed one when it was set.
func TestExplainSaysWhyTheLimitMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := spying(20)
		l := New(Config{Name: "search", Limit: law})
		window(l)
		time.Sleep(40 * time.Millisecond)
		sayings(t, l, []string{
			"  limit    20 (spy); 0 in use by 0 requests\n           it has not moved yet; the law was asked 40ms ago\n",
		}, []string{"searches", "until", "drift", "held:", "refused by"})

		law.notes.do(35, true, "capacity 36 (30 to 44) by 220 samples of 48ms")
		window(l)
		law.notes.do(0, true, "capacity 36 (30 to 44) by 220 samples of 48ms")
		for range 11 {
			window(l)
		}
		time.Sleep(40 * time.Millisecond)
		sayings(t, l, []string{
			"  limit    35 (spy); 0 in use by 0 requests\n" +
				"           moved from 20 1.14s ago: capacity 36 (30 to 44) by 220 samples of 48ms; the law was asked 40ms ago, and still searches for the capacity\n",
		}, []string{"it has not moved"})
		s := l.Stats()
		if s.LimitFrom != 20 || s.LimitMoved != 1140*time.Millisecond || s.LimitAsked != 40*time.Millisecond || !s.LimitSearch ||
			s.LimitWhy == "" || s.LimitChanges != 1 || s.LimitRaised != 1 {
			t.Errorf("%+v", s.Stats)
		}

		law.notes.do(0, false, "")
		window(l)
		sayings(t, l, []string{"           moved from 20 1.24s ago; the law was asked 0s ago\n"}, []string{"searches"})

		slot := mustAcquire(t, l)
		slot.Dropped()
		window(l)
		sayings(t, l, []string{"           1 was refused by what is behind the limit, or did not reach it\n"}, nil)

		if err := l.SetLimit(7); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		sayings(t, l, []string{"  limit    7 (fixed(7)); 0 in use by 0 requests\n           35 until it was set 3s ago\n"}, []string{"the law was asked"})
		if s := l.Stats(); s.LimitChanges != 2 || s.LimitRaised != 1 {
			t.Errorf("%d changes, %d upwards", s.LimitChanges, s.LimitRaised)
		}
	})
	sayings(t, New(Config{Limit: limit.Fixed(7)}), nil, []string{"moved", "until", "asked", "drift"})
}

// A search is the state only while it matters: every slot is busy.
func TestStateSaysSearching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := spying(2)
		law.notes.do(0, true, "")
		l := New(Config{Limit: law})
		const words = "searching for the capacity: all of 2 slots are busy, and there may be more"
		is := func(want string) {
			t.Helper()
			window(l)
			if s := l.Stats(); !strings.HasPrefix(s.State(), want) {
				t.Errorf("%q, want %q", s.State(), want)
			}
		}
		is("idle")
		first := mustAcquire(t, l)
		is("busy")
		second := mustAcquire(t, l)
		is(words)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = l.Acquire(ctx) }()
		synctest.Wait()
		is(words)
		law.notes.do(0, false, "")
		is("burst")
		cancel()
		synctest.Wait()
		is("at the admission boundary")
		first.Release()
		second.Release()
	})
}

// F4: a service time away from the recorded one is flagged where the limit is a number that
// somebody chose, with the advice. A law that adapts has seen to it.
func TestDriftIsFlaggedWithTheAdvice(t *testing.T) {
	const drift = "           drift: a unit is held for 100ms, and 20ms was recorded when the limit was chosen: " +
		"choose it anew, or let limit.Auto find it; a deeper queue would only add latency\n"
	for _, c := range []struct {
		law  limit.Law
		took time.Duration
		says bool
	}{
		{limit.Fixed(5), 100 * time.Millisecond, true},
		{limit.Fixed(5), 22 * time.Millisecond, false},
		{spying(5), 100 * time.Millisecond, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New(Config{Limit: c.law, Objective: 2 * time.Second, Service: 20 * time.Millisecond})
			for range 200 {
				slot := mustAcquire(t, l)
				time.Sleep(c.took)
				slot.Release()
			}
			says, not := []string{drift}, []string(nil)
			if !c.says {
				says, not = not, []string{"drift:"}
			}
			sayings(t, l, says, not)
			if s := l.Stats(); s.Derivation.Drifted != (c.took > 25*time.Millisecond) {
				t.Errorf("%v of %v: drifted %v", c.law, c.took, s.Derivation.Drifted)
			}
		})
	}
}

// A limit cannot be found by watching alone: the law of one that only watches is not asked,
// the limit stays at its start, and Explain says so.
func TestObserveHoldsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := spying(2)
		law.notes.do(50, true, "never said")
		cfg := Config{Limit: law, Observe: true}
		l := New(cfg)
		for range 4 {
			slot := mustAcquire(t, l)
			defer slot.Release()
		}
		for range 5 {
			window(l)
		}
		if all, each := law.notes.told(); len(each) != 0 {
			t.Errorf("the law was asked %d times: %+v", len(each), all)
		}
		s := l.Stats()
		if s.Limit != 2 || s.Shadow.Limit != 2 || s.InUse != 4 || s.LimitSearch || !s.LimitHeld || s.Shadow.Waiting != 2 {
			t.Errorf("%+v\nshadow %+v", s.Stats, s.Shadow)
		}
		sayings(t, l, []string{
			"  limit    2 (spy); 4 in use by 4 requests\n" +
				"           held: everything runs at once, so what is measured does not follow from a limit, and none can be found by watching; counted is what one of 2 would do\n",
		}, []string{"asked", "searches"})
		if err := l.Reconfigure(cfg); err != nil { // the same, and so it is
			t.Fatal(err)
		}
		if err := l.SetLimit(3); err != nil {
			t.Fatal(err)
		}
		sayings(t, l, []string{"limit    3 (fixed(3)); 4 in use"}, []string{"held:"})
	})
	sayings(t, New(Config{Limit: limit.Fixed(2), Observe: true}), nil, []string{"held:"})
}
