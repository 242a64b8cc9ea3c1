package rivals

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// Quantiles and the shortest are those of all that was added, in whatever order and
// however much: beyond what is kept, to within what neighbours differ by.
func TestTally(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	for _, n := range []int{1, 2, 50, 1000, 3 * most} {
		var all []float64
		var k tally
		for range n {
			at := time.Duration(1 + r.ExpFloat64()*50e6)
			all = append(all, at.Seconds())
			k.add(&limit.Window{Times: func(yield func(time.Duration, float64) bool) { yield(at, 1) }})
		}
		slices.Sort(all)
		if len(k.times) > most || k.n != float64(n) {
			t.Errorf("%d times: %d are kept, of %v", n, len(k.times), k.n)
		}
		if s := k.shortest(); s < all[0] || s > all[0]+1e-4 {
			t.Errorf("%d times: shortest %v, want %v", n, s, all[0])
		}
		for _, q := range []float64{0, 0.5, 0.9, 0.99} {
			// Between its neighbours, and by 1 % where many were merged.
			i := int(q * float64(n))
			lo, hi := all[max(min(i-2, n-1), 0)]*0.99, all[min(i+1, n-1)]*1.01
			if got := k.quantile(q); got < lo || got > hi+1e-4 {
				t.Errorf("%d times: %v-quantile %v, want %v to %v", n, q, got, lo, hi)
			}
		}
		k.reset()
		if k.n != 0 || len(k.times) != 0 {
			t.Errorf("after a reset: %+v", k)
		}
	}
}

// Correlations against their definition, over the last 50.
func TestPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 0))
	var p pairs
	var xs, ys []float64
	for i := range 120 {
		x := 20 + r.Float64()*10
		y := 3*x + r.Float64()*20
		corr, cv := p.add(x, y)
		xs, ys = append(xs, x), append(ys, y)
		if i+1 < failsafeWarm {
			if corr != 0 || cv != 0 {
				t.Errorf("after %d pairs: %v, %v, want 0", i+1, corr, cv)
			}
			continue
		}
		from := max(len(xs)-failsafePairs, 0)
		if want := pearson(xs[from:], ys[from:]); math.Abs(corr-want) > 1e-9 {
			t.Errorf("after %d pairs: %v, want %v", i+1, corr, want)
		}
	}
	if corr, _ := p.add(0, 5); math.Abs(corr-pearson(xs[70:], ys[70:])) > 1e-9 {
		t.Error("a pair with a 0 counts")
	}
	var still pairs
	for i := range 20 {
		if corr, _ := still.add(100+float64(i%2), float64(i+1)); corr != 0 {
			t.Errorf("%v, of values that vary by less than 1 %%", corr)
		}
	}
}

func pearson(x, y []float64) float64 {
	n := float64(len(x))
	var sx, sy, sxx, syy, sxy float64
	for i := range x {
		sx += x[i]
		sy += y[i]
		sxx += x[i] * x[i]
		syy += y[i] * y[i]
		sxy += x[i] * y[i]
	}
	return (n*sxy - sx*sy) / math.Sqrt((n*sxx-sx*sx)*(n*syy-sy*sy))
}
