package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/theory"
	"github.com/goodput/goodput/limit"
)

// Most is the deepest queue a plan looks at, the most that the core derives.
const Most = 1 << 24

// A server is a limit in front of some work: what every formula here starts from.
type server struct {
	*work
	limit      int
	percentile float64
	batch      *admission.Batch // of the work, made once
}

func newServer(w *work, limit int, percentile float64) *server {
	s := &server{work: w, limit: limit, percentile: percentile, batch: &admission.Batch{}}
	for _, v := range w.sorted {
		d := max(seconds(v), 1)
		s.batch.Add(d, d, 1, 1)
	}
	return s
}

// rate is the completion rate: limit / mean service, per second.
func (s *server) rate() float64 { return theory.Capacity(s.limit, s.mean) }

// derive asks the core itself for the depth: it sees the service times, forgets
// its prior, which takes an objective, computes anew what it computes once a
// second, and shows its derivation.
func (s *server) derive(objective time.Duration) (admission.Derivation, error) {
	c, err := admission.New(admission.Config{
		Limit: limit.Fixed(s.limit), Objective: objective, Percentile: s.percentile, MaxItems: Most,
	})
	if err != nil {
		return admission.Derivation{}, err
	}
	var none admission.Batch
	c.Observe(0, s.batch)
	later := 2*objective + time.Second
	c.Observe(later, &none)
	return c.Stats(later).Derivation, nil
}

// respond returns the response time, in seconds at the percentile, of who takes
// place d while every slot is busy. The core computes that for the rule of thumb,
// rate x objective, so the objective d/rate makes d the rule.
func (s *server) respond(d int) float64 {
	wait := float64(d) / s.rate()
	switch {
	case d == 0:
		return s.alone()
	case wait > admission.MaxObjective.Seconds() || d > Most:
		return wait + s.alone() // the sum of millions of services hardly varies
	case wait < 0.002: // near the shortest objective, 1 ms: look through a lens
		return newServer(s.stretched(1000), s.limit, s.percentile).respond(d) / 1000
	}
	v, err := s.derive(seconds(wait))
	if err != nil {
		panic(fmt.Sprintf("plan: %v within the range of the core: %v", seconds(wait), err))
	}
	return v.RuleLatency.Seconds()
}

// alone returns the service time at the percentile, in seconds.
func (s *server) alone() float64 {
	n := len(s.sorted)
	return s.sorted[min(n-1, int(s.percentile*float64(n)))]
}

// thinned is how many quantiles of the service time late sums over.
const thinned = 1000

// late returns P(d departures + own service > t seconds) with every slot busy: the
// chance of the last in a full queue of depth d, first come first served, to be
// too late. The departures take a gamma distributed time with the moments of
// renewal theory, mean d/rate and variance cv2 d/rate^2, and that of the rounds of work
// that does not vary: see admission/depth.go.
func (s *server) late(d int, t float64) float64 {
	step := max(1, len(s.sorted)/thinned)
	variance := s.cv2*float64(d) + theory.RoundVariance(d, s.limit, s.cv2)
	var sum, n float64
	for i := step / 2; i < len(s.sorted); i += step {
		sum += departed(d, s.rate(), variance, t-s.sorted[i])
		n++
	}
	return sum / n
}

// departed returns P(d departures take longer than t seconds), by the cube root
// of Wilson and Hilferty (1931), whose error is below 0.001 from d = 10 on. The variance
// is in units of the mean time between two departures.
func departed(d int, rate, variance, t float64) float64 {
	mean := float64(d) / rate
	switch {
	case t <= 0:
		return b2f(d > 0 || t < 0)
	case d == 0:
		return 0
	case variance < 1e-6*float64(d):
		return b2f(mean > t*(1+1e-9))
	}
	v := variance / (9 * float64(d) * float64(d)) // 1/(9k) of a gamma variable of shape k = d^2/variance
	z := (math.Cbrt(t/mean) - (1 - v)) / math.Sqrt(v)
	return 0.5 * math.Erfc(z/math.Sqrt2)
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
