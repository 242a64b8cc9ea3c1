package admission

import (
	"math"
	"testing"
	"time"
)

// feed gives the estimator n stratified samples of a distribution, so that its
// quantiles carry no sampling noise.
func feed(t *testing.T, n int, quantile func(u float64) float64) *estimate {
	t.Helper()
	e := &estimate{}
	e.setPrior(50*time.Millisecond, 2*time.Second)
	var b Batch
	for i := range n {
		s := time.Duration(quantile((float64(i)+0.5)/float64(n)) * float64(time.Second))
		b.Add(s, s, 1, 1)
	}
	e.observe(0, &b)
	return e
}

func TestProbe(t *testing.T) {
	fixed := func(float64) float64 { return 0.050 }
	exp := func(u float64) float64 { return -0.050 * math.Log(1-u) }
	logn := func(cv float64) func(u float64) float64 {
		s2 := math.Log(1 + cv*cv)
		return func(u float64) float64 {
			return 0.050 * math.Exp(-s2/2+math.Sqrt(2*s2)*math.Erfinv(2*u-1))
		}
	}
	for name, q := range map[string]func(float64) float64{"fixed": fixed, "exp": exp, "logn2": logn(2), "logn1.41": logn(1.41)} {
		e := feed(t, 100000, q)
		mean, cv2 := e.moments()
		for _, T := range []float64{0.4, 2} {
			d, ok := e.deepest(1200, cv2, T, 0.01, 1, 1<<20)
			t.Log(name, mean, cv2, e.quantile(.99), T, d, ok, e.latency(480, 1200, cv2, .99))
		}
	}
	for _, r := range []float64{1.05, 1.2, 1.5, 3, 10} {
		t.Log(r, standing(60, r))
	}
}
