package goodput

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// A limit that stands at its minimum while more is offered says so, and for how long; elsewhere there
// is no such sentence.
func TestExplainSaysThatItIsAtTheFloor(t *testing.T) {
	l := New(Config{Limit: spying(7)})
	s := l.Stats()
	s.LimitMin, s.LimitFloored, s.LimitSearch, s.LimitAsked = 7, 90*time.Second, false, 0
	said := func(s *Stats) string {
		for _, f := range l.ExplanationOf(s, nil, nil).Facts {
			if f.Topic == "limit" {
				return flat(f.Text)
			}
		}
		return ""
	}
	const floor = "it has stood at its minimum of 7 for 1m30s while more was offered than that serves"
	if got := said(&s); got != "7 (spy); 0 in use by 0 requests it has not moved yet; the law was asked 0s ago "+floor {
		t.Errorf("%q", got)
	}
	s.LimitFloored = 0
	if got := said(&s); got != "7 (spy); 0 in use by 0 requests it has not moved yet; the law was asked 0s ago" {
		t.Errorf("not at the floor: %q", got)
	}
}

// Who would make others late has budget enough itself: its deadline is not what to turn.
func TestKnobOfWhoWouldMakeOthersLate(t *testing.T) {
	for _, c := range []struct {
		left time.Duration
		want string
	}{
		{29 * time.Millisecond, "the caller's deadline (29ms left)"},
		{30 * time.Millisecond, "the Size of those that wait, and their deadlines"},
	} {
		r := Rejection{Reason: NoBudget, PredictedWait: 20 * time.Millisecond, Service: 10 * time.Millisecond, Remaining: c.left}
		if got := r.Knob(); got != c.want {
			t.Errorf("%v left: %q, want %q", c.left, got, c.want)
		}
	}
}

// How long ago something was has three figures, and one request is no "requests".
func TestExplainOfOne(t *testing.T) {
	l := New(Config{Limit: spying(7)})
	s := l.Stats()
	s.LimitChanges, s.LimitFrom, s.Running, s.InUse = 1, 3, 1, 1
	s.LimitMoved, s.LimitAsked = 14*time.Minute+5067200*time.Microsecond, 1234567*time.Microsecond
	r := []Refusal{{&Rejection{Reason: QueueFull}, 845067200 * time.Microsecond, 1}}
	text := flat(l.ExplanationOf(&s, nil, r).String())
	for _, want := range []string{"1 in use by 1 request ", "moved from 3 14m5s ago", "asked 1.23s ago", "1 x queue_full, 14m5s ago"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

func TestBriefHasThreeFigures(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 999: "999ns", 1234: "1.23µs", 154_960 * time.Microsecond: "155ms", 1236 * time.Millisecond: "1.24s",
		12_345 * time.Millisecond: "12.3s", 83_456 * time.Millisecond: "1m23.5s", // 83.5 s
	} {
		if got := brief(d).String(); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
}

// A limiter remembers the last 16 values, whatever else, and the last one of each reason beside them.
func TestRefusedIsTheLast16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Limit: limit.Fixed(1), Depth: NoQueue, Tenants: &Tenants{}}
		for i := range 40 {
			cfg.Tenants.Rows = append(cfg.Tenants.Rows, Tenant{ID: fmt.Sprint(i), Quota: Quota{Rate: 0.001, Burst: 1}})
		}
		l := New(cfg)
		for i := range 2 { // a quota of one, and then none is left
			for _, row := range cfg.Tenants.Rows {
				time.Sleep(time.Second)
				slot, err := l.AcquireWork(t.Context(), Work{Tenant: row.ID})
				if (err == nil) != (i == 0) {
					t.Fatal(i, row.ID, err)
				}
				if err == nil {
					slot.Release()
				}
			}
		}
		all := l.Refused()
		if len(all) != 16 {
			t.Fatalf("%d values, want 16", len(all))
		}
		for i, r := range all { // one a second, the latest now
			if r.Reason != OverQuota || r.Ago != time.Duration(i)*time.Second {
				t.Errorf("value %d: %v, %v ago", i, r.Reason, r.Ago)
			}
		}
	})
}

// It is refusing for so long after the last refusal for want of capacity, and no longer.
func TestLatelyHasItsWindow(t *testing.T) {
	k := refused{}
	if k.lately(0, time.Hour) {
		t.Error("nobody was refused")
	}
	k.short, k.isShort = 10*time.Second, true
	if !k.lately(11*time.Second, time.Second) || k.lately(11*time.Second+1, time.Second) {
		t.Error("a second is not a second")
	}
}

// The age is that of who waits, of either kind: with none of it waiting there is none, and with both each
// has its own.
func TestAgeIsOfWhoWaits(t *testing.T) {
	for _, c := range []struct {
		real, shadow         int
		wantReal, wantShadow time.Duration
	}{
		{1, 0, 5 * time.Second, 0},
		{0, 1, 0, 5 * time.Second},
		{0, 0, 0, 0},
	} {
		l := New(Config{Limit: limit.Fixed(1)})
		l.watched.shadow.waiting = c.shadow
		core := admission.Stats{Waiting: c.real + c.shadow}
		if core.Waiting > 0 {
			core.Age = 5 * time.Second
		}
		real, shadow := l.apart(0, core)
		if real.Waiting != c.real || shadow.Waiting != c.shadow || real.Age != c.wantReal || shadow.Age != c.wantShadow {
			t.Errorf("%d and %d wait: for %v and %v", real.Waiting, shadow.Waiting, real.Age, shadow.Age)
		}
	}
}
