package admission

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// sized feeds a sizing n requests, in windows of 20, of sizes 1 to 100 and the service time
// that f gives for the size.
func sized(s *sizing, n int, f func(size int) time.Duration) {
	rng := rand.New(rand.NewPCG(5, 6))
	var p pairs
	for range n {
		size := 1 + rng.IntN(100)
		p.add(size, f(size), 0)
		if p.n == 20 {
			s.observe(&p)
			p.reset()
		}
	}
}

// What is made of sizes. A correlation that is not there is seen as one by chance, at two
// standard errors, once in 44 times: the seeds of those that say nothing are such that it
// is not.
func TestSizes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	exponential := func() time.Duration { return time.Duration(rng.ExpFloat64() * float64(50*ms)) }
	for _, c := range []struct {
		name       string
		f          func(size int) time.Duration
		use        SizeUse
		base, each time.Duration
		off        float64 // relative
	}{
		{"exact", func(size int) time.Duration { return time.Duration(size) * ms }, SizeTrusted, 0, ms, 1e-6},
		{"with an overhead", func(size int) time.Duration { return 40*ms + time.Duration(size)*ms }, SizeTrusted, 40 * ms, ms, 1e-4},
		// The slope of 1024 pairs has a standard error of 20/(29 x 32) = 2 %; the
		// sizes have a standard deviation of 29.
		{"with noise", func(size int) time.Duration {
			return 100*ms + time.Duration(size)*ms + time.Duration(20*rng.NormFloat64()*float64(ms))
		}, SizeTrusted, 100 * ms, ms, 0.06},
		{"in proportion, times noise", func(size int) time.Duration {
			return time.Duration(float64(size) * math.Exp(0.3*rng.NormFloat64()) * float64(ms))
		}, SizeTrusted, 0, time.Duration(math.Exp(0.3*0.3/2) * float64(ms)), 0.06},
		{"nothing", func(int) time.Duration { return exponential() }, SizeIgnored, 0, 0, 0},
		{"the contrary", func(size int) time.Duration { return time.Duration(101-size) * ms }, SizeIgnored, 0, 0, 0},
		{"always the same time", func(int) time.Duration { return 50 * ms }, SizeIgnored, 0, 0, 0},
		// 1 + size/1000: the predictions differ by 3 %.
		{"too little to choose by", func(size int) time.Duration { return time.Second + time.Duration(size)*ms }, SizeIgnored, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sizing
			sized(&s, maxPairs, c.f)
			if s.use != c.use {
				t.Fatalf("sizes are %s, want %s: %.3g explained", s.use, c.use, s.explained)
			}
			if c.use != SizeTrusted {
				return
			}
			for _, size := range []int{1, 50, 100} {
				want := (c.base + time.Duration(size)*c.each).Seconds()
				if got := s.predict(size); math.Abs(got/want-1) > c.off+0.01*(c.off/0.06) {
					t.Errorf("size %d is predicted to take %v s, want %v", size, got, want)
				}
			}
		})
	}
}

// Twenty exact sizes are enough, and before that nothing is made of them. Constant ones say
// nothing, for or against.
func TestSizesBegin(t *testing.T) {
	exact := func(size int) time.Duration { return time.Duration(size) * ms }
	var s sizing
	var p pairs
	for i := range fewestPairs {
		if s.use != SizeScales {
			t.Errorf("sizes are %s after %d", s.use, i)
		}
		p.add(i+1, exact(i+1), 0)
		s.observe(&p)
		p.reset()
	}
	if s.use != SizeTrusted {
		t.Errorf("sizes are %s after %d exact ones", s.use, fewestPairs)
	}
	var same sizing
	for range 3 * maxPairs {
		p.add(7, 50*ms, 0)
		same.observe(&p)
		p.reset()
	}
	if same.use != SizeScales {
		t.Errorf("constant sizes are %s", same.use)
	}
	sized(&same, maxPairs, exact)
	if same.use != SizeTrusted {
		t.Errorf("sizes are %s once they vary", same.use)
	}
	for range 2 * maxPairs {
		p.add(7, 50*ms, 0)
		same.observe(&p)
		p.reset()
	}
	if same.use != SizeScales {
		t.Errorf("sizes are %s once they no longer vary", same.use)
	}
}

// Sizes that turn bad are ignored, within as many requests as are remembered, and are
// trusted again likewise. In between nothing flips: a correlation of 1.5 standard errors
// is neither evidence nor its absence.
func TestSizesTurnBad(t *testing.T) {
	good := func(size int) time.Duration { return time.Duration(size) * ms }
	rng := rand.New(rand.NewPCG(3, 4))
	bad := func(int) time.Duration { return time.Duration(rng.ExpFloat64() * float64(50*ms)) }
	var s sizing
	for i, c := range []struct {
		f    func(int) time.Duration
		want SizeUse
	}{{good, SizeTrusted}, {bad, SizeIgnored}, {good, SizeTrusted}, {bad, SizeIgnored}} {
		sized(&s, 2*maxPairs, c.f)
		if s.use != c.want {
			t.Errorf("%d: sizes are %s, want %s", i, s.use, c.want)
		}
	}
	// Of n pairs with the correlation r the evidence is r^2 (n-1): 1.5 errors squared. Half
	// have the size 1 and half 3, and noise of the same spread is uncorrelated with them.
	const n = 32
	r := math.Sqrt(1.5 * 1.5 / (n - 1))
	for _, use := range []SizeUse{SizeTrusted, SizeIgnored} {
		s := sizing{use: use}
		for i := range n {
			size, noise := float64(1+2*(i%2)), float64(2*(i/2%2)-1)
			s.last = append(s.last, pair{float32(size), float32(10 + 4*(r*(size-2)+math.Sqrt(1-r*r)*noise)), 0})
		}
		if s.fit(); s.use != use {
			t.Errorf("sizes that were %s are %s at 1.5 standard errors", use, s.use)
		}
	}
}

// The size that was offered is judged, whatever it turned out to be: one that is off by a
// constant factor predicts as well as any.
func TestOfferedSizeIsJudged(t *testing.T) {
	for what, f := range map[string]func(b *Batch, actual int){
		"twice as large": func(b *Batch, actual int) {
			b.AddSample(Sample{Service: time.Duration(actual) * ms, Offered: 2 * actual, Size: actual})
		},
		"unrelated, then so": func(b *Batch, actual int) {
			b.AddSample(Sample{Service: time.Duration(actual) * ms, Offered: 1 + actual*37%101, Size: actual})
		},
	} {
		c := benchCore(t, Config{Limit: limit.Fixed(60)})
		var b Batch
		for i := range 200 {
			f(&b, 1+i%100)
			c.Observe(time.Duration(i)*50*ms, &b)
			b.Reset()
		}
		want := map[string]SizeUse{"twice as large": SizeTrusted, "unrelated, then so": SizeIgnored}[what]
		if d := c.derivation; d.Sizes != want {
			t.Errorf("%s: sizes are %s, want %s: %v", what, d.Sizes, want, d)
		}
		if want == SizeTrusted {
			if got := c.need(100, Never); (got - 50*ms).Abs() > 100*time.Microsecond {
				t.Errorf("%s: a size of 100 needs %v, want 50ms", what, got)
			}
		}
	}
}

// A cost is no size: a costly request does not give way for it, however well it says how long
// the request takes, nor is it ignored.
func TestCostIsNoSize(t *testing.T) {
	for what, f := range map[string]func(cost int) time.Duration{
		"in proportion": func(cost int) time.Duration { return time.Duration(cost) * ms },
		"all alike":     func(int) time.Duration { return 50 * ms },
	} {
		c := benchCore(t, Config{Limit: limit.Fixed(60)})
		var b Batch
		for i := range 200 {
			cost := 1 + i%50
			b.Add(f(cost), 0, cost, i%2*cost)
			c.Observe(time.Duration(i)*50*ms, &b)
			b.Reset()
		}
		if d := c.derivation; d.Sizes != SizeScales {
			t.Errorf("%s: sizes are %s: %v", what, d.Sizes, d)
		}
	}
}

// Ignored sizes change nothing: the core is as one that was told none.
func TestIgnoredSizesAreNone(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	with, without := benchCore(t, Config{Limit: limit.Fixed(60)}), benchCore(t, Config{Limit: limit.Fixed(60)})
	var a, b Batch
	for i := range 300 {
		for range 4 {
			s := time.Duration(rng.ExpFloat64() * float64(50*ms))
			a.Add(s, s, 1, 1+rng.IntN(100))
			b.Add(s, s, 1, 1)
		}
		now := time.Duration(i) * 50 * ms
		with.Observe(now, &a)
		without.Observe(now, &b)
		a.Reset()
		b.Reset()
	}
	x, y := with.derivation, without.derivation
	if x.Sizes != SizeIgnored || y.Sizes != SizeScales {
		t.Fatalf("sizes are %s and %s", x.Sizes, y.Sizes)
	}
	// The p99 of 1024 exponential times has a standard error of 7 %, that of the
	// decaying histogram, of about 800 here, likewise; they are mostly of the same times.
	for _, size := range []int{1, 50, 100} {
		if a, b := with.need(size, Never), without.need(1, Never); math.Abs(float64(a)/float64(b)-1) > 0.15 {
			t.Errorf("size %d needs %v, and without sizes %v", size, a, b)
		}
	}
	if math.Abs(float64(x.Depth)/float64(y.Depth)-1) > 0.15 {
		t.Errorf("%d deep, and without sizes %d", x.Depth, y.Depth)
	}
	if got := x.String(); !strings.Contains(got, "; sizes are ignored: they explain ") {
		t.Errorf("it says %q", got)
	}
}

// A window of any number of requests leaves at most windowPairs, evenly spread.
func TestPairs(t *testing.T) {
	for _, n := range []int{1, windowPairs, windowPairs + 1, 1000, 100_000} {
		var p pairs
		for i := range n {
			p.add(i+1, ms, 0)
		}
		if p.n > windowPairs || p.n < min(n, windowPairs/2) {
			t.Errorf("of %d requests %d are kept", n, p.n)
		}
		for i := 1; i < p.n; i++ {
			if gap := int(p.list[i].size - p.list[i-1].size); gap != max(p.every, 1) {
				t.Fatalf("of %d requests number %d is %d after the one before, want %d", n, i, gap, p.every)
			}
		}
	}
}
