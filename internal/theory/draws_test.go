package theory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A small simulation of the queues themselves, against which every formula is
// held: it knows arrivals, servers and places, and no formula.
type line struct {
	servers  int
	depth    int // -1: no bound
	rate     float64
	service  func(*rand.Rand) float64
	patience float64 // mean of an exponential one; 0: endless
}

// A tally is what came out for the requests after the warm-up.
type tally struct {
	arrived, refused, left, waited float64
	waits                          float64   // sum over those not refused, leaving ones included
	wait, response                 []float64 // of those who were served
}

// run lets n requests pass, and counts from the warm-th on.
func (l line) run(r *rand.Rand, warm, n int) (c tally) {
	free := make([]float64, l.servers) // when each server is free
	var starts []float64               // when those who were accepted stop waiting, in order
	now := 0.0
	for i := range n {
		now += r.ExpFloat64() / l.rate
		s := 0
		for k := range free {
			if free[k] < free[s] {
				s = k
			}
		}
		wait := max(0, free[s]-now)
		for len(starts) > 0 && starts[0] <= now {
			starts = starts[1:]
		}
		counted := 0.0
		if i >= warm {
			counted = 1
		}
		c.arrived += counted
		if wait > 0 {
			c.waited += counted
		}
		if l.depth >= 0 && wait > 0 && len(starts) >= l.depth {
			c.refused += counted
			continue
		}
		if l.patience > 0 {
			if p := r.ExpFloat64() * l.patience; p < wait {
				c.left, c.waits = c.left+counted, c.waits+counted*p
				continue
			}
		}
		work := l.service(r)
		free[s] = now + wait + work
		if wait > 0 && l.depth >= 0 {
			starts = append(starts, now+wait)
		}
		c.waits += counted * wait
		if i >= warm {
			c.wait, c.response = append(c.wait, wait), append(c.response, wait+work)
		}
	}
	return c
}

// held fails where the mean of independent runs is more than four standard
// errors from what the theory says. Of all checks below, about fifty with one
// seed each, none should be that far out: 1 in 16,000 is.
func held(t *testing.T, runs []tally, name string, want float64, of func(tally) float64) {
	t.Helper()
	var sum, square float64
	for _, r := range runs {
		v := of(r)
		sum, square = sum+v, square+v*v
	}
	n := float64(len(runs))
	mean := sum / n
	se := math.Sqrt(max(0, square/n-mean*mean) / (n - 1))
	if !(math.Abs(mean-want) <= 4*se+1e-12) {
		t.Errorf("%s: %.6g by draws, standard error %.2g, want %.6g: %.1f errors off", name, mean, se, want, math.Abs(mean-want)/se)
	}
}

func above(x float64, v []float64) float64 {
	n := 0
	for _, w := range v {
		if w > x {
			n++
		}
	}
	return float64(n) / float64(len(v))
}

// runs repeats a line with seeds of its own; 40 runs give the standard error to
// within an eighth.
func (l line) runs(t *testing.T, seed uint64, warm, n int) []tally {
	t.Logf("seed %d: %d servers, depth %d, %.4g/s", seed, l.servers, l.depth, l.rate)
	all := make([]tally, 40)
	for i := range all {
		all[i] = l.run(rand.New(rand.NewPCG(seed, uint64(i))), warm, n)
	}
	return all
}

func exponentialOf(mean float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return r.ExpFloat64() * mean }
}

func TestMMcByDraws(t *testing.T) {
	for _, c := range []struct {
		servers int
		load    float64
	}{{1, 0.7}, {8, 0.8}} {
		q := MMc{c.servers, c.load * float64(c.servers) / 0.05, 0.05}
		runs := line{servers: c.servers, depth: -1, rate: q.Rate, service: exponentialOf(0.05)}.runs(t, 30, 1000, 11_000)
		held(t, runs, "busy", ErlangC(c.servers, q.Offered()), func(r tally) float64 { return r.waited / r.arrived })
		held(t, runs, "mean wait", q.MeanWait(), func(r tally) float64 { return r.waits / r.arrived })
		for _, p := range []float64{0.5, 0.95} {
			x, y := q.WaitQuantile(p), q.ResponseQuantile(p)
			held(t, runs, "wait tail", q.WaitTail(x), func(r tally) float64 { return above(x, r.wait) })
			held(t, runs, "response tail", 1-p, func(r tally) float64 { return above(y, r.response) })
		}
	}
}

func TestMMcKByDraws(t *testing.T) {
	for _, c := range []struct {
		servers, depth int
		load           float64
	}{{1, 5, 2}, {6, 0, 1}, {6, 12, 0.9}, {6, 12, 3}} {
		q := MMcK{c.servers, c.depth, c.load * float64(c.servers) / 0.05, 0.05}
		runs := line{servers: c.servers, depth: c.depth, rate: q.Rate, service: exponentialOf(0.05)}.runs(t, 31, 500, 5500)
		held(t, runs, "loss", q.Loss(), func(r tally) float64 { return r.refused / r.arrived })
		held(t, runs, "mean wait", q.MeanWait(), func(r tally) float64 { return r.waits / (r.arrived - r.refused) })
		for _, x := range []float64{0, 0.03, 0.1} {
			held(t, runs, "wait tail", q.WaitTail(x), func(r tally) float64 { return above(x, r.wait) })
			held(t, runs, "response tail", q.ResponseTail(x), func(r tally) float64 { return above(x, r.response) })
		}
	}
}

func TestErlangAByDraws(t *testing.T) {
	for _, c := range []struct{ load, patience float64 }{{0.9, 0.1}, {2, 0.02}} {
		q := ErlangA{6, c.load * 6 / 0.05, 0.05, c.patience}
		l := line{servers: 6, depth: -1, rate: q.Rate, service: exponentialOf(0.05), patience: c.patience}
		runs := l.runs(t, 32, 500, 5500)
		held(t, runs, "busy", q.Busy(), func(r tally) float64 { return r.waited / r.arrived })
		held(t, runs, "abandon", q.Abandon(), func(r tally) float64 { return r.left / r.arrived })
		held(t, runs, "mean wait", q.MeanWait(), func(r tally) float64 { return r.waits / r.arrived })
	}
}

func TestSingleServersByDraws(t *testing.T) {
	q := MD1{0.8 / 0.05, 0.05}
	runs := line{servers: 1, depth: -1, rate: q.Rate, service: func(*rand.Rand) float64 { return 0.05 }}.runs(t, 33, 1000, 11_000)
	held(t, runs, "fixed: mean wait", q.MeanWait(), func(r tally) float64 { return r.waits / r.arrived })
	for _, x := range []float64{0, 0.04, 0.12, 0.5} {
		held(t, runs, "fixed: wait tail", q.WaitTail(x), func(r tally) float64 { return above(x, r.wait) })
	}
	// Erlang's loss formula and Pollaczek's mean do not ask for exponential service.
	two := func(r *rand.Rand) float64 { // 0.02 or 0.32, one in ten: mean 0.05
		if r.IntN(10) == 0 {
			return 0.32
		}
		return 0.02
	}
	cv2 := (0.9*0.02*0.02+0.1*0.32*0.32)/(0.05*0.05) - 1
	runs = line{servers: 1, depth: -1, rate: 10, service: two}.runs(t, 34, 1000, 21_000)
	held(t, runs, "two sizes: mean wait", MG1Wait(10, 0.05, cv2), func(r tally) float64 { return r.waits / r.arrived })
	runs = line{servers: 8, depth: 0, rate: 160, service: two}.runs(t, 35, 500, 5500)
	held(t, runs, "two sizes: loss", ErlangB(8, 8), func(r tally) float64 { return r.refused / r.arrived })
}

// The last place of a full queue, drawn: d gaps and a service.
func TestPlaceByDraws(t *testing.T) {
	const seed, n = 36, 20_000
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, c := range []struct{ d, slots int }{{201, 60}, {480, 60}, {3, 1}, {40, 2}} {
		draws := make([]float64, n)
		for i := range draws {
			draws[i] = r.ExpFloat64() * 0.05
			for range c.d {
				draws[i] += r.ExpFloat64() * 0.05 / float64(c.slots)
			}
		}
		slices.Sort(draws)
		for _, q := range []float64{0.01, 0.5, 0.99} {
			x := PlaceQuantile(c.d, c.slots, 0.05, q)
			below, _ := slices.BinarySearch(draws, x)
			if se := math.Sqrt(q * (1 - q) / n); math.Abs(float64(below)/n-q) > 4*se {
				t.Errorf("place %d of %d: %v of the draws are below the quantile %v, standard error %.2g", c.d, c.slots, float64(below)/n, q, se)
			}
		}
	}
}

// The approximation for many servers is what it says: a few percent near the
// capacity.
func TestGGcByDraws(t *testing.T) {
	const seed = 37
	q := MMc{8, 0.9 * 160, 0.05}
	runs := line{servers: 8, depth: -1, rate: q.Rate, service: func(*rand.Rand) float64 { return 0.05 }}.runs(t, seed, 1000, 21_000)
	var mean float64
	for _, r := range runs {
		mean += r.waits / r.arrived / float64(len(runs))
	}
	if off := GGcWait(q, 1, 0)/mean - 1; math.Abs(off) > 0.1 {
		t.Errorf("seed %d: mean wait %.5f by draws, the approximation is %.1f %% off", seed, mean, 100*off)
	} else {
		t.Logf("seed %d: mean wait %.5f by draws, the approximation is %.1f %% off", seed, mean, 100*off)
	}
}
