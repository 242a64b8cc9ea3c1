package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// arrivals counts what comes in [from, to) of each of n runs.
func arrivals(a Arrivals, until, from, to time.Duration, n int) []float64 {
	var counts []float64
	for seed := range uint64(n) {
		s := newSource(a, rand.New(rand.NewPCG(seed, 99)), until)
		count := 0.0
		last := time.Duration(0)
		for at, ok := s.next(); ok; at, ok = s.next() {
			if at < last || at >= until {
				panic(fmt.Sprintf("arrival at %v after %v, until %v", at, last, until))
			}
			last = at
			if at >= from && at < to {
				count++
			}
		}
		counts = append(counts, count)
	}
	return counts
}

// Each process has the mean that the integral of its rate says, and the variance
// of its kind, within four standard errors.
func TestArrivals(t *testing.T) {
	const n = 400
	second := time.Second
	wave := Sine{Amplitude: 0.8, Period: 4 * second}
	// A burst is on a share p of the time, and forgets it at the rate k = 1/on + 1/off:
	// from rest, P(on at t) = p (1 - exp(-k t)).
	bursts := Arrivals{Rate: 50, Bursts: Bursts{Rate: 500, On: second / 2, Off: 2 * second}}
	on := func(t float64) float64 { p, k := 0.2, 2.5; return p * (t - (1-math.Exp(-k*t))/k) }
	for _, c := range []struct {
		name     string
		a        Arrivals
		from, to time.Duration
		mean     float64
		variance float64 // of the count; below 0: not compared
	}{
		{"poisson", Arrivals{Rate: 100}, second, 9 * second, 800, 800},
		{"constant", Arrivals{Rate: 100, Process: Constant}, second, 9 * second, 800, 0},
		{"nothing", Arrivals{}, 0, 10 * second, 0, 0},
		{"before a step", Arrivals{Rate: 100, Changes: []Change{{5 * second, 300, 0}}}, 2 * second, 5 * second, 300, 300},
		{"after a step", Arrivals{Rate: 100, Changes: []Change{{5 * second, 300, 0}}}, 5 * second, 8 * second, 900, 900},
		{"a step from nothing to nothing", Arrivals{Changes: []Change{{2 * second, 100, 0}, {4 * second, 0, 0}}}, 0, 10 * second, 200, 200},
		// From 100 to 300 in 4 s: a second into it 150.
		{"the first second of a ramp", Arrivals{Rate: 100, Changes: []Change{{3 * second, 300, 4 * second}}}, 3 * second, 4 * second, 125, 125},
		{"all of a ramp", Arrivals{Rate: 100, Changes: []Change{{3 * second, 300, 4 * second}}}, 3 * second, 7 * second, 800, 800},
		{"after a ramp", Arrivals{Rate: 100, Changes: []Change{{3 * second, 300, 4 * second}}}, 7 * second, 9 * second, 600, 600},
		{"a constant ramp", Arrivals{Rate: 100, Process: Constant, Changes: []Change{{3 * second, 0, 4 * second}}}, 3 * second, 7 * second, 200, 0},
		// The integral of 1 + 0.8 sin over half a period of 4 s is 2 + 0.8 x 4/pi.
		{"the day of a wave", Arrivals{Rate: 100, Sine: wave}, 4 * second, 6 * second, 100 * (2 + 3.2/math.Pi), 100 * (2 + 3.2/math.Pi)},
		{"the night of a wave", Arrivals{Rate: 100, Sine: wave}, 6 * second, 8 * second, 100 * (2 - 3.2/math.Pi), 100 * (2 - 3.2/math.Pi)},
		{"a wave on a ramp", Arrivals{Rate: 100, Sine: Sine{0.5, second}, Changes: []Change{{2 * second, 300, 4 * second}}}, 6 * second, 8 * second, 600, 600},
		{"bursts", bursts, 0, 10 * second, 50*10 + 450*on(10), -1},
		{"bursts, later", bursts, 5 * second, 10 * second, 50*5 + 450*(on(10)-on(5)), -1},
	} {
		counts := arrivals(c.a, 10*second, c.from, c.to, n)
		e := average(counts)
		// A wave is drawn as 64 straight lines, 0.13 % of its amplitude off; an even
		// process has one arrival more or less in a window.
		rounding := 0.0013 * c.a.Sine.Amplitude * c.mean
		if c.a.Process == Constant {
			rounding = 1
		}
		e.near(t, c.name, c.mean, rounding)
		// The variance of n counts has a relative error of sqrt(2/(n-1)), and a little
		// more where the counts are not normal.
		if variance := e.se * e.se * n; c.variance >= 0 && math.Abs(variance-c.variance) > 4.2*c.variance*math.Sqrt(2.0/(n-1))+c.variance/1000 {
			t.Errorf("%s: variance %.1f, want %.1f", c.name, variance, c.variance)
		}
	}
	// Bursts: in a long time the index of dispersion is 1 + 2 p (1-p) d^2 / (k m), with
	// d the difference of the rates, k how fast a state is forgotten and m the mean
	// rate (Fischer and Meier-Hellstern, The MMPP cookbook, 1993).
	long := arrivals(bursts, 210*second, 10*second, 210*second, n)
	e := average(long)
	want := 1 + 2*0.2*0.8*450*450/(2.5*140)
	if got := e.se * e.se * n / e.mean; math.Abs(got-want) > 4*want*math.Sqrt(2.0/(n-1))+0.02*want {
		t.Errorf("bursts: index of dispersion %.1f, want %.1f", got, want)
	}
}

// Draws have the mean and the quantiles of their distribution.
func TestDist(t *testing.T) {
	const n = 200_000
	for _, d := range []Dist{
		{Kind: Fixed, Mean: 50 * ms},
		exponential50,
		{Kind: Lognormal, Mean: 50 * ms, CV: 0.3},
		lognormal50,
		{Kind: Pareto, Mean: 50 * ms, Alpha: 2.5},
		{Kind: Modal, Modes: []Mode{{4 * time.Second, 1}, {2 * ms, 99}}},
		{Kind: Empirical, Samples: []time.Duration{30 * ms, 10 * ms, 20 * ms, 100 * ms}},
	} {
		if err := d.validate(); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(5, uint64(d.Kind)))
		s := newSampler(&d)
		draws := make([]float64, n)
		for i := range draws {
			draws[i] = s.draw(r).Seconds()
		}
		average(draws).near(t, fmt.Sprintf("kind %d, CV %v: mean", d.Kind, d.CV), d.average().Seconds(), 1e-9)
		for _, q := range []float64{0.01, 0.5, 0.9, 0.95, 0.99} {
			at := d.Quantile(q).Seconds()
			below, upTo := 0.0, 0.0
			for _, v := range draws {
				if v < at {
					below++
				}
				if v <= at {
					upTo++
				}
			}
			// The share at or below a quantile is binomial.
			err := 4 * math.Sqrt(q*(1-q)/n)
			if below/n > q+err || upTo/n < q-err {
				t.Errorf("kind %d, CV %v: %v s is said to be the quantile %v; %.4f are below, %.4f at most", d.Kind, d.CV, at, q, below/n, upTo/n)
			}
		}
	}
	for _, c := range []struct {
		d    Dist
		q    float64
		want time.Duration
	}{
		{Dist{Kind: Empirical, Samples: []time.Duration{3, 1, 2}}, 0.5, 2},
		{Dist{Kind: Empirical, Samples: []time.Duration{3, 1, 2}}, 0.999, 3},
		{Dist{Kind: Modal, Modes: []Mode{{5, 1}, {1, 3}}}, 0.74, 1},
		{Dist{Kind: Modal, Modes: []Mode{{5, 1}, {1, 3}}}, 0.76, 5},
	} {
		if got := c.d.Quantile(c.q); got != c.want {
			t.Errorf("kind %d: quantile %v is %v, want %v", c.d.Kind, c.q, got, c.want)
		}
	}
}

// Work that is under way feels a stall, a pause and a change of speed.
func TestSpeed(t *testing.T) {
	stall := Speed{Stalls: []Stall{{100 * ms, 50 * ms}}}
	half := Speed{Steps: []SpeedStep{{100 * ms, 0.5}}}
	for _, c := range []struct {
		name             string
		speed            Speed
		start, work, end time.Duration
	}{
		{"as it is", Speed{}, 7 * ms, 50 * ms, 57 * ms},
		{"before a stall", stall, 40 * ms, 50 * ms, 90 * ms},
		{"to a stall", stall, 50 * ms, 50 * ms, 100 * ms},
		{"into a stall", stall, 60 * ms, 50 * ms, 160 * ms},
		{"begun in a stall", stall, 120 * ms, 50 * ms, 200 * ms},
		{"after a stall", stall, 150 * ms, 50 * ms, 200 * ms},
		{"before half the speed", half, 50 * ms, 50 * ms, 100 * ms},
		{"into half the speed", half, 80 * ms, 50 * ms, 160 * ms},
		{"at half the speed", half, 100 * ms, 50 * ms, 200 * ms},
		{"twice as fast", Speed{Steps: []SpeedStep{{100 * ms, 2}}}, 80 * ms, 50 * ms, 115 * ms},
		{"half, and a stall", Speed{Steps: half.Steps, Stalls: stall.Stalls}, 80 * ms, 50 * ms, 210 * ms},
		{"two stalls", Speed{Stalls: []Stall{{10 * ms, 10 * ms}, {30 * ms, 10 * ms}}}, 0, 30 * ms, 50 * ms},
		{"no work in a stall", stall, 120 * ms, 0, 150 * ms}, // nothing moves, not even that
	} {
		tl := newTimeline(c.speed, rand.New(rand.NewPCG(1, 1)))
		if got := tl.end(c.start, c.work); got != c.end {
			t.Errorf("%s: from %v, %v of work ends at %v, want %v", c.name, c.start, c.work, got, c.end)
		}
	}
}

// The timeline against a clock that ticks every tenth of a millisecond.
func TestTimelineAgainstTicks(t *testing.T) {
	const tick = ms / 10
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		var s Speed
		at := time.Duration(0)
		for range r.IntN(5) {
			at += time.Duration(1+r.IntN(100)) * ms
			s.Steps = append(s.Steps, SpeedStep{at, []float64{0.25, 0.5, 1, 2, 5}[r.IntN(5)]})
		}
		at = 0
		for range r.IntN(4) {
			at += time.Duration(r.IntN(100)) * ms
			s.Stalls = append(s.Stalls, Stall{at, time.Duration(1+r.IntN(40)) * ms})
			at += s.Stalls[len(s.Stalls)-1].For
		}
		if err := s.validate(); err != nil {
			t.Fatal(err)
		}
		speed := func(at time.Duration) float64 {
			v := 1.0
			for _, p := range s.Steps {
				if p.At <= at {
					v = p.Factor
				}
			}
			for _, p := range s.Stalls {
				if p.At <= at && at < p.At+p.For {
					v = 0
				}
			}
			return v
		}
		tl := newTimeline(s, r)
		start := time.Duration(0)
		for range 10 {
			start += time.Duration(r.IntN(40)) * ms
			work := time.Duration(1+r.IntN(80)) * ms
			now, left := start, float64(work)
			for left > 0 {
				left -= float64(tick) * speed(now)
				now += tick
			}
			// The last tick may have been needed in part: at five times the speed too.
			if got := tl.end(start, work); got > now || got < now-tick {
				t.Fatalf("seed %d: %+v: from %v, %v of work ends at %v, by ticks at %v", seed, s, start, work, got, now)
			}
		}
		sum, from, to := 0.0, 50*ms, 350*ms
		for at := from; at < to; at += tick {
			sum += speed(at) * float64(tick)
		}
		if got, want := newTimeline(s, r).mean(from, to), sum/float64(to-from); math.Abs(got-want) > 1e-9 {
			t.Fatalf("seed %d: %+v: mean speed %v, by ticks %v", seed, s, got, want)
		}
	}
}

// Pauses come one after an exponential time of mean Every, and last For.
func TestPauses(t *testing.T) {
	var shares []float64
	for seed := range uint64(50) {
		s := Speed{Pauses: Pauses{Every: 90 * ms, For: 10 * ms}}
		shares = append(shares, newTimeline(s, rand.New(rand.NewPCG(seed, 4))).mean(0, 100*time.Second))
	}
	average(shares).near(t, "speed with 10 ms of pause after 90 ms", 0.9, 0)
}
