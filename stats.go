package goodput

import (
	"github.com/goodput/goodput/admission"
)

// Indices of Stats.Wait. The numbers are shorter than the names but not clearer.
const (
	WaitAdmitted  = 0 // admitted after waiting
	WaitRefused   = 1 // refused while waiting: expired, doomed, displaced, wait bound, draining
	WaitCancelled = 2 // the caller left while it waited
)

// Stats is a snapshot. Counters never fall, and
//
//	Arrivals = sum of Outcomes + Running + Waiting
//
// holds in every one of them.
type Stats struct {
	admission.Stats
	Name    string
	Observe bool

	// Shadow, in observe mode, is what would have been decided; the embedded
	// Stats is then what really happened, where InUse may exceed Limit.
	Shadow admission.Stats

	// Wait is the time in the queue, of those that were in it: WaitAdmitted,
	// WaitRefused, WaitCancelled. In observe mode it is the shadow's.
	Wait [3]Histogram

	// Service is the time from slot to end by Outcome, nil where there was
	// none, of the requests that were timed (see the package comment).
	Service [admission.Outcomes]*Histogram

	// Capacity is how much cost per second the slots can serve, and Demand how
	// much is offered, refused work included: Demand / Capacity is what an
	// autoscaler needs, because shedding hides load from the CPU.
	Capacity, Demand float64
}

// Stats returns a snapshot. It costs a few microseconds and copies about 10 KB:
// for scraping, not for each request.
func (l *Limiter) Stats() Stats {
	l.endWindow(l.now())
	now := l.enter()
	core := l.statsCall(now)
	core.Arrivals += l.gone
	core.Outcomes[Cancelled] += l.gone
	core.Refusals[Client] += l.gone
	s := Stats{
		Stats:    core,
		Name:     l.Name(),
		Observe:  l.observe,
		Wait:     l.wait,
		Capacity: core.Derivation.Rate,
		Demand:   core.Offered,
	}
	if l.observe {
		s.Stats, s.Shadow = l.real.stats(core), core
	}
	l.leave(now)
	for o := range s.Service {
		s.Service[o] = l.rec.histogram(Outcome(o))
	}
	return s
}
