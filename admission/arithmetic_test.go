package admission

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// measured returns an estimate that has seen n stratified samples of a
// distribution, so that its quantiles carry no sampling noise, and whose prior
// no longer counts.
func measured(n int, quantile func(u float64) float64) *estimate {
	e := &estimate{}
	e.setPrior(50*time.Millisecond, 2*time.Second, 400*time.Millisecond)
	var b, none Batch
	for i := range n {
		s := time.Duration(quantile((float64(i)+0.5)/float64(n)) * float64(time.Second))
		b.Add(s, s, 1, 1)
	}
	e.observe(0, &b)
	e.observe(400*time.Millisecond, &none)
	return e
}

func fixedAt(s float64) func(float64) float64 { return func(float64) float64 { return s } }

func exponentialAt(mean float64) func(float64) float64 {
	return func(u float64) float64 { return -mean * math.Log(1-u) }
}

func lognormalAt(mean, cv float64) func(float64) float64 {
	s2 := math.Log(1 + cv*cv)
	return func(u float64) float64 {
		return mean * math.Exp(-s2/2+math.Sqrt(2*s2)*math.Erfinv(2*u-1))
	}
}

// near fails unless got is within a relative tolerance of want. The tolerance of
// the depths is 0.5 %: 0.2 % for what a bucket of the histogram takes from the
// shape of a distribution, 0.3 % for the gamma that stands in for the sum of
// many services; and of a figure that is quoted from a simulation, its standard
// error besides.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*want) {
		t.Errorf("%s: %.6g, want %.6g within %.2g %%", what, got, want, 100*tolerance)
	}
}

// 60 slots of 50 ms serve 1,200 a second.
func TestDerivedDepth(t *testing.T) {
	for _, c := range []struct {
		name      string
		quantile  func(float64) float64
		objective float64
		want      float64 // 0: unreachable
		tolerance float64
	}{
		// 420 departures take 350 ms, the 421st service ends at 400 ms.
		{"fixed", fixedAt(0.05), 0.4, 420, 0},
		// P(Erlang(d, 1200/s) + Exp(50 ms) > 400 ms) <= 1 % up to 201 exactly.
		{"exponential", exponentialAt(0.05), 0.4, 201, 0.005},
		// The p99 of one service is 428 ms.
		{"lognormal CV 2", lognormalAt(0.05, 2), 0.4, 0, 0},
		{"fixed", fixedAt(0.05), 2, 2340, 0},
		// The exact sum gives 2,106; a simulation 2,097, with a standard error
		// of about 5 from the count of those that were late.
		{"exponential", exponentialAt(0.05), 2, 2106, 0.005},
		// From a simulation; the tail of the sum of 1,868 lognormal services is
		// heavier than that of the gamma, by 0.3 % of the depth.
		{"lognormal CV 2", lognormalAt(0.05, 2), 2, 1868, 0.01},
	} {
		e := measured(100_000, c.quantile)
		_, cv2 := e.moments()
		d, ok := e.deepest(pace{slots: 1200, cv2: cv2}, c.objective, 0.01, 1, 1<<20)
		if ok != (c.want > 0) {
			t.Errorf("%s, %v s: reachable %v", c.name, c.objective, ok)
		}
		near(t, c.name, float64(d), c.want, c.tolerance)
		for _, guess := range []int{0, d - 1, d, d + 1, 10 * d, 1 << 20} { // wherever the search starts
			if again, _ := e.deepest(pace{slots: 1200, cv2: cv2}, c.objective, 0.01, guess, 1<<20); again != d {
				t.Errorf("%s, %v s: %d from guess %d, but %d from 1", c.name, c.objective, again, guess, d)
			}
		}
		if most, _ := e.deepest(pace{slots: 1200, cv2: cv2}, c.objective, 0.01, 1, 100); most != min(d, 100) {
			t.Errorf("%s: %d, at most 100 were allowed", c.name, most)
		}
	}
}

// The same depths by brute force: the share of sums of d exponential
// inter-departure times and one service that exceed the objective.
func TestDerivedDepthAgainstDraws(t *testing.T) {
	const seed, n = 7, 20_000
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	late := func(d int) float64 {
		count := 0
		for range n {
			sum := r.ExpFloat64() * 0.05
			for range d {
				sum += r.ExpFloat64() / 1200
			}
			if sum > 0.4 {
				count++
			}
		}
		return float64(count) / n
	}
	e := measured(100_000, exponentialAt(0.05))
	for _, d := range []int{100, 201, 300, 400, 480} {
		got, want := e.late(d, pace{slots: 1200, cv2: 1}, 0.4), late(d)
		// Four standard errors of a count, and 0.1 point for the gamma.
		if tolerance := 4*math.Sqrt(want*(1-want)/n) + 0.001; math.Abs(got-want) > tolerance {
			t.Errorf("P(late at depth %d) = %.4f, draws say %.4f", d, got, want)
		}
	}
}

// Work that takes always the same, on slots out of step: the depth against draws of when
// each comes free. Whole rounds take what they take; nearly whole ones no more.
func TestDerivedDepthOfRounds(t *testing.T) {
	const seed, n, mean = 7, 20_000, 0.18
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	late := func(slots, d int, objective float64) float64 {
		count, phases := 0, make([]float64, slots-1)
		for range n {
			for i := range phases {
				phases[i] = r.Float64()
			}
			slices.Sort(phases)
			// The d-th place is taken when a slot has just been: it comes free last, after a
			// round, and the others before it.
			wait := float64(d / slots)
			if rest := d % slots; rest > 0 {
				wait += phases[rest-1]
			}
			if (wait+1)*mean > objective+1e-9 {
				count++
			}
		}
		return float64(count) / n
	}
	e := measured(100_000, fixedAt(mean))
	for _, c := range []struct {
		slots     int
		objective float64
	}{{8, 0.4}, {8, 0.45}, {8, 0.6}, {16, 0.4}, {16, 0.5}, {60, 0.4}, {2, 0.4}, {4, 0.36}, {4, 0.5}} {
		want := 0
		for want < 1000 && late(c.slots, want+1, c.objective) <= 0.01 {
			want++
		}
		of := pace{slots: float64(c.slots) / mean, limit: c.slots, cv2: 0}
		for _, guess := range []int{1, 10, 1000} {
			got, ok := e.deepest(of, c.objective, 0.01, guess, 1<<20)
			if !ok || math.Abs(float64(got-want)) > 1+0.02*float64(c.slots) {
				t.Errorf("%d slots, objective %v s, from %d: %d deep, draws say %d", c.slots, c.objective, guess, got, want)
			}
		}
	}
}

// The rule of thumb for a p99 of 400 ms is 480 deep, which is the mean wait.
func TestRuleOfThumb(t *testing.T) {
	for _, c := range []struct {
		name      string
		quantile  func(float64) float64
		want      float64 // ms
		tolerance float64
	}{
		{"fixed", fixedAt(0.05), 450, 1e-3},
		// Usually quoted is 628 ms, from a simulation. Exactly, with the 480
		// departures and the service exponential: 1 % = P(E480/1200 + Exp(50 ms)
		// > t), and for t past the bulk of the sum that is exp(-t/50ms) times
		// its moment generating function, (1200/(1200 - 20))^480. So t =
		// 50ms (ln 100 + 480 ln(60/59)) = 633.6 ms.
		{"exponential", exponentialAt(0.05), 1000 * 0.05 * (math.Log(100) + 480*math.Log(60.0/59)), 0.005},
		{"lognormal CV 2", lognormalAt(0.05, 2), 825, 0.01}, // "about": simulations say 821 to 825
	} {
		e := measured(100_000, c.quantile)
		_, cv2 := e.moments()
		near(t, c.name, 1000*e.latency(480, pace{slots: 1200, cv2: cv2}, 0.99), c.want, c.tolerance)
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		d            int
		rate, cv2, t float64
		want         float64
	}{
		{0, 1200, 1, 0, 0}, // no departure takes no time
		{0, 1200, 1, -1e-9, 1},
		{1, 1200, 1, 0, 1},
		{1, 1, 1, 1, math.Exp(-1)},     // one exponential
		{2, 1, 1, 3, 4 * math.Exp(-3)}, // Erlang: e^-t (1 + t)
		{480, 1200, 0, 0.4, 0},         // fixed: just in time
		{480, 1200, 0, 0.399, 1},
		{1 << 24, 1200, 1, 1e-3, 1},
		{1, 1200, 1, 1e9, 0},
	} {
		// Wilson and Hilferty are within 0.01 even for a single exponential.
		queue := departing(c.d, pace{slots: c.rate, cv2: c.cv2})
		if got := queue.longer(c.t); math.Abs(got-c.want) > 0.01 {
			t.Errorf("departing(%d, %v, %v).longer(%v) = %v, want %v", c.d, c.rate, c.cv2, c.t, got, c.want)
		}
	}
}

func TestStandingDepth(t *testing.T) {
	for _, c := range []struct {
		slots, load float64
		want        int
	}{
		{60, 1.05, 91},
		{60, 1.2, 22},
		{60, 1.5, 9},
		{60, 3, 2},
		{60, 10, 1},
		{0, 3, 6}, // fewer than one is one
		{1, 1.000001, 6214611},
		{1, 3, 6},
		{1, 1e9, 1},
		{1, math.Inf(1), 1},
		{60, math.Nextafter(1, 2), 1 << 24},
		{1 << 20, 1.0001, 25120},
	} {
		if got := Standing(c.slots, c.load); got != c.want {
			t.Errorf("Standing(%v, %v) = %d, want %d", c.slots, c.load, got, c.want)
		}
	}
	// Deeper is never needed for more load or for more slots at the same load.
	for slots := 1.0; slots < 300; slots *= 1.7 {
		last := math.MaxInt
		for load := 1.01; load < 20; load *= 1.1 {
			d := Standing(slots, load)
			if d > last || d < 1 {
				t.Errorf("Standing(%v, %v) = %d after %d", slots, load, d, last)
			}
			last = d
		}
	}
}

// A queue stands above its capacity alone.
func TestStandingNeedsAnOverload(t *testing.T) {
	for _, load := range []float64{1, 0.9, 0, -1, math.NaN(), math.Inf(-1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Standing(60, %v) does not panic", load)
				}
			}()
			Standing(60, load)
		}()
	}
}

// play feeds a core samples of a distribution and waits until the prior is gone.
func play(t *testing.T, cfg Config, n int, quantile func(float64) float64) *Core {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var b, none Batch
	for i := range n {
		s := time.Duration(quantile((float64(i)+0.5)/float64(n)) * float64(time.Second))
		b.Add(s, s, 1, 1)
	}
	c.Observe(0, &b)
	c.Observe(2*c.cfg.Objective, &none)
	return c
}

func TestDerivationString(t *testing.T) {
	base := Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond}
	with := func(f func(*Config)) Config { c := base; f(&c); return c }
	for _, c := range []struct {
		name     string
		cfg      Config
		n        int
		quantile func(float64) float64
		want     string
	}{
		{
			"exponential", base, 100_000, exponentialAt(0.05),
			"60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 230ms -> 201 deep (rule of thumb 480: p99 would be 634ms)",
		},
		{
			"fixed", base, 1000, fixedAt(0.05),
			"60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 50ms -> 420 deep (rule of thumb 480: p99 would be 450ms)",
		},
		{
			"unreachable", base, 100_000, lognormalAt(0.05, 2),
			"60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 428ms -> unreachable: the service alone takes longer; 9 deep, what keeps the slots busy, more for whoever has a deadline within the objective (rule of thumb 480: p99 would be 832ms)",
		},
		{
			"prior", base, 0, nil,
			"60 slots / 40ms mean = 1500/s; objective 400ms p99, service p99 185ms -> 320 deep (rule of thumb 600: p99 would be 588ms); 0 samples, prior service 40ms",
		},
		{
			"declared", with(func(c *Config) { c.Service = 50 * time.Millisecond }), 0, nil,
			"60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 230ms -> 201 deep (rule of thumb 480: p99 would be 634ms); 0 samples, prior service 50ms",
		},
		{
			"search", with(func(c *Config) { c.Limit = doubling{from: 4, to: 60, every: 1} }), 0, nil,
			"16 slots / 40ms mean = 400/s, on average 6.28 times that while the limit is searched and may grow; objective 400ms p99, service p99 185ms -> 538 deep, none waiting beyond its deadline, or without one the objective or MaxWait (rule of thumb 160: p99 would be 598ms); 0 samples, prior service 40ms",
		},
		{
			"few samples", base, 30, fixedAt(0.05),
			"60 slots / 43ms mean = 1395/s; objective 400ms p99, service p99 170ms -> 318 deep (rule of thumb 558: p99 would be 572ms); 30 samples, prior service 40ms",
		},
		{
			"drifted", with(func(c *Config) { c.Service = 50 * time.Millisecond }), 1000, fixedAt(0.063),
			"60 slots / 63ms mean = 952.4/s; objective 400ms p99, service p99 63ms -> 313 deep (rule of thumb 381: p99 would be 472ms); drifted: declared service 50ms",
		},
		{
			"fixed depth", with(func(c *Config) { c.Depth = 480 }), 100_000, exponentialAt(0.05),
			"60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 230ms -> 480 deep as configured (rule of thumb 480: p99 would be 634ms)",
		},
		{
			"no queue", with(func(c *Config) { c.Depth = NoQueue }), 1000, fixedAt(0.05),
			"60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 50ms -> 0 deep as configured (rule of thumb 480: p99 would be 450ms)",
		},
		{
			"paused", with(func(c *Config) { c.Limit = limit.Fixed(0) }), 1000, fixedAt(0.05),
			"0 slots / 50ms mean = 0/s; objective 400ms p99, service p99 50ms -> 0 deep: a limit of 0 serves nobody, so nobody new may wait",
		},
		{
			"p99.9", with(func(c *Config) { c.Percentile = 0.999; c.Objective = 2 * time.Second }), 100_000, exponentialAt(0.05),
			"60 slots / 50ms mean = 1200/s; objective 2s p99.9, service p99.9 345ms -> 1968 deep (rule of thumb 2400: p99.9 would be 2.36s)",
		},
	} {
		if got := play(t, c.cfg, c.n, c.quantile).Stats(0).Derivation.String(); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// What fails late or is read slowly holds its slot beyond the service time: a mean above the
// p99 is no mistake, and says what it is.
func TestDerivationOfSlotsHeldLonger(t *testing.T) {
	c, err := New(Config{Limit: limit.Fixed(20), Objective: 400 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var b, none Batch
	for range 1000 {
		b.Add(54*time.Millisecond, 65*time.Millisecond, 1, 1)
	}
	c.Observe(0, &b)
	c.Observe(2*c.cfg.Objective, &none)
	want := "20 slots / 65ms mean, failures and slow readers included = 307.7/s; objective 400ms p99, service p99 54ms -> "
	if got := c.Stats(0).Derivation.String(); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// One slot is no slots.
func TestDerivationOfOne(t *testing.T) {
	d := Derivation{Limit: 1, Mean: time.Second, Service: time.Second, Rate: 1, Samples: 1, Prior: time.Second, Percentile: 0.99, Objective: time.Second}
	if got := d.String(); !strings.HasPrefix(got, "1 slot / 1s mean = ") || !strings.HasSuffix(got, "; 1 sample, prior service 1s") {
		t.Error(got)
	}
}

// A refusal, the log and the state page show the value of Stats: one value, so
// one line.
func TestDerivationIsAValue(t *testing.T) {
	c := play(t, Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond}, 1000, fixedAt(0.05))
	if a, b := c.Stats(0).Derivation, c.Stats(0).Derivation; a != b || a.String() != b.String() {
		t.Errorf("%+v is not %+v", a, b)
	}
	if s := (Derivation{}).String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
		t.Errorf("the zero value prints %q", s)
	}
}

func TestFiguresAndBrief(t *testing.T) {
	for f, want := range map[float64]string{
		1200: "1200", 1199.96: "1200", 0.05: "0.05", 123456: "123500", 1.5: "1.5", 0: "0", -1: "0",
		math.Inf(1): "0", math.NaN(): "0", 952.38: "952.4", 1e-9: "1e-09",
	} {
		if got := figures(f); got != want {
			t.Errorf("figures(%v) = %q, want %q", f, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		49983 * time.Microsecond: "50ms", 1: "1ns", 0: "0s", -5: "0s", 230_118 * time.Microsecond: "230ms",
		1234567890: "1.23s", 3601 * time.Second: "1h0m0s", math.MaxInt64: "2561111h6m40s",
	} {
		if got := brief(d); got != want {
			t.Errorf("brief(%d) = %q, want %q", d, got, want)
		}
	}
}
