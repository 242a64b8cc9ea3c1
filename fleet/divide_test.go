package fleet

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// seeded returns a source of randomness, and a failure says which.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// brute gives unit after unit, as the documentation says.
func brute(budget int, weights []float64) []int {
	units := make([]int, len(weights))
	offer := func(i int) float64 {
		if units[i] == 0 {
			return math.Inf(1)
		}
		return weights[i] / float64(2*units[i]+1)
	}
	for ; budget > 0; budget-- {
		best := -1
		for i, w := range weights {
			switch {
			case w == 0:
			case best < 0, offer(i) > offer(best), offer(i) == offer(best) && w > weights[best]:
				best = i
			}
		}
		if best < 0 {
			break
		}
		units[best]++
	}
	return units
}

func sum(units []int) (total int) {
	for _, u := range units {
		total += u
	}
	return total
}

func TestDivide(t *testing.T) {
	for _, tt := range []struct {
		budget  int
		weights []float64
		want    []int
	}{
		{100, []float64{1, 1, 1, 1}, []int{25, 25, 25, 25}},
		{10, []float64{1, 1, 1, 1}, []int{3, 3, 2, 2}},
		{3, []float64{1, 1, 1, 1}, []int{1, 1, 1, 0}},
		{0, []float64{1, 1}, []int{0, 0}},
		{5, nil, []int{}},
		{5, []float64{0, 0}, []int{0, 0}},
		{90, []float64{2, 1}, []int{60, 30}},
		{90, []float64{2, 0, 1}, []int{60, 0, 30}},
		{10, []float64{1, 1e6}, []int{1, 9}}, // nobody is left without
		{1, []float64{1, 2}, []int{0, 1}},    // but for a budget that does not go round: the heaviest
		{7, []float64{6, 6, 2}, []int{3, 3, 1}},
		{MaxBudget, []float64{minWeight, maxWeight}, []int{1, MaxBudget - 1}},
	} {
		if got := Divide(tt.budget, tt.weights...); !slices.Equal(got, tt.want) {
			t.Errorf("Divide(%d, %v) = %v, want %v", tt.budget, tt.weights, got, tt.want)
		}
	}
}

// The Alabama paradox, in the figures in which it is usually told: with the largest
// remainder the third loses a seat when there is one more to give.
func TestDivideAlabama(t *testing.T) {
	weights := []float64{6, 6, 2}
	if a, b := Divide(10, weights...), Divide(11, weights...); b[2] < a[2] {
		t.Errorf("of 10 it has %d, of 11 %d", a[2], b[2])
	}
}

// randomWeights are ties, sizes far apart and zeros.
func randomWeights(r *rand.Rand, n int) []float64 {
	weights := make([]float64, n)
	for i := range weights {
		switch r.IntN(6) {
		case 0:
		case 1:
			weights[i] = math.Exp(r.NormFloat64() * 3)
		default:
			weights[i] = float64(1 + r.IntN(4))
		}
	}
	return weights
}

// Sum, shares and the three properties that the proof of Share needs, against giving unit
// after unit, on 20,000 random cases.
func TestDivideProperties(t *testing.T) {
	r := seeded(t)
	for range 20_000 {
		checkDivide(t, r.IntN(60), randomWeights(r, r.IntN(12)), r.IntN(12), 1+r.IntN(4))
		if t.Failed() {
			return
		}
	}
}

// checkDivide asserts what Divide promises, where at is where one more of weight extra is
// inserted.
func checkDivide(t *testing.T, budget int, weights []float64, at, extra int) {
	t.Helper()
	got := Divide(budget, weights...)
	if want := brute(budget, weights); !slices.Equal(got, want) {
		t.Errorf("Divide(%d, %v) = %v, want %v", budget, weights, got, want)
	}
	positive := 0
	for i, w := range weights {
		if w > 0 {
			positive++
		} else if got[i] != 0 {
			t.Errorf("Divide(%d, %v) = %v: no weight, and a share", budget, weights, got)
		}
	}
	if s := sum(got); positive > 0 && s != budget || positive == 0 && s != 0 {
		t.Errorf("Divide(%d, %v) = %v: the sum is %d", budget, weights, got, s)
	}
	for i := range got {
		if weights[i] > 0 && budget >= positive && got[i] == 0 {
			t.Errorf("Divide(%d, %v) = %v: number %d has nothing", budget, weights, got, i)
		}
	}
	more := Divide(budget+1, weights...)
	for i := range got {
		if more[i] < got[i] {
			t.Errorf("of %d: %v, of one more: %v (%v)", budget, got, more, weights)
		}
	}
	at = min(at, len(weights))
	with := Divide(budget, slices.Insert(slices.Clone(weights), at, float64(extra))...)
	for i, v := range slices.Delete(slices.Clone(with), at, at+1) {
		if v > got[i] {
			t.Errorf("%v: %v, with a %d at %d: %v", weights, got, extra, at, with)
		}
	}
	if at < len(weights) {
		heavier := slices.Clone(weights)
		heavier[at] += float64(extra)
		grown := Divide(budget, heavier...)
		for i := range got {
			if i == at && grown[i] < got[i] || i != at && grown[i] > got[i] {
				t.Errorf("%v: %v, heavier %v: %v", weights, got, heavier, grown)
			}
		}
	}
}

func FuzzDivide(f *testing.F) {
	f.Add(uint16(10), []byte{1, 2, 3}, uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, budget uint16, raw []byte, at, extra uint8) {
		raw = raw[:min(len(raw), 40)]
		weights := make([]float64, len(raw))
		for i, b := range raw {
			if weights[i] = float64(b & 15); b >= 128 {
				weights[i] = math.Pow(10, float64(b)/16-12) // 1e-4 to 1e4
			}
		}
		checkDivide(t, int(budget%1000), weights, int(at), 1+int(extra%16))
	})
}

// The largest fleet, and the head start of the loop, at full size.
func TestDivideLarge(t *testing.T) {
	r := seeded(t)
	weights := make([]float64, MaxInstances)
	for i := range weights {
		weights[i] = math.Exp(r.NormFloat64() * 3)
	}
	if got := sum(Divide(MaxBudget, weights...)); got != MaxBudget {
		t.Errorf("the sum is %d", got)
	}
	if got, want := Divide(3000, weights[:100]...), brute(3000, weights[:100]); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestDividePanics(t *testing.T) {
	for _, tt := range []struct {
		budget  int
		weights []float64
		says    string
	}{
		{-1, nil, "a budget of -1 units: 0 to 1048576"},
		{MaxBudget + 1, nil, "a budget of 1048577 units"},
		{1, []float64{1, -1}, "weight -1 of instance 2 is out of range"},
		{1, []float64{math.NaN()}, "weight NaN of instance 1"},
		{1, []float64{math.Inf(1)}, "weight +Inf of instance 1"},
		{1, []float64{minWeight / 2}, "0, or 1e-12 to 1e+12"},
		{1, []float64{maxWeight * 2}, "0, or 1e-12 to 1e+12"},
		{1, make([]float64, MaxInstances+1), "16385 weights are too many: at most 16384"},
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.Contains(s, tt.says) {
					t.Errorf("Divide(%d, %d weights): %q, want %q", tt.budget, len(tt.weights), s, tt.says)
				}
			}()
			Divide(tt.budget, tt.weights...)
		}()
	}
}

func BenchmarkDivide(b *testing.B) {
	for _, n := range []int{50, MaxInstances} {
		weights := make([]float64, n)
		for i := range weights {
			weights[i] = float64(1 + i%7)
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Divide(MaxBudget, weights...)
			}
		})
	}
}
