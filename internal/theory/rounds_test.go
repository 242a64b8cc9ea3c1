package theory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The variance of the first r of n slots that come free at random in a round, by draws; and
// where it is none.
func TestRoundVariance(t *testing.T) {
	const seed, draws = 11, 100_000
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, c := range []struct{ d, n int }{{1, 8}, {9, 8}, {4, 8}, {20, 60}, {100, 60}} {
		var sum, squares float64
		at := make([]float64, c.n-1)
		for range draws {
			for i := range at {
				at[i] = rnd.Float64()
			}
			slices.Sort(at)
			x := float64(c.n) * at[c.d%c.n-1]
			sum, squares = sum+x, squares+x*x
		}
		want := squares/draws - sum/draws*sum/draws
		if got := RoundVariance(c.d, c.n, 0); math.Abs(got-want) > 0.03*want {
			t.Errorf("%d of %d slots: %.4f, draws say %.4f", c.d, c.n, got, want)
		}
		if half, whole := RoundVariance(c.d, c.n, 0.5), RoundVariance(c.d, c.n, 0); math.Abs(half-whole/2) > 1e-12 {
			t.Errorf("%d of %d slots, half as regular: %v of %v", c.d, c.n, half, whole)
		}
	}
	for _, c := range []struct {
		d, n int
		cv2  float64
	}{{0, 8, 0}, {8, 8, 0}, {420, 60, 0}, {5, 1, 0}, {5, 0, 0}, {9, 8, 1}, {9, 8, 4}} {
		if got := RoundVariance(c.d, c.n, c.cv2); got != 0 {
			t.Errorf("%d of %d slots, cv2 %v: %v, want none", c.d, c.n, c.cv2, got)
		}
	}
	for n := 2; n <= 200; n++ { // its 99th percentile is within the round
		for d := 1; d < 3*n; d++ {
			s := RoundVariance(d, n, 0) / (9 * float64(d) * float64(d))
			end := float64((d + n - 1) / n * n)
			if q := float64(d) * math.Pow(1-s+2.326*math.Sqrt(s), 3); q > end*(1+1e-9) {
				t.Fatalf("%d of %d slots: the 99th percentile is %v, beyond %v", d, n, q, end)
			}
		}
	}
}
