package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Arrivals is how requests come: a process whose rate may change with time.
type Arrivals struct {
	Process Process
	Rate    float64 // per second, to begin with

	// Changes follow one another in time.
	Changes []Change

	// Sine, if set, multiplies the rate by 1 + Amplitude sin(2 pi t / Period),
	// drawn as 64 straight lines a period: within 0.13 % of Amplitude.
	Sine Sine

	// Bursts, if set, is a Markov-modulated process of two states: the rate is
	// Bursts.Rate for an exponential time of mean On, then what the rest says for
	// one of mean Off.
	Bursts Bursts
}

// Process is the law of the gaps between arrivals.
type Process uint8

const (
	Poisson  Process = iota
	Constant         // evenly spaced, the first half a gap after the start
)

// A Change is a step of the rate at an instant, or a ramp from there.
type Change struct {
	At   time.Duration
	Rate float64       // per second, reached at At + Over
	Over time.Duration // 0 is a step
}

// A Sine is a wave, of a day perhaps.
type Sine struct {
	Amplitude float64 // 0 to 1
	Period    time.Duration
}

// Bursts is a second rate, with the mean times between the two.
type Bursts struct {
	Rate    float64
	On, Off time.Duration
}

// maxRate bounds the arrivals of a class: one per nanosecond is the resolution of
// time.
const maxRate = 1e9

func (a *Arrivals) validate() error {
	if !(a.Rate >= 0 && a.Rate <= maxRate) {
		return fmt.Errorf("rate %v is out of range: 0 to %v per second", a.Rate, float64(maxRate))
	}
	if a.Process > Constant {
		return fmt.Errorf("process %d is unknown: Poisson or Constant", a.Process)
	}
	if len(a.Changes) > maxParts {
		return fmt.Errorf("changes are %d: at most %d", len(a.Changes), maxParts)
	}
	var last time.Duration
	for i, c := range a.Changes {
		if err := follows(c.At, last, "the end of the one before it"); err != nil {
			return fmt.Errorf("change %d: %w", i+1, err)
		}
		switch {
		case !(c.Rate >= 0 && c.Rate <= maxRate):
			return fmt.Errorf("change %d: rate %v is out of range: 0 to %v per second", i+1, c.Rate, float64(maxRate))
		case c.Over < 0 || c.Over > maxTime:
			return fmt.Errorf("change %d: over %v is out of range: 0 to %v", i+1, c.Over, maxTime)
		}
		last = c.At + c.Over
	}
	if s := a.Sine; s != (Sine{}) {
		if !(s.Amplitude > 0 && s.Amplitude <= 1) {
			return fmt.Errorf("sine: amplitude %v is out of range: above 0, to 1", s.Amplitude)
		}
		if s.Period < time.Millisecond || s.Period > maxTime {
			return fmt.Errorf("sine: period %v is out of range: 1ms to %v", s.Period, maxTime)
		}
	}
	if b := a.Bursts; b != (Bursts{}) {
		if !(b.Rate >= 0 && b.Rate <= maxRate) {
			return fmt.Errorf("bursts: rate %v is out of range: 0 to %v per second", b.Rate, float64(maxRate))
		}
		if b.On < time.Microsecond || b.On > maxTime || b.Off < time.Microsecond || b.Off > maxTime {
			return fmt.Errorf("bursts: on %v, off %v are out of range: 1µs to %v each", b.On, b.Off, maxTime)
		}
	}
	return nil
}

// plain reports whether the rate never changes.
func (a *Arrivals) plain() bool {
	return len(a.Changes) == 0 && a.Sine == Sine{} && a.Bursts == Bursts{}
}

// source hands out the arrivals of one class. The gaps of a process of rate 1,
// drawn or even, are laid out along the integral of the rate: that is exact for
// any rate, and needs no thinning.
type source struct {
	Arrivals
	rand  *rand.Rand
	until time.Duration
	now   float64 // ns, of the last arrival or the last end of a segment

	from, to float64 // ns: the segment at hand, over which the rate is a straight line
	r0, r1   float64 // per ns, at its ends
	change   int
	burst    bool
	begun    bool    // a constant process has had its first arrival
	turn     float64 // ns: when the burst begins or ends
}

const sineParts = 64

func newSource(a Arrivals, r *rand.Rand, until time.Duration) *source {
	s := &source{Arrivals: a, rand: r, until: until, turn: math.Inf(1)}
	if a.Bursts != (Bursts{}) {
		s.turn = float64(a.Bursts.Off) * r.ExpFloat64()
	}
	if a.plain() {
		s.to = math.Inf(1)
		s.r0 = a.Rate / 1e9
		s.r1 = s.r0
	}
	return s
}

// next returns the next arrival, or false when there are no more.
func (s *source) next() (time.Duration, bool) {
	need := 1.0
	switch {
	case s.Process == Poisson:
		need = s.rand.ExpFloat64()
	case !s.begun: // half a gap before the first and after the last: a rate times a length is their number
		s.begun, need = true, 0.5
	}
	for {
		if s.now >= float64(s.until) {
			return 0, false
		}
		if s.now < s.to {
			at, left := s.advance(need)
			s.now = at
			if left == 0 {
				if at >= float64(s.until) {
					return 0, false
				}
				return time.Duration(at), true
			}
			need = left
		}
		s.segment()
	}
}

// advance returns when the integral of the rate from now reaches need, or the end
// of the segment and what is left of need there.
func (s *source) advance(need float64) (at, left float64) {
	if s.r0 == s.r1 {
		if s.r0 <= 0 {
			return s.to, need
		}
		if at := s.now + need/s.r0; at <= s.to {
			return at, 0
		}
		return s.to, max(0, need-(s.to-s.now)*s.r0) // rounding does not make it negative
	}
	slope := (s.r1 - s.r0) / (s.to - s.from)
	r := s.r0 + slope*(s.now-s.from)
	if all := (r + s.r1) / 2 * (s.to - s.now); all < need {
		return s.to, need - all
	}
	// r x + slope x^2 / 2 = need, in the form that does not cancel.
	x := 2 * need / (r + math.Sqrt(max(0, r*r+2*slope*need)))
	return min(s.now+x, s.to), 0
}

// segment sets the next stretch over which the rate is a straight line.
func (s *source) segment() {
	s.from, s.to = s.now, float64(s.until)
	if s.to <= s.from {
		return
	}
	if s.now >= s.turn {
		s.burst = !s.burst
		mean := s.Bursts.Off
		if s.burst {
			mean = s.Bursts.On
		}
		s.turn += float64(mean) * s.rand.ExpFloat64()
	}
	s.to = min(s.to, max(s.turn, s.from+1))
	if s.burst {
		s.r0 = s.Bursts.Rate / 1e9
		s.r1 = s.r0
		return
	}
	before := s.Rate
	for s.change < len(s.Changes) && float64(s.Changes[s.change].At+s.Changes[s.change].Over) <= s.from {
		s.change++
	}
	if s.change > 0 {
		before = s.Changes[s.change-1].Rate
	}
	s.r0, s.r1 = before/1e9, before/1e9
	if s.change < len(s.Changes) {
		switch c := s.Changes[s.change]; {
		case float64(c.At) > s.from:
			s.to = min(s.to, float64(c.At))
		default: // in the ramp
			end := float64(c.At + c.Over)
			rate := func(t float64) float64 {
				return (before + (c.Rate-before)*(t-float64(c.At))/float64(c.Over)) / 1e9
			}
			s.to = min(s.to, end)
			s.wave()
			s.r0, s.r1 = rate(s.from), rate(s.to)
			s.modulate()
			return
		}
	}
	s.wave()
	s.modulate()
}

// wave ends the segment at the next of the parts that a period is drawn in.
func (s *source) wave() {
	if s.Sine == (Sine{}) {
		return
	}
	part := float64(s.Sine.Period) / sineParts
	s.to = min(s.to, max((math.Floor(s.from/part+1e-9)+1)*part, s.from+1))
}

// modulate applies the wave to the rates at the ends of the segment.
func (s *source) modulate() {
	if s.Sine == (Sine{}) {
		return
	}
	at := func(t float64) float64 {
		return 1 + s.Sine.Amplitude*math.Sin(2*math.Pi*t/float64(s.Sine.Period))
	}
	s.r0 *= at(s.from)
	s.r1 *= at(s.to)
}
