package rivals_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/rivals"
	"github.com/goodput/goodput/limit"
)

const ms = time.Millisecond

// A span is what a law is told of one window.
type span struct {
	length   time.Duration
	service  time.Duration // of all
	samples  int
	peak     int
	refused  int
	pressure float64
	older    float64 // that began before the last mark and have not ended
}

func (s span) window() *limit.Window {
	w := &limit.Window{
		Length: s.length, Peak: s.peak, Running: s.peak, Ended: s.samples, Samples: s.samples,
		Mean: s.service, Own: s.service, Delayed: float64(s.refused), Pressure: s.pressure,
	}
	w.Epochs[1] = limit.Epoch{Admitted: s.older}
	if s.samples > 0 {
		w.Times = func(yield func(time.Duration, float64) bool) { yield(s.service, float64(s.samples)) }
	}
	return w
}

// A game is a law being played.
type game struct {
	*testing.T
	state limit.State
	now   int
}

func begin(t *testing.T, law limit.Law, seed uint64) *game {
	t.Helper()
	n, err := law.Start()
	if err != nil {
		t.Fatal(err)
	}
	return &game{t, law.Begin(seed), n}
}

// say hands it n such windows, and fails unless the limit is want then.
func (g *game) say(n int, s span, want int) {
	g.Helper()
	for range n {
		g.now = g.state.Next(g.now, s.window()).Limit
	}
	if g.now != want {
		g.Errorf("after %d x %+v: limit %d, want %d (%s)", n, s, g.now, want, g.state.Why())
	}
}

func (g *game) why(want string) {
	g.Helper()
	if got := g.state.Why(); !strings.Contains(got, want) {
		g.Errorf("why %q, want %q", got, want)
	}
}

// As many as the best 100 ms times the shortest time, and one.
func TestBBR(t *testing.T) {
	g := begin(t, rivals.BBR{}, 1)
	g.say(1, span{}, 2) // nothing is known
	g.say(1, span{length: 50 * ms, service: 50 * ms, samples: 60}, 2)
	// 120 in 100 ms, 50 ms: 60, and one.
	g.say(1, span{length: 50 * ms, service: 50 * ms, samples: 60}, 61)
	g.why("bbr: 2 -> 61: 120 in 100ms x 50ms, + 1")
	// The shortest and the best count for 10 s, whenever each was.
	g.say(1, span{length: 100 * ms, service: 49500 * time.Microsecond, samples: 20}, 61) // 50 ms, in whole ms
	g.say(1, span{length: 100 * ms, service: 40 * ms, samples: 20}, 49)
	g.say(1, span{length: 100 * ms, service: 100 * ms, samples: 240}, 97) // 240 x 40 ms
	g.say(95, span{length: 100 * ms, service: 100 * ms, samples: 60}, 97)
	g.say(3, span{length: 100 * ms, service: 100 * ms, samples: 60}, 241) // the 40 ms are forgotten
	g.say(1, span{length: 100 * ms, service: 100 * ms, samples: 60}, 61)  // and the 240
	g.say(1, span{length: 100 * ms, service: 100 * ms, samples: 101}, 102)
	g.say(1, span{length: 100 * ms, service: 71 * ms, samples: 60}, 72) // 101 x 71 ms = 71.7, cut
	g.say(98, span{length: 100 * ms, service: 100 * ms, samples: 60}, 43)
	g.say(1, span{length: 100 * ms, service: 100 * ms, samples: 60}, 61)
	// A window of a second is ten buckets.
	g.say(1, span{length: time.Second, service: 100 * ms, samples: 800}, 81)
	g.say(1, span{length: time.Hour}, 2) // nothing ended: 1 in 100 ms, of 1 ms
}

// With a signal of the processors it has no limit before they are busy, and for a second
// after it has refused something.
func TestBBRWaitsForTheProcessor(t *testing.T) {
	g := begin(t, rivals.BBR{Busy: 1}, 1)
	g.say(5, span{length: 100 * ms, service: 50 * ms, samples: 120}, 10_000)
	g.say(1, span{length: 100 * ms, service: 50 * ms, samples: 120, pressure: 0.9, refused: 1}, 10_000)
	g.say(1, span{length: 100 * ms, service: 50 * ms, samples: 120, pressure: 1, refused: 1}, 61)
	g.say(10, span{length: 100 * ms, service: 50 * ms, samples: 120}, 61)
	g.say(1, span{length: 100 * ms, service: 50 * ms, samples: 120}, 10_000)
	g.why("no limit")
	// What it refuses while it is armed keeps it so.
	g.say(1, span{length: 100 * ms, service: 50 * ms, samples: 120, pressure: 2, refused: 9}, 61)
	g.say(50, span{length: 100 * ms, service: 50 * ms, samples: 120, refused: 1}, 61)
}

func TestBBRFrom(t *testing.T) {
	g := begin(t, rivals.BBR{From: 30}, 1)
	g.say(1, span{length: 50 * ms, service: 50 * ms, samples: 60}, 30)
	g.say(1, span{length: 50 * ms, service: 50 * ms, samples: 60}, 61)
}

// It measures at 3, without those who began before, and then follows the median.
func TestEnvoy(t *testing.T) {
	calm := span{length: 50 * ms, service: 50 * ms, samples: 30}
	g := begin(t, rivals.Envoy{From: 20}, 1)
	g.say(1, calm, 3)
	g.say(1, calm, 20) // 60 are enough
	g.why("envoy: 3 -> 20: shortest 50ms measured by 60 samples")
	g.say(1, calm, 20) // 50 ms
	g.say(1, calm, 30) // 25 and 5
	g.why("envoy: 20 -> 30: gradient 1.25 = 1.25 x 50ms / 50ms of 60 samples")
	g.say(2, span{length: 50 * ms, service: 125 * ms, samples: 30}, 18) // 15 and 3.9
	g.say(2, span{length: 50 * ms, service: time.Second, samples: 30}, 12)
	g.say(2, span{length: 50 * ms, service: 10 * ms, samples: 30}, 28) // at most twice: 24 and 4.9
	g.say(9, span{length: 50 * ms}, 28)                                // nothing ended, nothing is known
	// The six windows of half a second count from the last one that said something.
	g.say(1, span{length: 50 * ms, service: 62500 * time.Microsecond, samples: 1}, 33)
}

// It measures anew after its interval, and waits for those who began before.
func TestEnvoyMeasuresAnew(t *testing.T) {
	calm := span{length: 100 * ms, service: 50 * ms, samples: 60}
	slow := span{length: 100 * ms, service: 90 * ms, samples: 60}
	g := begin(t, rivals.Envoy{Max: 40, Interval: 10 * time.Second}, 1)
	g.say(1, calm, 3)
	seconds := 0.0
	for g.now = 40; (g.now == 40 || seconds < 3) && seconds < 20; seconds += 0.1 {
		m := g.state.Next(g.now, calm.window())
		if g.now = m.Limit; m.Mark != (g.now == 3 && seconds > 3) {
			t.Errorf("after %.1f s, at %d: mark %v", seconds, m.Limit, m.Mark)
		}
	}
	if seconds < 10 || seconds > 11.6 {
		t.Errorf("it measured anew after %.1f s, want 10 to 11.5", seconds)
	}
	older := slow
	older.older = 1
	g.say(20, older, 3) // those of before are slow, and it waits for them
	g.say(1, slow, 3)   // in this one the last of them ended
	g.say(1, calm, 40)
	g.why("shortest 50ms measured by 60 samples")
	// Those who never end are waited for 10 s, and no longer.
	for i := 0; !g.state.Next(40, calm.window()).Mark; i++ {
		if i > 200 {
			t.Fatal("it does not measure in 20 s")
		}
	}
	g.say(100, older, 3)
	g.say(1, older, 40)
}

// At the floor for 5 windows in a row, it measures anew: the one before may have been
// wrong.
func TestEnvoyAtItsFloor(t *testing.T) {
	g := begin(t, rivals.Envoy{}, 1)
	g.say(1, span{length: 100 * ms, service: 10 * ms, samples: 60}, 3)
	slow := span{length: 100 * ms, service: 200 * ms, samples: 60}
	g.say(4, slow, 3)
	if m := g.state.Next(3, slow.window()); !m.Mark {
		t.Error("it does not measure after 5 windows at 3")
	}
	g.say(2, slow, 3) // older, and then 60 of 200 ms
	g.say(1, slow, 5) // 3 x 1.25 and 1.9
}

// Instances do not measure at the same time (C034).
func TestEnvoyJitter(t *testing.T) {
	calm := span{length: 100 * ms, service: 50 * ms, samples: 60}
	at := map[int]bool{}
	for seed := range uint64(50) {
		g := begin(t, rivals.Envoy{Max: 40}, seed)
		g.say(1, calm, 3)
		for i := 1; i < 2000; i++ {
			if g.state.Next(40, calm.window()).Mark {
				at[i] = true
				break
			}
		}
	}
	first, last := math.MaxInt, 0
	for i := range at {
		first, last = min(first, i), max(last, i)
	}
	if len(at) < 25 || first < 600 || last > 691 {
		t.Errorf("50 instances measure at %d instants, after %d to %d windows of 100 ms; want 60 to 69 s", len(at), first, last)
	}
}

func TestFailsafe(t *testing.T) {
	calm := span{length: time.Second, service: 50 * ms, samples: 100, peak: 1000}
	slow := calm
	slow.service = 200 * ms
	g := begin(t, rivals.Failsafe{}, 1)
	g.say(1, span{length: 50 * ms, service: 50 * ms, samples: 49, peak: 1000}, 20)
	g.say(1, span{length: 50 * ms, service: 50 * ms, samples: 1, peak: 1000}, 21) // the first, as soon as it can
	g.say(19, span{length: 50 * ms, service: 50 * ms, samples: 50, peak: 1000}, 21)
	g.say(1, span{length: 50 * ms, service: 50 * ms, samples: 50, peak: 1000}, 22)
	g.say(10, calm, 32)
	// Two slow ones of five are not the median. Then recent is 50 + 150/3 = 100, baseline
	// 50 + 50 x 2/11 = 59, and the queue 34 x 0.41 = 14, above 6.
	g.say(2, slow, 34)
	g.say(1, slow, 33)
	g.why("failsafe: 34 -> 33: queue estimate 14 of 3 x 1 to 6 x 1; baseline 59.1ms, recent 100ms")
	g.say(1, slow, 32)
	// After half a minute what is slow is normal.
	g.say(8, slow, 26)
	g.say(20, slow, 43)
	// From 100 on it moves by 2.
	g = begin(t, rivals.Failsafe{From: 120}, 1)
	g.say(3, calm, 126)
	// At most 5 times what was in flight, and down to it by steps.
	little := calm
	little.peak = 5
	g.say(3, little, 120)
	g.why("at most 5 x the 5 in flight")
	g = begin(t, rivals.Failsafe{From: 24}, 1)
	g.say(3, little, 25)
	// Twice the shortest time is a window, if that is more than a second; at most 30 s.
	long := calm
	long.service = 3 * time.Second
	g = begin(t, rivals.Failsafe{}, 1)
	g.say(1, long, 21)
	g.say(5, long, 21)
	g.say(1, long, 22)
	long.service = time.Minute
	g.say(5, long, 22)
	g.say(1, long, 21) // 2 x 3 s
	g.say(29, long, 21)
	g.say(1, long, 20)
}

// While all slots are taken, times that rise with what is in flight say that more of it
// brings nothing.
func TestFailsafeCorrelations(t *testing.T) {
	for _, c := range []struct {
		what  string
		power float64 // time ~ in flight to the power
		full  bool
		why   string
	}{
		{"more in flight, less served", 1.6, true, "throughput falls with what is in flight"},
		{"more in flight, as much served", 0.97, true, "throughput has a CV"},
		{"more in flight, more served", 0, true, "queue estimate"},
		{"slots are free", 1.6, false, "queue estimate"},
	} {
		g := begin(t, rivals.Failsafe{From: 60}, 1)
		heard := false
		for i := range 40 {
			// It goes up and down between 60 and 75, slowly: no queue by the first test.
			flight := 67.5 + 7.5*math.Sin(float64(i)/6)
			s := span{length: time.Second, samples: 100, peak: int(flight)}
			s.service = time.Duration(math.Pow(float64(s.peak)/60, c.power) * 50 * float64(ms))
			w := s.window()
			if w.Running = 0; c.full {
				w.Running = 200
			}
			was := g.now
			g.now = g.state.Next(g.now, w).Limit
			if heard = heard || strings.Contains(g.state.Why(), c.why); strings.Contains(g.state.Why(), "with what is in flight") != (g.now < was) {
				t.Errorf("%s: %s", c.what, g.state.Why())
			}
		}
		if !heard || c.full && c.power > 0 == (g.now > 85) {
			t.Errorf("%s: limit %d (%s)", c.what, g.now, g.state.Why())
		}
	}
}

// FuzzLaws: as for the laws of package limit.
func FuzzLaws(f *testing.F) {
	for _, seed := range []uint64{0, 1, 2, 3, 70} { // 70: counts of 1 and 1e300
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		for _, name := range rivals.Names {
			law, err := rivals.Named(name, 20)
			if err != nil {
				t.Fatal(err)
			}
			a, b := law.Begin(seed), law.Begin(seed)
			draw, same := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))
			now, most := 20, 1000
			if name == "bbr" {
				most = 10_000
			}
			for i := range 200 {
				m, n := a.Next(now, wild(draw, now)), b.Next(now, wild(same, now))
				if m != n || a.Why() != b.Why() {
					t.Fatalf("seed %d, %s, window %d: %+v, %q, and %+v, %q", seed, name, i, m, a.Why(), n, b.Why())
				}
				if now = m.Limit; now < 1 || now > most {
					t.Fatalf("seed %d, %s, window %d: limit %d is not within 1 to %d (%s)", seed, name, i, now, most, a.Why())
				}
				if why := a.Why(); why != "" && !strings.HasPrefix(why, strings.TrimPrefix(name, "gcl_")) || strings.Contains(why, "NaN") {
					t.Fatalf("seed %d, %s: why %q", seed, name, why)
				}
			}
		}
	})
}

// wild draws a window, every other one of which has values that nothing can be.
func wild(r *rand.Rand, now int) *limit.Window {
	s := span{length: 50 * ms, service: time.Duration(r.ExpFloat64() * 50 * float64(ms)), samples: r.IntN(50), peak: r.IntN(2*now + 1), refused: r.IntN(2)}
	w := s.window()
	if r.IntN(2) == 0 {
		return w
	}
	odd := func() int { return []int{0, -1, math.MinInt, math.MaxInt, 1, r.IntN(1 << 40)}[r.IntN(6)] }
	real := func() float64 {
		return []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, r.ExpFloat64()}[r.IntN(7)]
	}
	w.Length, w.Peak, w.Running = time.Duration(odd()), odd(), odd()
	w.Ended, w.Dropped, w.Samples = odd(), odd(), odd()
	w.Mean, w.Own = time.Duration(odd()), time.Duration(odd())
	w.Delayed, w.Pressure = real(), real()
	w.Epochs[1].Admitted, w.Epochs[1].Ended = real(), real()
	at, n := time.Duration(odd()), real()
	w.Times = func(yield func(time.Duration, float64) bool) {
		_ = yield(at, n) && yield(-at, 1) && yield(ms, math.NaN()) && yield(2*ms, 60)
	}
	return w
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		law  limit.Law
		want string
	}{
		{rivals.BBR{}, "2"},
		{rivals.BBR{Busy: 1}, "10000"},
		{rivals.BBR{From: 7}, "7"},
		{rivals.BBR{From: -1}, "start -1"},
		{rivals.BBR{Busy: math.NaN()}, "busy NaN"},
		{rivals.Envoy{}, "3"},
		{rivals.Envoy{From: 20}, "3"},
		{rivals.Envoy{From: 2}, "2"},
		{rivals.Envoy{Max: 2}, "2"},
		{rivals.Envoy{From: 20, Max: 10}, "start 20, max 10"},
		{rivals.Envoy{Least: -1}, "least -1"},
		{rivals.Envoy{Interval: ms}, "interval 1ms"},
		{rivals.Failsafe{}, "20"},
		{rivals.Failsafe{Max: 10}, "10"},
		{rivals.Failsafe{From: 300}, "300"},
		{rivals.Failsafe{From: 300, Max: 200}, "start 300, max 200"},
		{rivals.Failsafe{Min: -1}, "min -1"},
	} {
		n, err := c.law.Start()
		got := fmt.Sprint(n)
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%#v: %q, want %q", c.law, got, c.want)
		}
	}
}
