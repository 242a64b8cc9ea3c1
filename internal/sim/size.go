package sim

import (
	"fmt"
	"time"
)

// maxEvents bounds a run: ten thousand million events are about an hour of a core. A
// scenario with more is a slip of the pen, a rate of nanoseconds or a fan-out of
// fan-outs, and would run until somebody ends it.
const maxEvents = 1e10

// validateSize returns what makes s too large to be played.
func (s *Scenario) validateSize() error {
	span := float64(s.Length)
	for i := range s.Tiers {
		for _, p := range s.Tiers[i].Speed.Stalls {
			span += float64(p.For)
		}
		span += 100 * float64(s.Tiers[i].Service.average())
		if f := s.Tiers[i].Next; f != nil {
			span += f.Retry.span() + 100*float64(f.Service.average())
		}
	}
	for i := range s.Classes {
		c := &s.Classes[i]
		span += 100*float64(c.Service.average()) + c.Retry.span()
	}
	worst, why := 0.0, ""
	most := func(n float64, format string, args ...any) {
		if n > worst {
			worst, why = n, fmt.Sprintf(format, args...)
		}
	}
	for i := range s.Classes {
		c := &s.Classes[i]
		n := c.Arrivals.peak() * s.Length.Seconds() * float64(max(c.Retry.Attempts, 1)) * s.calls(c.Tier)
		most(4*n, "class %s: its arrivals, with all attempts and sub-requests,", name(c.Name, i))
		if b := c.Arrivals.Bursts; b != (Bursts{}) {
			most(float64(s.Length)/float64(b.On+b.Off), "class %s: its bursts", name(c.Name, i))
		}
		if w := c.Arrivals.Sine; w != (Sine{}) {
			most(sineParts*float64(s.Length)/float64(w.Period), "class %s: its waves", name(c.Name, i))
		}
	}
	for i := range s.Tiers {
		t := &s.Tiers[i]
		each := float64(max(t.Instances, 1))
		if c := t.cores(); c != nil {
			most(each*span/float64(c.Window()), "tier %s: the measurements of its instances", name(t.Name, i))
		}
		most(each*float64(len(t.Restarts)), "tier %s: its restarts", name(t.Name, i))
		most(2*each*float64(len(t.Absences)), "tier %s: its absences", name(t.Name, i))
		if p := t.Speed.Pauses; p != (Pauses{}) {
			most(span/float64(p.Every), "tier %s: its pauses", name(t.Name, i))
		}
	}
	if worst > maxEvents {
		return fmt.Errorf("%s may be %.3g events in %v: at most %.0e are played", why, worst, time.Duration(min(span, float64(maxTime))).Round(time.Millisecond), float64(maxEvents))
	}
	return nil
}

// peak is the highest rate, per second.
func (a *Arrivals) peak() float64 {
	peak := a.Rate
	for _, c := range a.Changes {
		peak = max(peak, c.Rate)
	}
	return max(peak*(1+a.Sine.Amplitude), a.Bursts.Rate)
}

// calls is how many calls a request to a tier is, with all of its sub-requests.
func (s *Scenario) calls(tier int) float64 {
	n, each := 1.0, 1.0
	for f := s.Tiers[tier].Next; f != nil; f = s.Tiers[f.Tier].Next {
		each *= float64(max(f.N, 1)) * float64(max(f.Retry.Attempts, 1))
		n += each
	}
	return n
}

// span is at least all that is waited between the attempts of a call, in ns.
func (r *Retry) span() float64 {
	return float64(r.Attempts) * float64(r.delay(max(r.Attempts, 1)))
}
