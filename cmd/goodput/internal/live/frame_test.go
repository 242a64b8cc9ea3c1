package live

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A tick says what callers were told lately, as they were told, and which setting decided.
func TestATickSaysWhatCallersWereTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{Name: "a", Limit: limit.Fixed(1), Depth: goodput.NoQueue})
		w := start(t, those(lim), nil)
		v := w.watch(t, "")
		defer v.leave()
		v.history()
		if x := v.tick().Limiters[0].Explanation; x.Refused == nil || len(x.Refused) != 0 || len(x.Facts) == 0 {
			t.Errorf("before any: %+v", x)
		}
		slot, err := lim.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer slot.Release()
		_, told := lim.Acquire(context.Background())
		for range 2 {
			lim.Acquire(context.Background())
		}
		refused := told.(*goodput.Rejection)
		x := v.tick().Limiters[0].Explanation
		want := Refusal{
			AgoSeconds: 1, Count: 3, Outcome: "rejected", Reason: "queue_full", Text: refused.Error(), Knob: "depth none",
			RetryAfterSeconds: refused.RetryAfter.Seconds(),
		}
		if x.Limiter != "a" || len(x.Refused) != 1 || want.Knob == "" || want.Text == "" || x.Refused[0] != want {
			t.Errorf("%+v, want %+v", x.Refused, want)
		}
		time.Sleep(interval)
	})
}

// A clock that is set back begins a new past; those who have the one before keep it as it is.
func TestAClockThatIsSetBack(t *testing.T) {
	h := New(Config{Limiters: func() []*goodput.Limiter { return []*goodput.Limiter{named("a")} }})
	at := func(second int64) History {
		h.publish(h.sample(time.Unix(second, 0)))
		return historyOf(h.latest.past, []string{"a"})
	}
	at(100)
	before := at(101)
	for i, second := range []int64{50, 51, 52} {
		now := at(second)
		if len(now.Times) != i+1 || !slices.IsSorted(now.Times) || len(now.Limiters["a"]["limit"]) != i+1 {
			t.Errorf("second %d: %v", second, now.Times)
		}
	}
	if !slices.Equal(before.Times, []float64{100, 101}) {
		t.Errorf("the past before: %v", before.Times)
	}
}

// There is a past of so many limiters, and of no more; all are shown as they are now.
func TestThePastIsBounded(t *testing.T) {
	var lims []*goodput.Limiter
	for i := range maxKept + 9 {
		lims = append(lims, goodput.New(goodput.Config{Name: fmt.Sprint(i), Limit: limit.Fixed(1)}))
	}
	h := New(Config{Limiters: func() []*goodput.Limiter { return lims }})
	for second := range int64(3) {
		h.publish(h.sample(time.Unix(second, 0)))
	}
	past := historyOf(h.latest.past, []string{"0", fmt.Sprint(maxKept - 1), fmt.Sprint(maxKept)})
	for name, columns := range past.Limiters {
		if has := len(columns) > 0; has != (name != fmt.Sprint(maxKept)) {
			t.Errorf("%s has %d columns", name, len(columns))
		}
	}
	if n := len(h.latest.tick.Limiters); n != len(lims) {
		t.Errorf("%d of %d limiters in the tick", n, len(lims))
	}
}

// Since when nothing is protected is what whoever comes late to an incident wants to know.
func TestATickSaysForHowLongItObserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := named("a")
		w := start(t, those(lim), nil)
		v := w.watch(t, "")
		defer v.leave()
		v.history()
		for i, c := range []struct {
			on   bool
			want any
		}{{false, nil}, {true, 0.0}, {true, 1.0}, {true, 2.0}, {false, nil}, {true, 0.0}} {
			if err := lim.SetObserve(c.on); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				time.Sleep(interval)
			}
			var got any
			if s := v.tick().Limiters[0].ObservingSeconds; s != nil {
				got = *s
			}
			if got != c.want {
				t.Errorf("tick %d: %v, want %v", i, got, c.want)
			}
		}
	})
}
