package rivals

import (
	"time"

	"github.com/goodput/goodput/limit"
)

// A minima feeds a law with the shortest time of a second instead of the mean, as the
// DefaultLimiter of go-concurrency-limits does. Shorter than 100 µs does not count, and a
// second that has no more than 100 samples goes on until it has.
//
// The shortest of some hundred times is noise where they vary, by a factor of several
// from one second to the next, and it does not see a queue before every request is in it.
type minima struct {
	law  limit.Law
	full bool // the limit counts as used only when it has been reached
}

const (
	gclWindow  = time.Second
	gclSamples = 100
	gclLeast   = 100 * time.Microsecond
)

// gclAIMD is AIMD from 10, without a timeout, that adds one only when the limit was
// reached.
func gclAIMD(from, low, high int) limit.Law {
	if from == 0 {
		from = 10
	}
	return minima{limit.AIMD{From: from, Min: low, Max: high, Timeout: time.Hour}, true}
}

// gclVegas is Vegas with other windows.
func gclVegas(from, high int) limit.Law {
	return minima{limit.Vegas{From: from, Max: high}, false}
}

// gclGradient2 is Gradient2 without the tolerance.
func gclGradient2(from, low, high int) limit.Law {
	return minima{limit.Gradient2{From: from, Min: low, Max: high, Tolerance: 1, Drift: 0.9}, false}
}

func (m minima) Start() (int, error) { return m.law.Start() }

func (m minima) Begin(seed uint64) limit.State {
	return &minimaState{full: m.full, state: m.law.Begin(seed)}
}

func (m minima) String() string {
	if s, ok := m.law.(interface{ String() string }); ok {
		return "gcl_" + s.String()
	}
	return "gcl"
}

type minimaState struct {
	full  bool
	state limit.State
	sum   limit.Window // of the windows so far; its Own is the shortest
	begun bool         // the first second ends with its 101st sample
}

func (s *minimaState) Why() string { return s.state.Why() }

func (s *minimaState) Next(current int, w *limit.Window) limit.Move {
	s.sum.Length = min(s.sum.Length+max(w.Length, 0), gclWindow)
	s.sum.Peak = max(s.sum.Peak, w.Peak)
	s.sum.Dropped = min(s.sum.Dropped+max(w.Dropped, 0), 1<<30)
	if w.Times != nil {
		for t, n := range w.Times {
			if t < gclLeast || !(n >= 1) {
				continue
			}
			if s.sum.Samples == 0 || t < s.sum.Own {
				s.sum.Own = t
			}
			s.sum.Samples = int(min(float64(s.sum.Samples)+n, 1<<30))
		}
	}
	if s.sum.Length < gclWindow && s.begun || s.sum.Samples <= gclSamples {
		return s.state.Next(current, &limit.Window{})
	}
	one := s.sum
	one.Length = gclWindow // one for the law below
	s.sum, s.begun = limit.Window{}, true
	one.Mean = one.Own
	if s.full && one.Peak < current {
		one.Peak = 0
	}
	return s.state.Next(current, &one)
}
