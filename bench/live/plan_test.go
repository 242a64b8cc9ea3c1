package live

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestRequestsFollowFromTheSeed(t *testing.T) {
	p := Cold(1.5, 60, 50*time.Millisecond, 20*time.Second, 7)
	a, b := slices.Collect(p.Requests()), slices.Collect(p.Requests())
	if !slices.Equal(a, b) {
		t.Fatal("two plays of one plan have other requests")
	}
	other := p
	other.Seed = 8
	if slices.Equal(a, slices.Collect(other.Requests())) {
		t.Fatal("another seed has the same requests")
	}
	// A Poisson count of mean n has the deviation sqrt(n); the mean of n exponential
	// times that of their mean / sqrt(n). Four of each: 1 in 16,000.
	n := p.Rate * 20
	if d := math.Abs(float64(len(a)) - n); d > 4*math.Sqrt(n) {
		t.Errorf("%d requests, want %.0f", len(a), n)
	}
	sum := time.Duration(0)
	for i, r := range a {
		sum += r.Work
		if r.Due >= p.Length() || i > 0 && r.Due < a[i-1].Due {
			t.Fatalf("request %d is due at %v", i, r.Due)
		}
	}
	mean := sum.Seconds() / float64(len(a))
	if d := math.Abs(mean - 0.05); d > 4*0.05/math.Sqrt(n) {
		t.Errorf("mean work %v s, want 0.05", mean)
	}
}

func TestCould(t *testing.T) {
	p := Step(1.5, 60, 50*time.Millisecond, 10*time.Second, 1) // 1,200, 400, 1,200/s
	for _, tc := range []struct {
		from, to time.Duration
		speed    float64
		arrived  int
		want     float64
	}{
		{0, 10 * time.Second, 1, 18_000, 12_000},
		{0, 10 * time.Second, 1, 5_000, 5_000}, // no more than came
		{0, 10 * time.Second, 0.98, 18_000, 11_760},
		{10 * time.Second, 20 * time.Second, 1, 18_000, 4_000},
		{5 * time.Second, 25 * time.Second, 1, 36_000, 6_000 + 4_000 + 6_000},
		{0, 30 * time.Second, 1, 54_000, 28_000},
		{30 * time.Second, 40 * time.Second, 1, 0, 0},
	} {
		if got := p.could(tc.from, tc.to, tc.speed, tc.arrived); math.Abs(got-tc.want) > 1e-6 {
			t.Errorf("%v to %v at %v of %d: %v, want %v", tc.from, tc.to, tc.speed, tc.arrived, got, tc.want)
		}
	}
}
