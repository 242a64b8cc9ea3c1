package live

import (
	"context"
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
			AgoSeconds: 1, Count: 3, Outcome: "rejected", Reason: "queue_full", Text: refused.Error(), Knob: refused.Knob(),
			RetryAfterSeconds: refused.RetryAfter.Seconds(),
		}
		if x.Limiter != "a" || len(x.Refused) != 1 || want.Knob == "" || want.Text == "" || x.Refused[0] != want {
			t.Errorf("%+v, want %+v", x.Refused, want)
		}
		time.Sleep(interval)
	})
}
