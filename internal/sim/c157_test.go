package sim

import (
	"bytes"
	"testing"
	"time"
)

// The same plan is the same number of requests in each run: 30 a second for 30 s are
// 900, and two runs of one seed are one, to the last bit.
func TestPlannedRequests_C157(t *testing.T) {
	for seed := range uint64(5) {
		s := plain(0, exponential50, time.Second, 0)
		s.Warmup, s.Length = 0, 30*time.Second
		s.Classes[0].Arrivals = Arrivals{Rate: 30, Process: Constant}
		one, two := play(t, s, seed), play(t, s, seed)
		if one.Total.Requests != 900 || !bytes.Equal(encode(t, one), encode(t, two)) {
			t.Errorf("seed %d: %d requests, then %d: want 900 both times, and the same results", seed, one.Total.Requests, two.Total.Requests)
		}
	}
	for rate := 1; rate <= 1000; rate++ {
		s := newSource(Arrivals{Rate: float64(rate), Process: Constant}, nil, 3*time.Second)
		n := 0
		for _, ok := s.next(); ok; _, ok = s.next() {
			n++
		}
		if n != 3*rate {
			t.Errorf("%d/s for 3 s are %d requests", rate, n)
		}
	}
}
