package limit

import "math"

// A belief is a probability of each capacity: of the number of units in use from which on
// more of them only wait for one another.
//
// What it goes by is Little's law. Below the capacity c the time that a unit is held is the
// service time, whatever the number in use; above it is n/c times as much, because n are
// held and c are served. So with y the logarithm of the mean time of what was admitted
// while n were in use, and sigma that of the service time,
//
//	y = sigma + max(0, ln n - ln c)
//
// for any discipline with a knee at c: a line of servers, processors that are shared, a pool.
// At one n nothing can be learnt from it, so the limit has to move; at two of them the slope
// between is 0 or 1. A service that becomes slower moves y as well, and is told apart
// because the limit keeps moving.
//
// For each c of a grid it keeps the probability p, and the mean s and variance v of sigma
// if that were the capacity: a bank of Kalman filters, one per hypothesis (Magill, "Optimal
// adaptive estimation of sampled stochastic processes", 1965).
type belief struct {
	p, s, v  [cells]float64
	begun    bool
	home     float64 // the part of the time in flight that the resource is used
	surprise float64
	noise    float64 // the square of how much larger residuals are than they should be, which counts as 1 where it is less
}

// The grid: 0.8 x 2^(j/8), j = 0..111, steps of 9 % from 0.8 to 12,000. Quantiles
// interpolate, so a step may be wider than what is told apart.
const (
	cells    = 112
	perTwice = 8
	cellLn   = math.Ln2 / perTwice
)

var (
	cellAt  [cells]float64 // the logarithm of the capacity of a cell
	near    = decay(0.35)
	far     = decay(1.0)
	flatLnS = 1 / (2 * math.Log(spanS))
)

func init() {
	for j := range cellAt {
		cellAt[j] = math.Log(0.8) + float64(j)*cellLn
	}
}

// decay is what is left of a Laplace density of the given scale after one cell.
func decay(scale float64) float64 { return math.Exp(-cellLn / scale) }

const (
	// A change of the capacity is expected every 20 s, which is pessimistic on
	// purpose: what was never thought possible needs the more evidence to be believed.
	// Four in five are of a factor of e^.35, the fifth of any.
	hazardC  = 0.05 // per second
	shareFar = 0.2
	driftC   = 0.01 // of ln c, per root of a second

	// A service changes abruptly every 50 s, to anything within a factor of spanS
	// either way, and wanders.
	hazardS = 0.02 // per second
	spanS   = 16
	driftS  = 0.005 // of ln sigma, per root of a second

	// Residuals have heavy tails: one odd block must not decide.
	astonished = 2.5
	tails      = 8 // degrees of freedom of Student's t
	least      = 1e-9
)

// observe takes the mean time y (logarithm), with its standard error se, of what was
// admitted while e^x were in use, after dt seconds. full says that requests waited for the
// limit; otherwise there is no news about the capacity, but the service time can be seen.
func (b *belief) observe(x, y, se, dt float64, full bool) {
	if !b.begun {
		b.begun, b.noise = true, 1
		for j := range b.p {
			b.p[j] = 1.0 / cells
			b.s[j], b.v[j] = y-b.excess(x-cellAt[j]), se*se
		}
		return
	}
	if !full {
		b.follow(x, y, se, dt)
		return
	}
	b.predict(dt)
	b.update(x, y, se, dt)
}

// excess is by how much the logarithm of the time is longer with in flight e^d times the capacity.
func (b *belief) excess(d float64) float64 {
	switch {
	case d <= 0:
		return 0
	case b.home > 0.98:
		return d
	}
	return math.Log(1 + math.Expm1(d)/b.home)
}

// follow moves sigma, and lets what was seen vote on the capacity with half of its weight: in
// flight may be more than the capacity even where nobody waits for the limit.
func (b *belief) follow(x, y, se, dt float64) {
	sum := 0.0
	for j := range b.p {
		o := y - b.excess(x-cellAt[j])
		v := b.v[j] + driftS*driftS*dt
		total := v + se*se
		d := o - b.s[j]
		like := fade(d * d / (tails * total))
		b.p[j] *= math.Sqrt(like + 0.01)
		sum += b.p[j]
		if d*d > 9*total {
			b.s[j], b.v[j] = o, se*se
			continue
		}
		k := v / total
		b.s[j] += k * d
		b.v[j] = (1 - k) * v
	}
	for j := range b.p {
		b.p[j] = max(b.p[j]/sum, least)
	}
}

// predict lets the capacity change within dt seconds.
func (b *belief) predict(dt float64) {
	change := -math.Expm1(-hazardC * dt)
	var m1, m2, q0, q1, q2 [cells]float64
	for j := range b.p {
		m1[j] = b.p[j] * b.s[j]
		m2[j] = b.p[j] * (b.v[j] + b.s[j]*b.s[j])
	}
	blend(&b.p, &q0, change)
	blend(&m1, &q1, change)
	blend(&m2, &q2, change)
	spread := driftC * driftC * dt / (2 * cellLn * cellLn)
	diffuse(&q0, spread)
	diffuse(&q1, spread)
	diffuse(&q2, spread)
	for j := range b.p {
		w := max(q0[j], least)
		b.p[j] = w
		b.s[j] = q1[j] / w
		b.v[j] = max(q2[j]/w-b.s[j]*b.s[j], 1e-8)
	}
}

// blend puts (1-change) of from and change of it smoothed into to.
func blend(from, to *[cells]float64, change float64) {
	var a, b [cells]float64
	laplace(from, &a, near)
	laplace(from, &b, far)
	for j := range to {
		to[j] = (1-change)*from[j] + change*((1-shareFar)*a[j]+shareFar*b[j])
	}
}

// laplace convolves with a Laplace density, in two passes. What would leave the grid is lost.
func laplace(from, to *[cells]float64, keep float64) {
	norm := (1 - keep) / (1 + keep)
	acc := 0.0
	for j := range from {
		acc = acc*keep + from[j]
		to[j] = acc
	}
	acc = 0
	for j := cells - 1; j >= 0; j-- {
		to[j] += acc
		acc = (acc + from[j]) * keep
	}
	for j := range to {
		to[j] *= norm
	}
}

// diffuse moves the part k of each cell to either neighbour.
func diffuse(q *[cells]float64, k float64) {
	k = min(k, 0.25)
	last := q[0]
	for j := range q {
		up := last
		if j+1 < cells {
			up = q[j+1]
		}
		here := q[j]
		if j+1 == cells {
			up = here
		}
		q[j] = here + k*(last-2*here+up)
		last = here
	}
}

// fade is (1+u)^(-(tails+1)/2): the density of Student's t at u x tails squared standard errors,
// over that at none. Half of the time of an update was the power.
func fade(u float64) float64 {
	q := 1 + u
	return 1 / (q * q * q * q * math.Sqrt(q))
}

// update weighs the hypotheses by what was seen.
func (b *belief) update(x, y, se, dt float64) {
	jump := -math.Expm1(-hazardS * dt)
	flat := jump * flatLnS
	sum, surprise := 0.0, 0.0
	for j := range b.p {
		o := y - b.excess(x-cellAt[j])
		v := b.v[j] + driftS*driftS*dt
		total := v + se*se
		d := o - b.s[j]
		u := d * d / (tails * total)
		surprise += b.p[j] * d * d / total
		g := (1 - jump) * fade(u) / math.Sqrt(2*math.Pi*total)
		like := g + flat
		b.p[j] *= like
		sum += b.p[j]
		r := flat / like
		k := v / total / (1 + u)
		s1, v1 := b.s[j]+k*d, (1-k)*v
		s := (1-r)*s1 + r*o
		b.v[j] = (1-r)*(v1+(s1-s)*(s1-s)) + r*(se*se+(o-s)*(o-s))
		b.s[j] = s
	}
	for j := range b.p {
		b.p[j] = max(b.p[j]/sum, least)
	}
	b.surprise = surprise
	b.noise += 0.05 * (min(astonished, surprise)*max(1, b.noise) - b.noise)
}

// quantile returns the capacity below which the probability q is.
func (b *belief) quantile(q float64) float64 {
	total := 0.0
	for _, p := range b.p {
		total += p
	}
	seen := 0.0
	for j, p := range b.p {
		if seen+p >= q*total {
			f := (q*total - seen) / p
			return math.Exp(cellAt[j] + (f-0.5)*cellLn)
		}
		seen += p
	}
	return math.Exp(cellAt[cells-1])
}

// service returns the mean service time, in seconds.
func (b *belief) service() float64 {
	sum, total := 0.0, 0.0
	for j, p := range b.p {
		sum += p * b.s[j]
		total += p
	}
	return math.Exp(sum / total)
}
