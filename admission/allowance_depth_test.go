package admission

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goodput/goodput/limit"
)

// The depth where an allowance binds, by hand: the last place is granted d/allowed from
// now and its service must then fit.
func TestDepthUnderAllowance(t *testing.T) {
	for _, c := range []struct {
		name           string
		quantile       func(float64) float64
		slots, allowed float64
		objective      float64
		want           int
	}{
		// 35 grants take 350 ms, and the service ends at 400.
		{"fixed", fixedAt(0.05), 1200, 100, 0.4, 35},
		// The p99 of the service is 230.26 ms: 169.7 ms are left, 16 grants.
		{"exponential", exponentialAt(0.05), 1200, 100, 0.4, 16},
		// The p99 is 427.6 ms.
		{"lognormal CV 2", lognormalAt(0.05, 2), 1200, 100, 0.4, 0},
		{"lognormal CV 2", lognormalAt(0.05, 2), 1200, 100, 2, 157},
		// An allowance that never binds changes nothing: see TestDerivedDepth.
		{"exponential", exponentialAt(0.05), 1200, 1e6, 0.4, 201},
		{"fixed", fixedAt(0.05), 1200, 1e6, 0.4, 420},
	} {
		e := measured(100_000, c.quantile)
		_, cv2 := e.moments()
		d, ok := e.deepest(pace{slots: c.slots, cv2: cv2, allowed: c.allowed}, c.objective, 0.01, 1, 1<<20)
		if ok != (c.want > 0) || math.Abs(float64(d-c.want)) > 0.005*float64(c.want) {
			t.Errorf("%s, %v/s allowed, %v s: %d deep, want %d", c.name, c.allowed, c.objective, d, c.want)
		}
	}
}

// The same by brute force, also where the slots and the allowance are about as fast: the
// share of draws in which the later of d departures and d grants, and a service, take too
// long.
func TestAllowanceDepthAgainstDraws(t *testing.T) {
	const seed, n = 11, 20_000
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	e := measured(100_000, exponentialAt(0.05))
	for _, c := range []struct {
		d              int
		slots, allowed float64
	}{{16, 1200, 100}, {17, 1200, 100}, {20, 160, 150}, {20, 150, 160}, {10, 100, 100}, {30, 120, 100}} {
		count := 0
		for range n {
			departs := 0.0
			for range c.d {
				departs += r.ExpFloat64() / c.slots
			}
			if max(departs, float64(c.d)/c.allowed)+r.ExpFloat64()*0.05 > 0.4 {
				count++
			}
		}
		got, want := e.late(c.d, pace{slots: c.slots, cv2: 1, allowed: c.allowed}, 0.4), float64(count)/n
		// Four standard errors of a count, and 0.1 point for the gamma.
		if tolerance := 4*math.Sqrt(want*(1-want)/n) + 0.001; math.Abs(got-want) > tolerance {
			t.Errorf("%+v: late with %.4f, draws say %.4f", c, got, want)
		}
	}
}

// md1 returns the part of an allowance that is lost with room for n, in the bucket and the
// queue together: an M/D/1/n queue, by the chain of what each departure leaves behind.
func md1(n int, load float64) float64 {
	a := func(k int) float64 { // k arrive in a service
		lg, _ := math.Lgamma(float64(k + 1))
		return math.Exp(-load + float64(k)*math.Log(load) - lg)
	}
	pi, sum := []float64{1}, 1.0
	for j := range n - 1 {
		next := pi[j] - pi[0]*a(j)
		for i := 1; i <= j; i++ {
			next -= pi[i] * a(j-i+1)
		}
		pi = append(pi, next/a(0))
		sum += pi[j+1]
	}
	left := pi[0] / sum // the part of departures that leave nobody: then it idles for 1/load
	return left / (left + load)
}

// What keeps an allowance in use, against the exact queue: so many places lose no more
// than 0.1 % of it, and one less would.
func TestStandingSpaced(t *testing.T) {
	for _, load := range []float64{1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10} {
		n := standingSpaced(0, load)
		if lost := md1(n, load); n > 1 && lost > 1.02*idleTolerated {
			t.Errorf("load %v: %d places lose %.5f", load, n, lost)
		}
		if n > 2 {
			if lost := md1(n-1, load); lost < 0.98*idleTolerated {
				t.Errorf("load %v: %d places lose only %.5f, and %d were asked for", load, n-1, lost, n)
			}
		}
		t.Logf("load %v: %d, of which a burst of 20 leaves %d", load, n, standingSpaced(20, load))
		for _, burst := range []float64{0.5, 1, 5.9, 20, 1e9} {
			if got, want := standingSpaced(burst, load), max(n-int(burst), 1); got != want {
				t.Errorf("load %v, burst %v: %d, want %d", load, burst, got, want)
			}
		}
	}
	// The ends: next to 1 it is 1/(2 x 0.1 %), and nothing is divided by 0.
	for _, c := range []struct {
		load float64
		want int
	}{{1 + 1e-6, 500}, {1e9, 1}, {math.Inf(1), 1}} {
		if got := standingSpaced(0, c.load); math.Abs(float64(got-c.want)) > 0.01*float64(c.want) {
			t.Errorf("load %v: %d, want %d", c.load, got, c.want)
		}
	}
	if got := standingSpaced(0, math.Nextafter(1, 2)); got < 400 {
		t.Errorf("next to 1: %d", got)
	}
}

// The derivation says both rates and goes by the lower one.
func TestAllowanceIsDerived(t *testing.T) {
	for _, c := range []struct {
		q    Quota
		rate float64
		says string
	}{
		{Quota{}, 1200, "60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 230ms -> 201 deep (rule of thumb 480: p99 would be 634ms)"},
		{Quota{Rate: 100, Burst: 20}, 100, "60 slots / 50ms mean = 1200/s, 100/s allowed, burst 20; objective 400ms p99, service p99 230ms -> 16 deep (rule of thumb 40: p99 would be 633ms)"},
		{Quota{Rate: 5000}, 1200, "60 slots / 50ms mean = 1200/s, 5000/s allowed, burst 5000; objective 400ms p99, service p99 230ms -> 201 deep"},
		{Quota{Rate: 0.5}, 0.5, "60 slots / 50ms mean = 1200/s, 0.5/s allowed, burst 1; objective 400ms p99, service p99 230ms -> 0 deep"},
	} {
		core, err := New(Config{Limit: limit.Fixed(60), Objective: 400 * ms, Service: 50 * ms, Allowance: c.q})
		if err != nil {
			t.Fatal(err)
		}
		d := core.Stats(0).Derivation
		if math.Abs(d.Rate-c.rate) > 0.01*c.rate || !strings.HasPrefix(d.String(), c.says) {
			t.Errorf("%+v: rate %v, %s\nwant %s", c.q, d.Rate, d, c.says)
		}
	}
	// What cannot be met whatever the depth is has what keeps the narrower of the two in
	// use: at 1.5 times an allowance of 100/s with a burst of 1 that is 7.
	core, err := New(Config{Limit: limit.Fixed(60), Objective: 60 * ms, Service: 50 * ms, Allowance: Quota{Rate: 100, Burst: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if s := core.Stats(0).Derivation.String(); !strings.Contains(s, "unreachable: the service alone takes longer; 7 deep, what keeps the allowance in use") {
		t.Error(s)
	}
}
