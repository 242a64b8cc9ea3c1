package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Speed is how fast the resource of a tier works as time goes: work of 50 ms takes
// 100 ms at half the speed, and what is under way feels it.
type Speed struct {
	Steps  []SpeedStep // in order of time; before the first the speed is 1
	Stalls []Stall     // in order of time: nothing moves
	Pauses Pauses
}

// A SpeedStep changes the speed for good.
type SpeedStep struct {
	At     time.Duration
	Factor float64 // 0.5 is half as fast
}

// A Stall stops the resource for a while.
type Stall struct {
	At, For time.Duration
}

// Pauses stop the resource again and again, as a garbage collection that stops
// the world does: one of length For after each exponential time of mean Every.
type Pauses struct {
	Every, For time.Duration
}

func (s *Speed) validate() error {
	if len(s.Steps) > maxParts || len(s.Stalls) > maxParts {
		return fmt.Errorf("steps and stalls are %d and %d: at most %d each", len(s.Steps), len(s.Stalls), maxParts)
	}
	var last time.Duration
	for i, p := range s.Steps {
		if err := follows(p.At, last, "the one before it"); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if !(p.Factor >= 0.001 && p.Factor <= 1000) {
			return fmt.Errorf("step %d: factor %v is out of range: 0.001 to 1000; a stall stops everything", i+1, p.Factor)
		}
		last = p.At
	}
	last = 0
	for i, p := range s.Stalls {
		if err := follows(p.At, last, "the end of the one before it"); err != nil {
			return fmt.Errorf("stall %d: %w", i+1, err)
		}
		if p.For <= 0 || p.For > maxTime {
			return fmt.Errorf("stall %d: for %v is out of range: above 0, to %v", i+1, p.For, maxTime)
		}
		last = p.At + p.For
	}
	if p := s.Pauses; p != (Pauses{}) && (p.Every < time.Millisecond || p.Every > maxTime || p.For <= 0 || p.For > p.Every) {
		return fmt.Errorf("pauses: every %v for %v is out of range: every 1ms to %v, for at most as long", p.Every, p.For, maxTime)
	}
	return nil
}

// timeline answers when work that starts at an instant ends. It keeps the
// stretches of constant speed from the instant asked last: starts never fall.
type timeline struct {
	Speed
	rand  *rand.Rand
	still bool // the speed is 1 always

	parts []part        // from the one that holds the latest start
	done  time.Duration // the end of the last part ever made
	past  float64       // work of the parts that are over, for work
	step  int
	stall int
	pause time.Duration // when the next begins
}

// A part is a stretch of constant speed.
type part struct {
	from, to time.Duration
	speed    float64
}

func newTimeline(s Speed, r *rand.Rand) *timeline {
	t := &timeline{Speed: s, rand: r}
	t.still = len(s.Steps) == 0 && len(s.Stalls) == 0 && s.Pauses == Pauses{}
	if s.Pauses != (Pauses{}) {
		t.pause = t.gap()
	}
	return t
}

func (t *timeline) gap() time.Duration { return cut(float64(t.Pauses.Every)*t.rand.ExpFloat64()) + 1 }

// end returns when work that takes d at speed 1 ends, started at start. Starts
// never fall from call to call.
func (t *timeline) end(start, d time.Duration) time.Duration {
	if t.still {
		return start + d
	}
	past := 0
	for past < len(t.parts) && t.parts[past].to <= start {
		past++
	}
	if past > 0 {
		t.parts = append(t.parts[:0], t.parts[past:]...)
	}
	left := float64(d)
	for i := 0; ; i++ {
		if i == len(t.parts) {
			t.extend()
		}
		p := t.parts[i]
		from := max(p.from, start)
		if p.to <= from {
			continue
		}
		if can := float64(p.to-from) * p.speed; can < left {
			left -= can
			continue
		}
		if p.speed == 0 {
			return p.to // nothing was left to do when it stopped
		}
		return from + time.Duration(left/p.speed)
	}
}

// extend appends the next stretch.
func (t *timeline) extend() {
	at := t.done
	p := part{from: at, to: never, speed: 1}
	for t.step < len(t.Steps) && t.Steps[t.step].At <= at {
		t.step++
	}
	if t.step > 0 {
		p.speed = t.Steps[t.step-1].Factor
	}
	if t.step < len(t.Steps) {
		p.to = t.Steps[t.step].At
	}
	for t.stall < len(t.Stalls) && t.Stalls[t.stall].At+t.Stalls[t.stall].For <= at {
		t.stall++
	}
	if t.stall < len(t.Stalls) {
		p.stop(t.Stalls[t.stall])
	}
	if t.Pauses != (Pauses{}) {
		for t.pause+t.Pauses.For <= at {
			t.pause += t.Pauses.For + t.gap()
		}
		p.stop(Stall{t.pause, t.Pauses.For})
	}
	t.done = p.to
	t.parts = append(t.parts, p)
}

// stop ends p where s begins, or makes it a standstill until s ends.
func (p *part) stop(s Stall) {
	if s.At > p.from {
		p.to = min(p.to, s.At)
	} else {
		p.speed, p.to = 0, min(p.to, s.At+s.For)
	}
}

// mean returns the speed, averaged over [from, to), of a timeline that was asked
// nothing but means of what was before.
func (t *timeline) mean(from, to time.Duration) float64 {
	if t.still {
		return 1
	}
	sum := 0.0
	for {
		if len(t.parts) > 0 {
			if p := t.parts[0]; from < p.to {
				sum += float64(max(min(p.to, to)-max(p.from, from), 0)) * p.speed
			}
			if t.done >= to {
				return sum / float64(to-from)
			}
		}
		t.parts = t.parts[:0] // one at a time: thousands of pauses are not kept
		t.extend()
	}
}

// work returns how much work could have been done until the instant at, at most
// one thing at a time. Instants never fall from call to call.
func (t *timeline) work(at time.Duration) time.Duration {
	for t.done < at {
		t.extend()
	}
	for len(t.parts) > 0 && t.parts[0].to <= at {
		t.past += float64(t.parts[0].to-t.parts[0].from) * t.parts[0].speed
		t.parts = append(t.parts[:0], t.parts[1:]...)
	}
	if len(t.parts) == 0 || at < t.parts[0].from {
		return time.Duration(t.past)
	}
	return time.Duration(t.past + float64(at-t.parts[0].from)*t.parts[0].speed)
}
