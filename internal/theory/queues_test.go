package theory

import (
	"math"
	"math/big"
	"testing"
)

// One server: the closed forms of M/M/1, where the response is exponential.
func TestMM1(t *testing.T) {
	for _, load := range []float64{0, 0.1, 0.5, 0.9, 0.999} {
		q := MMc{1, load * 20, 0.05}
		spare := 20 - q.Rate
		near(t, q.MeanWait(), load/spare, 1e-12, "mean wait at %v", load)
		near(t, q.MeanResponse(), 1/spare, 1e-12, "mean response at %v", load)
		for _, x := range []float64{0, 0.01, 0.3, 5} {
			near(t, q.WaitTail(x), load*math.Exp(-spare*x), 1e-12, "wait tail at %v, %v s", load, x)
			near(t, q.ResponseTail(x), math.Exp(-spare*x), 1e-11, "response tail at %v, %v s", load, x)
		}
		near(t, q.ResponseQuantile(0.99), math.Log(100)/spare, 1e-11, "p99 response at %v", load)
	}
}

// Many servers: means are the integrals of tails, the response is the
// convolution of wait and service, quantiles invert tails.
func TestMMcAgreesWithItself(t *testing.T) {
	for _, c := range []int{2, 8, 60, 2000} {
		for _, load := range []float64{0.3, 0.95, 1 - 1/float64(c), 1 - 1/float64(c) + 1e-9} {
			q := MMc{c, load * float64(c) / 0.05, 0.05}
			far := 40 / min(q.spare(), 20)
			// The wait decays with the spare rate, the response with 1/mean if that is slower.
			near(t, integral(q.WaitTail, 40/q.spare(), 4000), q.MeanWait(), 1e-7, "integral of the wait, %+v", q)
			near(t, integral(q.ResponseTail, far, 4000), q.MeanResponse(), 1e-7, "integral of the response, %+v", q)
			for _, x := range []float64{0.001, 0.05, 0.4} {
				// P(S > x), or S = u and the wait above x - u.
				want := math.Exp(-x/0.05) + integral(func(u float64) float64 {
					return 20 * math.Exp(-u/0.05) * q.WaitTail(x-u)
				}, x, 2000)
				near(t, q.ResponseTail(x), want, 1e-7, "response tail, %+v, %v s", q, x)
			}
			for _, p := range []float64{0, 0.5, 0.99, 0.99999} {
				if w := q.WaitQuantile(p); w > 0 {
					near(t, q.WaitTail(w), 1-p, 1e-9, "tail at the wait quantile %v, %+v", p, q)
				} else if q.WaitTail(0) > 1-p {
					t.Errorf("WaitQuantile(%v) of %+v is 0, but %v wait", p, q, q.WaitTail(0))
				}
				if r := q.ResponseQuantile(p); r > 0 {
					near(t, q.ResponseTail(r), 1-p, 1e-9, "tail at the response quantile %v, %+v", p, q)
				}
			}
		}
	}
}

func TestMMcWithoutSteadyState(t *testing.T) {
	inf := math.Inf(1)
	for _, load := range []float64{1, 1.5, 1e300} {
		q := MMc{4, load * 4, 1}
		for _, got := range []float64{q.MeanWait(), q.MeanResponse(), q.WaitQuantile(0.5), q.ResponseQuantile(0.5)} {
			if got != inf {
				t.Errorf("%v at a load of %v, want +Inf", got, load)
			}
		}
		if q.WaitTail(1e9) != 1 || q.ResponseTail(1e9) != 1 {
			t.Errorf("tails at a load of %v: %v, %v, want 1", load, q.WaitTail(1e9), q.ResponseTail(1e9))
		}
	}
	q := MMc{4, 2, 1}
	if q.WaitTail(inf) != 0 || q.ResponseTail(inf) != 0 || q.WaitQuantile(1) != inf || q.ResponseQuantile(1) != inf {
		t.Error("a wait for ever has the probability 0, and the quantile 1 is for ever")
	}
}

// The probabilities of M/M/c/K satisfy what defines them: neighbours balance,
// and the sum is 1.
func TestMMcKBalances(t *testing.T) {
	for _, c := range []int{1, 2, 60, 300} {
		for _, depth := range []int{0, 1, 40, 600} {
			for _, load := range []float64{1e-3, 0.1, 0.9, 1 - 1e-9, 1, 1 + 1e-9, 1.5, 10, 1e8} {
				q := MMcK{c, depth, load * float64(c) / 0.05, 0.05}
				sum, last := 0.0, 0.0
				for n := range c + depth + 1 {
					p := q.State(n)
					sum += p
					// Downwards as often as upwards, where float64 can hold it.
					if down := p * float64(min(n, c)) / 0.05; n > 0 && down > 1e-290 && last > 1e-290 {
						near(t, down, last*q.Rate, 1e-10, "%+v: flow down from %d", q, n)
					}
					last = p
				}
				near(t, sum, 1, 1e-11, "%+v: sum of all", q)
				near(t, q.Loss(), q.State(c+depth), 1e-11, "%+v: loss", q)
			}
		}
	}
	for _, load := range []float64{0.01, 1.01, 1.5, 1e8} { // load^depth is no float64
		q := MMcK{2, 5000, load * 40, 0.05}
		for _, v := range []float64{q.Loss(), q.MeanWait(), q.State(2), q.State(5002), q.WaitTail(1), q.ResponseTail(1)} {
			if !(v >= 0 && v <= 5000*0.05) {
				t.Errorf("%+v gives %v", q, v)
			}
		}
	}
	if q := (MMcK{2, 3, 1, 1}); q.State(-1) != 0 || q.State(6) != 0 {
		t.Error("states that cannot be have the probability 0")
	}
}

// With no depth it is the loss system, with much of it M/M/c.
func TestMMcKBetweenLossAndDelay(t *testing.T) {
	for _, load := range []float64{0, 0.2, 0.8, 1, 3} {
		q := MMcK{8, 0, load * 8, 1}
		near(t, q.Loss(), ErlangB(8, load*8), 1e-13, "loss without a queue at %v", load)
		near(t, q.MeanWait(), 0, 0, "mean wait without a queue")
		near(t, q.WaitTail(0), 0, 0, "wait without a queue")
		near(t, q.ResponseTail(2), math.Exp(-2), 1e-13, "response without a queue at %v", load)
	}
	for _, load := range []float64{0, 0.2, 0.8} {
		q, all := MMcK{8, 300, load * 8, 1}, MMc{8, load * 8, 1}
		near(t, q.MeanWait(), all.MeanWait(), 1e-12, "mean wait at %v", load)
		for _, x := range []float64{0, 0.3, 4} {
			near(t, q.WaitTail(x), all.WaitTail(x), 1e-11, "wait tail at %v, %v s", load, x)
			near(t, q.ResponseTail(x), all.ResponseTail(x), 1e-11, "response tail at %v, %v s", load, x)
		}
	}
}

// Means are the integrals of tails, quantiles invert them, at loads on both
// sides of 1.
func TestMMcKAgreesWithItself(t *testing.T) {
	for _, c := range []int{1, 6, 60} {
		for _, load := range []float64{0.5, 1, 3} {
			q := MMcK{c, 50, load * float64(c) / 0.05, 0.05}
			// 51 departures take 51 +- 12 sqrt(51) and 40 more gaps at the very most.
			far := 180 * 0.05 / float64(c)
			near(t, integral(q.WaitTail, far, 1000), q.MeanWait(), 1e-6, "integral of the wait, %+v", q)
			near(t, integral(q.ResponseTail, far+2, 2000), q.MeanWait()+0.05, 1e-6, "integral of the response, %+v", q)
			for _, p := range []float64{0.5, 0.99} {
				if w := q.WaitQuantile(p); w > 0 {
					near(t, q.WaitTail(w), 1-p, 1e-9, "tail at the wait quantile %v, %+v", p, q)
				}
				near(t, q.ResponseTail(q.ResponseQuantile(p)), 1-p, 1e-9, "tail at the response quantile %v, %+v", p, q)
			}
		}
	}
}

// The figures of a limit, of a few places and of a tail that were computed
// before, in other ways.
func TestMMcKFigures(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"100/s, 150/s, limit 200: share in 2 s", 1 - MMcK{1, 199, 150, 0.01}.ResponseTail(2), 0.564},
		{"same, limit 167", 1 - MMcK{1, 166, 150, 0.01}.ResponseTail(2), 0.994},
		{"same, limit 160", 1 - MMcK{1, 159, 150, 0.01}.ResponseTail(2), 0.999},
		{"150/s, 300/s, limit 260", 1 - MMcK{1, 259, 300, 1.0 / 150}.ResponseTail(2), 0.993},
		{"150/s, 300/s, one slot and 5 places: in a minute", MMcK{1, 5, 300, 1.0 / 150}.Throughput() * 60 / 1e4, 0.893},
		{"500/s, 700/s, 8 slots, depth 100: p99 wait", MMcK{8, 100, 700, 8.0 / 500}.WaitQuantile(0.99), 0.245},
		{"same, depth 80", MMcK{8, 80, 700, 8.0 / 500}.WaitQuantile(0.99), 0.201},
		{"60 slots, 3x, depth 480: p99 response", MMcK{60, 480, 3600, 0.05}.ResponseQuantile(0.99), 0.633},
	} {
		if !(math.Abs(c.got-c.want) < 6e-4) { // three figures were quoted
			t.Errorf("%s: %.5f, want %v", c.name, c.got, c.want)
		}
	}
}

// Erlang's alternating sum for M/D/1, in 2000 bits, where it can be summed.
func TestMD1AgainstErlang(t *testing.T) {
	for _, load := range []float64{0.1, 0.5, 0.9, 0.99} {
		q := MD1{load / 0.05, 0.05}
		for _, x := range []float64{0, 0.3, 0.999, 1, 1.5, 7, 7.25, 40.5, 120} {
			if got, want := 1-q.WaitTail(x*0.05), crommelin(load, x); !(math.Abs(got-want) < 2e-13) {
				t.Errorf("P(wait <= %v services) at %v = %.15f, want %.15f", x, load, got, want)
			}
		}
	}
}

// crommelin returns (1 - r) sum over k <= x of (r(k - x))^k/k! exp(-r(k - x)).
func crommelin(r, x float64) float64 {
	const bits = 2000
	f := func(v float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(v) }
	sum := f(0)
	for k := 0.0; k <= x; k++ {
		y := f(r)
		y.Mul(y, f(k-x)) // not above 0
		term := f(1)
		for i := 1.0; i <= k; i++ {
			term.Quo(term.Mul(term, y), f(i))
		}
		// exp(-y), -y in [0, r x], by its series.
		e, p := f(1), f(1)
		for i := 1.0; i < 3*r*x+300; i++ {
			p.Quo(p.Mul(p, y), f(-i))
			e.Add(e, p)
		}
		sum.Add(sum, term.Mul(term, e))
	}
	v, _ := sum.Mul(sum, f(1-r)).Float64()
	return v
}

// The mean is the integral of the tail and Pollaczek and Khinchine's; far out
// the tail falls as the root of load (e^x - 1) = x says.
func TestMD1Tail(t *testing.T) {
	for _, load := range []float64{0.2, 0.8, 0.95} {
		q := MD1{load, 1}
		near(t, integral(q.WaitTail, 400, 400*20), q.MeanWait(), 1e-3, "integral of the tail at %v", load)
		near(t, q.MeanWait(), load/(2*(1-load)), 1e-13, "mean wait at %v", load)
	}
	q := MD1{0.9, 1}
	root := 0.2071 // 0.9 (e^x - 1) = x, made exact below
	for range 50 {
		root -= (0.9*math.Expm1(root) - root) / (0.9*math.Exp(root) - 1)
	}
	near(t, math.Log(q.WaitTail(40)/q.WaitTail(60))/20, root, 1e-8, "decay")
	for _, c := range []struct{ load, t, want float64 }{
		{0, 0, 0}, {0.5, -1, 1}, {1, 1e9, 1}, {2, 1, 1}, {0.5, math.Inf(1), 0}, {0.5, 1e12, 0},
	} {
		if got := (MD1{c.load, 1}).WaitTail(c.t); got != c.want {
			t.Errorf("WaitTail(%v) at %v = %v, want %v", c.t, c.load, got, c.want)
		}
	}
	if !math.IsInf(MD1{1, 1}.MeanWait(), 1) {
		t.Error("the mean wait at a load of 1 is infinite")
	}
}

func TestMeanWaitsMeet(t *testing.T) {
	for _, load := range []float64{0, 0.3, 0.9} {
		q := MMc{1, load * 20, 0.05}
		near(t, MG1Wait(q.Rate, 0.05, 1), q.MeanWait(), 1e-13, "M/G/1 of M/M/1 at %v", load)
		near(t, GGcWait(q, 1, 3), MG1Wait(q.Rate, 0.05, 3), 1e-13, "G/G/1 of M/G/1 at %v", load)
		many := MMc{9, load * 180, 0.05}
		near(t, GGcWait(many, 1, 1), many.MeanWait(), 1e-13, "G/G/c of M/M/c at %v", load)
	}
	for _, w := range []float64{MG1Wait(20, 0.05, 0), MG1Wait(40, 0.05, 1), GGcWait(MMc{2, 40, 0.05}, 0, 0)} {
		if !math.IsInf(w, 1) {
			t.Errorf("mean wait %v at a load of 1, want +Inf", w)
		}
	}
}

// When patience is like service, everybody leaves at the same rate, waiting or
// served, and the number inside is Poisson distributed, whatever c is.
func TestErlangAOfEqualRates(t *testing.T) {
	for _, c := range []int{1, 8, 60, 1000} {
		for _, load := range []float64{0.2, 1, 3} {
			a := load * float64(c)
			q := ErlangA{c, a / 0.05, 0.05, 0.05}
			var length float64
			for n := c + 1; n < c+int(3*a)+400; n++ {
				length += float64(n-c) * math.Exp(logPoisson(n, a))
			}
			near(t, q.Busy(), math.Exp(logPoissonFrom(c, a)), 1e-10, "busy, %+v", q)
			near(t, q.Abandon(), length/a, 1e-10, "abandon, %+v", q)
			near(t, q.MeanWait(), length/q.Rate, 1e-10, "mean wait, %+v", q)
		}
	}
}

// Without patience it is the loss system, with endless patience M/M/c, and with
// long patience in an overload the fluid: 1 - 1/load leave.
func TestErlangALimits(t *testing.T) {
	for _, load := range []float64{0, 0.5, 0.9, 2} {
		q := ErlangA{8, load * 8, 1, 1e-12}
		near(t, q.Abandon(), ErlangB(8, load*8), 1e-9, "impatient at %v", load)
		if q := (ErlangA{8, load * 8, 1, 1e9}); load < 1 {
			near(t, q.MeanWait(), MMc{8, load * 8, 1}.MeanWait(), 1e-6, "patient at %v", load)
			near(t, q.Busy(), ErlangC(8, load*8), 1e-6, "patient, busy at %v", load)
		}
	}
	q := ErlangA{8, 16, 1, 1e5} // sums up to e^200,000 and more: rescaled
	near(t, q.Abandon(), 0.5, 1e-9, "fluid")
	near(t, q.Busy(), 1, 1e-12, "fluid, busy")
	for patience := 150.0; patience < 220; patience++ { // at 188 the sums reach 1e200
		q := ErlangA{8, 16, 1, patience}
		near(t, q.Abandon(), 0.5, 1e-9, "fluid, %+v", q)
		near(t, q.Busy(), 1, 1e-12, "fluid, busy, %+v", q)
	}
	// Sums that must not overflow or vanish.
	for _, q := range []ErlangA{{1, 1e6, 1, 1}, {1, 1e-300, 1, 1}, {500, 1, 1, 1}, {1, 1e12, 1e-300, 1e-300}} {
		for _, v := range []float64{q.Busy(), q.Abandon(), q.MeanWait()} {
			if !(v >= 0 && v <= 1e9) {
				t.Errorf("%+v gives %v", q, v)
			}
		}
	}
}
