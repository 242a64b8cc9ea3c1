package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// kernel is, the slow way, how likely the capacity is to go from one cell to another within
// dt: what blend and laplace do in two passes, as the matrix that it is.
func kernel(dt float64) *[cells][cells]float64 {
	change := -math.Expm1(-hazardC * dt)
	var k [cells][cells]float64
	for i := range cells {
		for j := range cells {
			far := func(scale float64) float64 {
				e := math.Exp(-cellLn / scale)
				return (1 - e) / (1 + e) * math.Exp(-math.Abs(float64(i-j))*cellLn/scale)
			}
			k[i][j] = change * ((1-shareFar)*far(0.35) + shareFar*far(1))
		}
		k[i][i] += 1 - change
	}
	return &k
}

// spreads is the same for the drift: a step to either side, and none off the grid.
func spreads(dt float64) *[cells][cells]float64 {
	part := driftC * driftC * dt / (2 * cellLn * cellLn)
	var k [cells][cells]float64
	for i := range cells {
		up, down := min(i+1, cells-1), max(i-1, 0)
		k[i][i] += 1 - 2*part
		k[i][up] += part
		k[i][down] += part
	}
	return &k
}

func times(p *[cells]float64, k *[cells][cells]float64) *[cells]float64 {
	var q [cells]float64
	for i := range p {
		for j := range q {
			q[j] += p[i] * k[i][j]
		}
	}
	return &q
}

// anyBelief draws one that nothing in particular has been seen of.
func anyBelief(r *rand.Rand) *belief {
	b := &belief{begun: true, noise: 1, home: 1}
	sum := 0.0
	for j := range b.p {
		b.p[j] = r.ExpFloat64() * math.Exp(4*r.NormFloat64())
		b.s[j], b.v[j] = -3+r.NormFloat64(), 0.01*r.Float64()+1e-6
		sum += b.p[j]
	}
	for j := range b.p {
		b.p[j] = max(b.p[j]/sum, least)
	}
	return b
}

// What time does to the belief is a product with a matrix, and to the mean and the variance of
// sigma the mixture of what comes from each cell. Both are arithmetic: equal to 1e-9, of
// numbers that are 1e-9 at the least.
func TestPredictIsAMixture(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := anyBelief(r)
		dt := math.Exp(r.NormFloat64() - 1)
		var p, m1, m2 [cells]float64
		for j := range p {
			p[j], m1[j], m2[j] = b.p[j], b.p[j]*b.s[j], b.p[j]*(b.v[j]+sq(b.s[j]))
		}
		k, d := kernel(dt), spreads(dt)
		wp, w1, w2 := times(times(&p, k), d), times(times(&m1, k), d), times(times(&m2, k), d)
		b.predict(dt)
		for j := range p {
			s := w1[j] / wp[j]
			v := w2[j]/wp[j] - s*s
			if wp[j] > 1e-8 && (math.Abs(b.p[j]/wp[j]-1) > 1e-9 || math.Abs(b.s[j]-s) > 1e-9 || math.Abs(b.v[j]-max(v, 1e-8)) > 1e-9) {
				t.Fatalf("seed %d, %.3g s, cell %d: %v, %v, %v; want %v, %v, %v", seed, dt, j, b.p[j], b.s[j], b.v[j], wp[j], s, v)
			}
		}
	}
}

// laplace keeps what is in the middle, the same to either side, and loses at the ends what
// would leave: half of what is at the first cell, less half of what stays in it.
func TestLaplace(t *testing.T) {
	for _, keep := range []float64{near, far} {
		var p, q [cells]float64
		p[cells/2] = 1
		laplace(&p, &q, keep)
		sum, norm := 0.0, (1-keep)/(1+keep)
		for j := range q {
			sum += q[j]
			if want := norm * math.Pow(keep, math.Abs(float64(j-cells/2))); math.Abs(q[j]-want) > 1e-12 {
				t.Fatalf("keep %v, cell %d: %v, want %v", keep, j, q[j], want)
			}
		}
		// Each tail that leaves is norm x keep^56 / (1 - keep).
		if lost := 1 - sum; lost < 0 || lost > 2.1*norm*math.Pow(keep, cells/2)/(1-keep) {
			t.Errorf("keep %v: %v is lost in the middle", keep, lost)
		}
		p, sum = [cells]float64{1}, 0
		laplace(&p, &q, keep)
		for j := range q {
			sum += q[j]
		}
		if want := (1 + norm) / 2; math.Abs(sum-want) > 1e-4 {
			t.Errorf("keep %v: %v stays of what is at the end, want %v", keep, sum, want)
		}
	}
}

// diffuse loses nothing, is the same to either side, and moves at most a quarter to each.
func TestDiffuse(t *testing.T) {
	for _, k := range []float64{0, 1e-4, 0.1, 0.25, 3} {
		for _, at := range []int{0, 1, cells / 2, cells - 1} {
			var q [cells]float64
			q[at] = 1
			diffuse(&q, k)
			part, sum, stays := min(k, 0.25), 0.0, 1.0
			for j := range q {
				sum += q[j]
				if j == at-1 || j == at+1 {
					stays -= part
					if math.Abs(q[j]-part) > 1e-15 {
						t.Errorf("%v at %d: %v at %d, want %v", k, at, q[j], j, part)
					}
				}
			}
			if math.Abs(sum-1) > 1e-12 || math.Abs(q[at]-stays) > 1e-12 {
				t.Errorf("%v at %d: %v in all, %v stays, want %v", k, at, sum, q[at], stays)
			}
		}
	}
}

func TestQuantile(t *testing.T) {
	var b belief
	for j := range b.p {
		b.p[j] = 1
	}
	for _, q := range []float64{0, 0.1, 0.5, 0.9, 1} { // an even one: a straight line of the logarithm
		want := math.Exp(cellAt[0] - cellLn/2 + q*cells*cellLn)
		if got := b.quantile(q); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%v of an even belief is %v, want %v", q, got, want)
		}
	}
	b.p = [cells]float64{50: 3, 51: 1} // of a total that is not 1
	for q, want := range map[float64]float64{0.75: 50.5, 0.375: 50, 0.875: 51} {
		if got := b.quantile(q); math.Abs(got/math.Exp(cellAt[0]+want*cellLn)-1) > 1e-9 {
			t.Errorf("%v of two cells is %v, want that of cell %v", q, got, want)
		}
	}
	for seed := range uint64(50) {
		b := anyBelief(rand.New(rand.NewPCG(seed, 2)))
		last := 0.0
		for q := 0.0; q <= 1; q += 1.0 / 64 {
			at := b.quantile(q)
			below := 0.0
			for j, p := range b.p { // the part of each cell that is below
				below += p * min(max((math.Log(at)-cellAt[j])/cellLn+0.5, 0), 1)
			}
			if at < last || math.Abs(below-q) > 1e-6 {
				t.Fatalf("seed %d: below %v is %v, want %v; the one before is %v", seed, at, below, q, last)
			}
			last = at
		}
	}
}

// Time that rises with what is in flight is a queue, and time that does not is none: without
// noise the first is found within a cell, and the second is known to be above.
func TestBeliefTellsAQueue(t *testing.T) {
	b := belief{home: 1}
	at := func(n, capacity, service float64) {
		x := math.Log(n)
		b.observe(x, math.Log(service)+max(0, x-math.Log(capacity)), 0.03, 0.2, true)
	}
	for _, n := range []float64{20, 40, 44, 40} {
		at(n, 60, 0.05)
	}
	if low := b.quantile(0.5); low < 44 {
		t.Errorf("half of it is below %.3g, and 44 took no longer than 20", low)
	}
	for range 10 {
		at(66, 60, 0.05)
		at(80, 60, 0.05)
	}
	is := func(what string, capacity, service float64) {
		t.Helper()
		if c, s := b.quantile(0.5), b.service(); math.Abs(math.Log(c/capacity)) > cellLn || math.Abs(math.Log(s/service)) > 0.1 {
			t.Errorf("%s: capacity %.3g, service %.3g s; want %v and %v", what, c, s, capacity, service)
		}
	}
	is("found", 60, 0.05)
	for range 10 { // above the capacity alone it is the same as half of the slots: 34 tells
		at(34, 60, 0.1)
		at(66, 60, 0.1)
	}
	is("twice as slow", 60, 0.1)
	for range 10 {
		at(24, 30, 0.1)
		at(42, 30, 0.1)
	}
	is("half of the slots", 30, 0.1)
	// Where nobody waits for the limit the service time is followed, and the capacity is not
	// what a mean that stays could say anything about.
	was := b.quantile(0.5)
	for range 50 {
		b.observe(math.Log(5), math.Log(0.2), 0.03, 0.2, false)
	}
	if now := b.quantile(0.5); math.Abs(math.Log(b.service()/0.2)) > 0.05 || math.Abs(math.Log(now/was)) > 2*cellLn {
		t.Errorf("idle: service %.3g s, want 0.2; capacity %.3g, was %.3g", b.service(), now, was)
	}
}

// Work that is half of its time downstream uses half as many slots as are in flight. With 60 slots
// and 50 ms at them and 50 ms downstream, 120 keep them busy; with 180 in flight the slots
// still serve 1200/s, so that each takes 150 ms, of which 100 are its own: twice as long, not 1.5
// times.
func TestTimeDownstreamIsNotAtTheSlots(t *testing.T) {
	for _, c := range []struct{ home, over, want float64 }{
		{1, 0.5, 0.5}, {1, 1, 1}, {1, 1.5, 1.5}, {0.5, 1.5, 2}, {0.5, 0.9, 1}, {0.25, 1.5, 3}, {0.99, 1.5, 1.5},
	} {
		b := belief{home: c.home}
		if got := math.Exp(b.excess(math.Log(c.over))); math.Abs(got-max(c.want, 1)) > 1e-9 {
			t.Errorf("%v of it at home, %v times the capacity in flight: %v times as long, want %v", c.home, c.over, got, max(c.want, 1))
		}
	}
}

// Whatever is observed, probabilities add up and nothing is lost of the grid for good.
func FuzzBelief(f *testing.F) {
	f.Add(uint64(1), 3.0)
	f.Add(uint64(2), 0.1)
	f.Add(uint64(3), 40.0)
	f.Fuzz(func(t *testing.T, seed uint64, wild float64) {
		if !(wild >= 0 && wild <= 100) {
			return
		}
		r := rand.New(rand.NewPCG(seed, 4))
		b := belief{home: 0.05 + 0.95*r.Float64()}
		for i := range 200 {
			x, y := math.Log(1+1e6*math.Pow(r.Float64(), 8)), wild*r.NormFloat64()
			b.observe(x, y, 0.01+r.ExpFloat64(), r.ExpFloat64()*10, r.IntN(4) > 0)
			if err := b.check(); err != nil {
				t.Fatalf("seed %d, observation %d: %v", seed, i, err)
			}
		}
	})
}

func (b *belief) check() error {
	sum := 0.0
	for j := range b.p {
		sum += b.p[j]
		if !(b.p[j] >= least/2) || !(b.v[j] > 0) || math.IsNaN(b.s[j]) || math.IsInf(b.s[j], 0) {
			return fmt.Errorf("cell %d: p %v, s %v, v %v", j, b.p[j], b.s[j], b.v[j])
		}
	}
	if math.Abs(sum-1) > 1e-6 || !(b.noise > 0) {
		return fmt.Errorf("in all %v, noise %v", sum, b.noise)
	}
	return nil
}
