package limit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A grid is Bayes' rule done the slow way: a probability of each pair of a capacity and a
// service time, and no Gaussian anywhere but in the drift.
type grid struct {
	lo, step float64
	p        [cells][]float64
}

func newGrid(lo, hi, step float64) *grid {
	g := &grid{lo: lo, step: step}
	for j := range g.p {
		g.p[j] = make([]float64, int((hi-lo)/step)+1)
	}
	return g
}

func (g *grid) each(f func(j int, sigma float64, p *float64)) {
	for j := range g.p {
		for i := range g.p[j] {
			f(j, g.lo+float64(i)*g.step, &g.p[j][i])
		}
	}
}

// begin is the first observation: no capacity is likelier than another.
func (g *grid) begin(x, y, se float64) {
	g.each(func(j int, sigma float64, p *float64) {
		*p = math.Exp(-sq(sigma+max(0, x-cellAt[j])-y) / (2 * se * se))
	})
	for j := range g.p {
		scale(g.p[j], 1.0/cells)
	}
}

func scale(p []float64, to float64) {
	sum := 0.0
	for _, v := range p {
		sum += v
	}
	for i := range p {
		p[i] *= to / sum
	}
}

// student is the density of the residual d, of which one standard error is se.
func student(d, se float64) float64 {
	return math.Pow(1+d*d/(tails*se*se), -(tails+1)/2.0) / math.Sqrt(2*math.Pi*se*se)
}

func (g *grid) observe(x, y, se, dt float64) {
	k, d := kernel(dt), spreads(dt)
	jump := -math.Expm1(-hazardS * dt)
	for i := range g.p[0] { // the capacity changes
		var col [cells]float64
		for j := range col {
			col[j] = g.p[j][i]
		}
		col = *times(times(&col, k), d)
		for j := range col {
			g.p[j][i] = col[j]
		}
	}
	total := 0.0
	for j := range g.p {
		row, was := g.p[j], append([]float64(nil), g.p[j]...)
		flat := 0.0
		for _, p := range was {
			flat += p * g.step / (2 * math.Log(spanS)) // anything within the span, as likely
		}
		for i := range row {
			row[i] = (1-jump)*was[i] + jump*flat
			row[i] *= student(y-max(0, x-cellAt[j])-(g.lo+float64(i)*g.step), se)
			total += row[i]
		}
	}
	g.each(func(_ int, _ float64, p *float64) { *p /= total })
}

func (g *grid) quantile(q float64) float64 {
	var b belief
	g.each(func(j int, _ float64, p *float64) { b.p[j] += *p })
	return b.quantile(q)
}

// A seen is what a block showed, of a resource with that capacity and service time then.
type seen struct{ n, capacity, service float64 }

// The filter says what Bayes' rule says, of a few blocks of a resource that stays, of one that
// becomes slower, and of one that loses half of its slots. One Gaussian for each capacity
// is not the truth, which is a mixture of as many as there were chances of a jump, and
// what has hardly been seen shows it: so the probability that the capacity is below any
// number is within off at each block, and at the last, where a limit on either side has been seen,
// the middle and the service time are within 5 %, half a cell.
func TestBeliefIsBayes(t *testing.T) {
	arms := func(times int, capacity, service float64, n ...float64) (all []seen) {
		for range times {
			for _, n := range n {
				all = append(all, seen{n, capacity, service})
			}
		}
		return all
	}
	for _, c := range []struct {
		name   string
		blocks []seen
		off    float64
		known  bool
	}{
		{"search, and found", append(arms(1, 60, 0.05, 20, 40, 80), arms(3, 60, 0.05, 62, 75)...), 0.1, true},
		{"nothing but below", arms(4, 60, 0.05, 20, 24), 0.1, false},
		{"slower", append(arms(3, 60, 0.05, 40, 80, 66), arms(4, 60, 0.1, 34, 66)...), 0.25, true},
		{"half of it", append(arms(3, 60, 0.05, 40, 80, 66), arms(4, 30, 0.05, 62, 40)...), 0.25, true},
		{"one limit", arms(6, 60, 0.05, 66), 0.25, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, 3))
				b, g := &belief{home: 1}, newGrid(-6.5, -0.5, 0.03)
				worst := 0.0
				for i, s := range c.blocks {
					x, se, dt := math.Log(s.n), 0.06, 0.3
					y := math.Log(s.service) + max(0, x-math.Log(s.capacity)) + se*r.NormFloat64()
					if i == 0 {
						g.begin(x, y, se)
					} else {
						g.observe(x, y, se, dt)
					}
					b.observe(x, y, se, dt, true)
					off := b.apart(g)
					if worst = max(worst, off); off > c.off {
						t.Errorf("seed %d, block %d: probabilities are up to %.2g from those by Bayes", seed, i, off)
					}
				}
				mean := 0.0
				g.each(func(_ int, sigma float64, p *float64) { mean += *p * sigma })
				got, want := b.quantile(0.5), g.quantile(0.5)
				t.Logf("seed %d: within %.2g; half below %.3g, by Bayes %.3g; service %.3g s, by Bayes %.3g s", seed, worst, got, want, b.service(), math.Exp(mean))
				if c.known && (math.Abs(math.Log(got/want)) > 0.05 || math.Abs(math.Log(b.service())-mean) > 0.05) {
					t.Errorf("seed %d: half below %.3g, by Bayes %.3g; service %.3g s, by Bayes %.3g s", seed, got, want, b.service(), math.Exp(mean))
				}
			}
		})
	}
}

// apart returns how far the probabilities that the capacity is below something differ at the
// most.
func (b *belief) apart(g *grid) float64 {
	worst, mine, its := 0.0, 0.0, 0.0
	for j := range b.p {
		mine += b.p[j]
		for _, p := range g.p[j] {
			its += p
		}
		worst = max(worst, math.Abs(mine-its))
	}
	return worst
}
