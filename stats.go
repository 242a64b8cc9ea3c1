package goodput

import (
	"time"

	"github.com/goodput/goodput/admission"
)

// Indices of Stats.Wait: what became of those that waited.
const (
	WaitAdmitted  = iota // they got a slot
	WaitRefused          // refused while waiting: expired, doomed, displaced, wait bound, draining
	WaitCancelled        // the caller left

	waits = WaitCancelled + 1
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

	// Shadow is what would have been decided about the requests that were observed: those that
	// came in observe mode, or waited when that was switched on. The embedded Stats is what
	// really happened to these and all others, where InUse may exceed Limit. The counters of
	// both never fall, and the equation holds in both, however often the mode is switched.
	Shadow admission.Stats

	// Excess is the cost that runs because it was observed and the shadow has not admitted it, as yet
	// or at all. While it only observes that is how it should be. Afterwards InUse may exceed Limit by
	// it, until what it is of has ended.
	Excess int

	// Unlimited says that what is derived from service times may follow from work that ran beside more
	// than the limit, as it observes: Derivation, Capacity, Load, Depth and what the shadow decides.
	// They are nothing to scale by then. It is so from the first that is in Excess until that
	// has faded, and not where there were 100 samples before it observed: then all of these go on from what was known. It
	// is over when the limiter decides again, which begins with what a new one believes.
	Unlimited bool

	// Wait is the time in the queue, of those that were in it: WaitAdmitted,
	// WaitRefused, WaitCancelled. Of those that were observed it is the shadow's.
	Wait [waits]Histogram

	// Service is the time from slot to end by Outcome, nil where there was none. Of those that
	// need no clock one in so many is timed, and counts for all. Streams and upgraded
	// connections (Slot.Unsampled, Slot.Detach) are not in it.
	Service [admission.Outcomes]*Histogram

	// Latency is the time from arrival to end, the wait included, of all that got a slot and
	// were timed, whatever their outcome: what Config.Objective is about. Streams and
	// upgraded connections, which last as long as their client likes, are not in it.
	Latency Histogram

	// Refusing says that somebody was refused for want of capacity within the last objective, or
	// the last second if that is longer: as queue_full, bytes_full, no_budget, shed, displaced,
	// wait_bound or doomed. False while it only observes.
	Refusing bool

	// Capacity is how much cost per second can be served, by the slots and the allowance,
	// and Demand how much is offered, refused work included: Demand / Capacity is what an
	// autoscaler needs, because shedding hides load from the CPU. Of a limiter that has only ever
	// observed, while more runs at once than the limit, Capacity is too low and Load too high: see Unlimited.
	Capacity, Demand float64

	// Pressure is the level of Config.Pressure that the law was told last: 0 to 100, and 1
	// is too much. PressureAbsent says that there is none, because the signal has nothing
	// to say. PressureSays is the line with its numbers, or why it has none, and ""
	// without a signal.
	Pressure       float64
	PressureAbsent bool
	PressureSays   string
}

// Stats returns a snapshot. It costs a few microseconds and copies about 10 KB:
// for scraping, not for each request.
func (l *Limiter) Stats() Stats {
	l.endWindow(l.now())
	now := l.enter()
	core := l.statsCall(now)
	if l.member != nil {
		core.InUse -= l.member.stake.Elsewhere() // of its share, in use in others
	}
	real, shadow := l.apart(now, core)
	if real.Waiting == 0 {
		real.Stood = 0 // who is observed waits in the shadow alone
	}
	for reason, n := range l.gone {
		real.Arrivals += n
		real.Outcomes[Cancelled] += n
		real.Refusals[reason] += n
	}
	s := Stats{
		Stats:     real,
		Shadow:    shadow,
		Name:      l.Name(),
		Observe:   l.observe.Load(),
		Excess:    l.watched.excess(),
		Unlimited: l.watched.unlimited(now),
		Wait:      l.wait,
		Capacity:  core.Derivation.Rate,
		Demand:    core.Offered,
	}
	s.Refusing = l.refused.lately(now, max(s.Derivation.Objective, time.Second)) && !s.Observe
	l.leave(now)
	if l.member != nil {
		s.LimitMin, s.LimitMax = l.member.group.bounds(l.member.index)
	}
	l.settings.Load().pressure.tell(&s)
	for o := range s.Service {
		s.Service[o] = l.rec.histogram(Outcome(o))
	}
	l.rec.latency(&s.Latency)
	return s
}
