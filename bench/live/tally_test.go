package live

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

const second = time.Second

func TestTallySorts(t *testing.T) {
	p := Cold(1, 60, 50*time.Millisecond, 2*second, 1)
	y := newTally(p)
	end := func(due, took time.Duration, a answer) {
		r := Request{Due: due}
		y.arrive(r)
		y.end(r, time.Millisecond, due+took, a)
	}
	end(0, 400*time.Millisecond, answer{status: http.StatusOK})             // good and quick
	end(0, 401*time.Millisecond, answer{status: http.StatusOK})             // good
	end(0, 2*second, answer{status: http.StatusOK})                         // good, but after the last arrival
	end(0, 2*second+1, answer{status: http.StatusOK})                       // late
	end(0, 2*second, answer{status: gaveUp})                                // late
	end(second, 0, answer{status: http.StatusTooManyRequests})              // refused
	end(second, 0, answer{status: http.StatusServiceUnavailable})           // refused
	end(second, 0, answer{status: http.StatusInternalServerError})          // failed
	end(second, 0, answer{err: errors.New("connection reset by somebody")}) // failed
	if y.good != 3 || y.quick != 1 || y.late != 2 || y.refused != 2 || y.failed != 2 || y.offered != 9 {
		t.Errorf("%+v", y)
	}
	if y.bins[0].Good != 2 || y.bins[0].Quick != 1 || y.bins[2].Refused != 2 || y.bins[0].Arrived != 5 || y.bins[2].Arrived != 4 {
		t.Errorf("%+v", y.bins)
	}
	if len(y.latency) != 5 || quantile(y.latency, 1) != 2*second {
		t.Errorf("latencies %v: late ones count as the deadline", y.latency)
	}
}

// steadily returns a tally whose bins have the given good answers, a fifth of them slow,
// of 900 arrivals each.
func steadily(p Plan, good ...int) *tally {
	y := newTally(p)
	for i := range y.bins {
		n := good[min(i, len(good)-1)]
		y.bins[i] = Bin{Arrived: 900, Good: n, Quick: n * 4 / 5}
	}
	return y
}

func TestRatiosAndSettling(t *testing.T) {
	p := Step(1.5, 60, 50*time.Millisecond, 4*second, 1) // 600, 200, 600 answers a bin at the most
	y := steadily(p,
		600, 600, 600, 600, 600, 600, 600, 600,
		200, 200, 200, 200, 200, 200, 200, 200,
		200, 400, 600, 600, 600, 600, 300, 300)
	r := y.result("x", 1, 0, false)
	for i, want := range []struct{ ratio, quick float64 }{{1, 0.8}, {1, 0.8}, {0.75, 0.6}} {
		if got := r.Phases[i]; math.Abs(got.Ratio-want.ratio) > 1e-9 || math.Abs(got.Quick-want.quick) > 1e-9 {
			t.Errorf("phase %d: %+v, want %+v", i, got, want)
		}
	}
	// Windows of four bins from the third phase on: 0.75, 0.92, 1.
	for i, want := range []float64{0, 0, 1} {
		if got := r.Phases[i].Settle; got == nil || *got != want {
			t.Errorf("phase %d settles after %v, want %v", i, got, want)
		}
	}
	if want := (8*600 + 8*200 + 3600) / (16*600 + 8*200.0); math.Abs(r.Ratio-want) > 1e-9 {
		t.Errorf("ratio %v, want %v", r.Ratio, want)
	}
	half := steadily(p, 200, 600).result("x", 1, 0, false) // windows: 0.83, 1
	if got := half.Phases[0].Settle; got == nil || *got != 0.5 {
		t.Errorf("settles after %v, want 0.5", got)
	}
	if never := steadily(p, 100).result("x", 1, 0, false); never.Phases[2].Settle != nil {
		t.Errorf("settles after %v at a sixth", *never.Phases[2].Settle)
	}
	if fast := steadily(p, 500).result("x", 0.5, 0, false); math.Abs(fast.Phases[0].Ratio-500/300.0) > 1e-9 {
		t.Errorf("ratio %v: at half the speed there are 300 to be had", fast.Phases[0].Ratio)
	}
}

func TestSamplesAreMeans(t *testing.T) {
	p := Cold(1, 60, 50*time.Millisecond, 2*second, 1)
	y := newTally(p)
	for i, limit := range []int{10, 20, 60} {
		y.sample(time.Duration(i)*100*time.Millisecond, limit, limit*2, 1)
	}
	y.sample(-1, 1e6, 0, 0)
	y.sample(2*second, 1e6, 0, 0) // outside: nobody reads it
	if b := y.bins[0]; math.Abs(b.Limit-30) > 1e-9 || math.Abs(b.Waiting-60) > 1e-9 || b.Busy != 1 || y.bins[3].Limit != 0 {
		t.Errorf("%+v", y.bins)
	}
	for i := range y.bins {
		y.bins[i].Limit = []float64{0, 0, 50, 70}[i]
	}
	r := y.result("x", 1, 0, true)
	if *r.Limit != 30 || *r.Spread != 10 { // the mean of all, the deviation of the second half
		t.Errorf("mean %v, deviation %v", *r.Limit, *r.Spread)
	}
}

func TestVoid(t *testing.T) {
	p := Cold(1, 60, 50*time.Millisecond, 2*second, 1)
	fine := func() *tally {
		y := newTally(p)
		y.offered, y.lateness = 1000, []time.Duration{maxLate}
		return y
	}
	for _, tc := range []struct {
		want  string
		speed float64
		with  func(*tally)
	}{
		{"", 0.95, func(*tally) {}},
		{"", 1, func(y *tally) { y.dropped, y.failed = 10, 10 }},
		{"interrupted", 1, func(y *tally) { y.interrupted = true }},
		{"no request", 1, func(y *tally) { y.offered = 0 }},
		{"11 of 1000 requests were not sent", 1, func(y *tally) { y.dropped = 11 }},
		{"lost, the first to: status 500", 1, func(y *tally) { y.failed, y.firstError = 11, errors.New("status 500") }},
		{"20.1ms late", 1, func(y *tally) { y.lateness[0] += 100 * time.Microsecond }},
		{"94.0 % of the time in slots was work", 0.94, func(*tally) {}},
	} {
		y := fine()
		tc.with(y)
		if got := y.void(tc.speed); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("void %q, want %q", got, tc.want)
		}
	}
}

// A second begins with each bin of half a second. Of 900 arrivals a bin, 1,641 answers are
// enough for one: 0.95 - 4 sqrt(108)/1080 = 0.9115 of 1,800.
func TestRecovered(t *testing.T) {
	p := Stall(0.9, 60, 50*time.Millisecond, 1) // 20 bins, 10 without slots, 24
	for _, c := range []struct {
		name string
		good func(bin int) int
		want float64 // below 0: never
	}{
		{"at once", func(bin int) int { return map[bool]int{true: 0, false: 900}[bin >= 20 && bin < 30] }, 0},
		{"after 2 s", func(bin int) int { return map[bool]int{true: 0, false: 900}[bin >= 20 && bin < 34] }, 2},
		{"and again", func(bin int) int { return map[bool]int{true: 0, false: 900}[bin >= 20 && bin < 32 || bin == 40] }, 5.5},
		{"enough", func(bin int) int { return map[bool]int{true: 0, false: 821}[bin >= 20 && bin < 30] }, 0},
		{"not enough", func(bin int) int { return map[bool]int{true: 0, false: 820}[bin >= 20 && bin < 30] }, -1},
		{"never", func(int) int { return 0 }, -1},
	} {
		y := newTally(p)
		for i := range y.bins {
			y.bins[i] = Bin{Arrived: 900, Good: c.good(i)}
		}
		switch got := y.recovered(); {
		case got == nil && c.want >= 0, got != nil && math.Abs(*got-c.want) > 1e-9:
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if y := newTally(Cold(1, 60, 50*time.Millisecond, second, 1)); y.recovered() != nil {
		t.Error("recovered from no stall")
	}
}
