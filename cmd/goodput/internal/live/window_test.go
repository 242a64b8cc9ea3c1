package live

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/internal/hist"
)

var epoch = time.Unix(1e9, 0)

// A lengths feeds a window with latencies and a clock of its own.
type lengths struct {
	w   window
	s   goodput.Stats
	now time.Time
}

func (l *lengths) tick(after time.Duration, took ...time.Duration) (time.Duration, *Quantiles) {
	for _, d := range took {
		l.s.Latency.Add(d)
	}
	l.now = l.now.Add(after)
	length, q := l.w.look(l.now, &l.s)
	return length, q[ofLatency]
}

// C138: a slow minute, then silence for ten, then fast traffic. What was slow is gone after one
// window, whatever ticks there were.
func TestOldValuesAreGoneAfterOneWindow(t *testing.T) {
	l := lengths{now: epoch}
	l.tick(0)
	for range 60 {
		_, q := l.tick(time.Second, 2*time.Second)
		if q == nil || q.P50 < 1.8 || q.P50 > 2.2 || q.Count > 10 {
			t.Fatalf("while it is slow: %+v", q)
		}
	}
	var silent int
	for i := range 600 {
		length, q := l.tick(time.Second)
		if length != windowLength {
			t.Fatalf("a window of %v", length)
		}
		if q == nil {
			silent++
		} else if i >= 10 {
			t.Fatalf("after %d s of silence: %+v", i+1, q)
		}
	}
	if silent != 591 { // the last slow one was in the tick before the silence, which is in ten windows
		t.Errorf("%d ticks of silence", silent)
	}
	if _, q := l.tick(time.Second, time.Millisecond); q == nil || q.Count != 1 || q.P99 > 0.0011 {
		t.Errorf("fast traffic: %+v", q)
	}
}

// C126: an idle window has no quantiles, which is null in JSON and neither 0 nor NaN; one
// request after ten minutes is a number again.
func TestAnIdleWindowIsNull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := named("a")
		lims := those(lim)
		w := start(t, lims, nil)
		time.Sleep(10*time.Minute + interval/2)
		v := w.watch(t, "")
		defer v.leave()
		columns := v.history().Limiters["a"]
		for _, name := range []string{"latency_p50", "latency_p99", "wait_p99", "service_p50"} {
			if columns[name] != nil {
				t.Errorf("%s is there: %v", name, columns[name])
			}
		}
		e, err := v.next()
		if err != nil || strings.Contains(e.data, "NaN") || !strings.Contains(e.data, `"latency":null,"wait":null,"service":null`) {
			t.Errorf("idle: %v %s", err, e.data)
		}
		if !strings.Contains(e.data, `"in_time":null`) {
			t.Errorf("idle: %s", e.data)
		}
		go serve(t, lim, 250*time.Millisecond)
		is := v.tick() // in which it ended
		l := is.Limiters[0]
		if l.Latency == nil || l.Latency.Count != 1 || l.Latency.P99 < 0.22 || l.Latency.P99 > 0.28 || l.Wait != nil || *l.Rates.InTime != 1 {
			t.Errorf("one request: %+v", l)
		}
		again := w.watch(t, "")
		defer again.leave()
		p99 := again.history().Limiters["a"]["latency_p99"]
		if len(p99) != kept || p99[kept-1] == nil || slices.IndexFunc(p99, func(v *float64) bool { return v != nil }) != kept-1 {
			t.Errorf("the history has %d, the last %v", len(p99), p99[kept-1])
		}
	})
}

// C128: 9, 11, 40 and 300 s are told apart, and what is beyond the last bound is flagged as
// more than the number.
func TestLongOnesAreToldApart(t *testing.T) {
	last := time.Duration(hist.Bound(hist.N-2)) * time.Second
	for took, over := range map[time.Duration]bool{
		9 * time.Second: false, 11 * time.Second: false, 40 * time.Second: false, 300 * time.Second: false,
		last: false, last + time.Second: true, 100 * last: true,
	} {
		l := lengths{now: epoch}
		l.tick(0)
		_, q := l.tick(time.Second, took)
		want := min(took, last).Seconds()
		if q == nil || q.P99 < want/1.1 || q.P99 > want*1.1 || q.Over != over {
			t.Errorf("%v: %+v, want over %v", took, q, over)
		}
	}
	// One in a hundred beyond it is not the p99; two are.
	for n, over := range map[int]bool{1: false, 2: true} {
		l := lengths{now: epoch}
		l.tick(0)
		if _, q := l.tick(time.Second, append(slices.Repeat([]time.Duration{time.Second}, 100-n), slices.Repeat([]time.Duration{2 * last}, n)...)...); q.Over != over {
			t.Errorf("%d of 100: %+v", n, q)
		}
	}
}

// Whenever the ticks come, the quantiles are those of what was added since an instant that is at
// most a window ago, or of the last tick if that is longer ago. The model keeps everything.
func TestWindowAgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	type added struct {
		at   time.Time
		took time.Duration
	}
	l := lengths{now: epoch}
	l.tick(0)
	var all []added
	before := l.now
	for i := range 3000 {
		after := time.Second
		switch r.IntN(8) {
		case 0:
			after = time.Duration(r.Int64N(int64(30 * time.Second)))
		case 1:
			after = time.Duration(r.Int64N(int64(time.Second)))
		}
		var took []time.Duration
		for range r.IntN(4) {
			took = append(took, time.Duration(r.Int64N(int64(time.Minute))))
		}
		length, q := l.tick(after, took...)
		for _, d := range took {
			all = append(all, added{l.now, d})
		}
		if length > max(windowLength+late, l.now.Sub(before)) || length <= 0 && after > 0 {
			t.Fatalf("seed %d, tick %d: a window of %v after %v", seed, i, length, after)
		}
		var h goodput.Histogram
		for _, a := range all {
			if a.at.After(l.now.Add(-length)) {
				h.Add(a.took)
			}
		}
		want, is := h.Quantile(0.99)
		if (q != nil) != is || q != nil && (q.Count != h.Count || q.P99 != want.Seconds()) {
			t.Fatalf("seed %d, tick %d: %+v, want %d with a p99 of %v", seed, i, q, h.Count, want)
		}
		before = l.now
	}
}

// Counts beyond 2^32 and a histogram that is another one give no nonsense.
func TestCountsWrap(t *testing.T) {
	l := lengths{now: epoch}
	l.s.Latency.AddN(time.Second, 1<<32-1)
	l.tick(0)
	if _, q := l.tick(time.Second, slices.Repeat([]time.Duration{time.Second}, 5)...); q == nil || q.Count != 5 || q.P50 < 0.9 || q.P50 > 1 {
		t.Errorf("over 2^32: %+v", q)
	}
	l.s.Latency = goodput.Histogram{}
	if _, q := l.tick(time.Second, time.Second); q != nil {
		t.Errorf("another histogram: %+v", q)
	}
	l = lengths{now: epoch}
	l.tick(0, time.Second)
	l.s.Latency = goodput.Histogram{}
	if _, q := l.tick(time.Second, time.Millisecond, time.Millisecond); q != nil {
		t.Errorf("another histogram with more in it: %+v", q)
	}
	if b, err := json.Marshal(Column{none, 1.5, float32(1e9), 0}); err != nil || string(b) != "[null,1.5,1e+09,0]" {
		t.Errorf("%s %v", b, err)
	}
}

// Ticks come up to a fifth of a second early and late, and each window is that of ten of them.
func TestAWindowIsTenTicks(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	l := lengths{now: epoch}
	l.tick(0)
	off := time.Duration(0)
	for i := range 1000 {
		next := time.Duration(r.Int64N(int64(interval)*2/5)) - interval/5
		_, q := l.tick(interval+next-off, time.Second)
		off = next
		if want := min(i+1, 10); q.Count != uint64(want) {
			t.Fatalf("seed %d: %d ticks in the window of tick %d, want %d", seed, q.Count, i, want)
		}
	}
}

// Waiting is of those that got a slot, and service of those that have been served.
func TestWhatTheQuantilesAreOf(t *testing.T) {
	var w window
	s := goodput.Stats{}
	w.look(epoch, &s)
	for i := range s.Wait {
		s.Wait[i].AddN(time.Duration(i+1)*time.Second, uint64(i+1))
	}
	for o := goodput.Completed; int(o) < len(s.Service); o++ {
		s.Service[o] = &goodput.Histogram{}
		s.Service[o].AddN(time.Second, 1<<o)
	}
	s.Latency.AddN(time.Minute, 77)
	_, q := w.look(epoch.Add(time.Second), &s)
	if q[ofWait].Count != 1+goodput.WaitAdmitted || q[ofService].Count != 1<<goodput.Completed+1<<goodput.Late || q[ofLatency].Count != 77 {
		t.Errorf("wait %+v, service %+v, latency %+v", q[ofWait], q[ofService], q[ofLatency])
	}
}
