package verify

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// When a run is no answer. The rule: whatever can be the doing of the generator, of the
// network or of the settings voids the run; whatever can only be the doing of the service is
// judged. So a service that refuses everything, breaks, or serves too few although it could
// serve more has its answer, which is no.
//
// Of a run that is void only this stands: a status or a body that is none of the idle service,
// and a Retry-After that no client can obey. Both are on the wire, and no load, late or on
// time, excuses them. Whatever counts or measures time does not stand.

// minSlots is how many must get a slot in a step that is judged: 5 of them are beyond the 99th
// percentile, and with fewer it is the luck of a few.
const minSlots = beyond * 100

// minServed is the part of the capacity that a step must serve at least.
const minServed = minGoodput

// maxAbove is how much more than the capacity may be in time before it is no capacity. 5 % are
// the error of the search at 400 answers; twice that is not.
const maxAbove = 1.1

// minCalm is how long the half load after a step must last to say that nobody recovered: the
// bound of recovery, and the second of which 95 % are to be in time.
const minCalm = maxRecovery + time.Second

// void returns one sentence about why the run is no answer, or "".
func (e evidence) void() string {
	c := e.Capacity.PerSecond
	switch {
	case math.IsNaN(c) || math.IsInf(c, 0) || c < 0:
		return fmt.Sprintf("the capacity is %v, which is no rate", c)
	case c == 0:
		return e.silent()
	case len(e.Steps) == 0:
		return "no load was run after the capacity was found"
	case len(e.ordered) < len(e.Steps):
		return "a load has no result: the run did not come to its end"
	case len(e.past()) == 0:
		return "no load was above the capacity: --steps needs one above 1"
	case len(e.below()) == 0:
		return fmt.Sprintf("no load was at half of the capacity or less: --steps needs one of at most %v", halfLoad)
	}
	for _, s := range e.past() {
		if why := e.noCapacity(s); why != "" {
			return why
		}
	}
	return e.noOverload()
}

// noOverload returns why no load was long enough for its height. A queue without a bound holds
// (load - 1) x length of work at the end of one; while that is less than the deadline everybody
// is in time, and nothing shows whether there is a bound.
func (e evidence) noOverload() string {
	past := e.past()
	s := past[len(past)-1]
	length, deadline := s.Result.Plan.Duration, s.Result.Plan.Deadline
	queue := time.Duration((s.Load - 1) * float64(length))
	if !(queue < deadline) {
		return ""
	}
	return fmt.Sprintf("at %s for %s a queue without a bound would be %s long at the end, and callers stay for %s: nothing shows whether there is a bound. "+
		"It takes a higher load, or --duration %s", loadOf(s.Load), span(length), span(queue.Round(time.Millisecond)), span(deadline),
		time.Duration(math.Ceil(deadline.Seconds()/(s.Load-1)))*time.Second)
}

// valid returns the loads that say something, and why each of the others does not.
func (e evidence) valid() (rest evidence, left []string) {
	rest = evidence{Report: e.Report}
	for _, s := range e.ordered {
		if why := e.voidStep(s); why != "" {
			left = append(left, why)
		} else {
			rest.ordered = append(rest.ordered, s)
		}
	}
	return rest, left
}

// silent tells a service that refuses or breaks everything, which is a no, from a search that
// found nothing since the generator was late or nobody answered at all.
func (e evidence) silent() string {
	all := e.sights()
	switch {
	case len(all) == 0 && e.Idle.Requests == 0:
		return "the target was asked nothing"
	case len(all) == 0: // it refused each of the idle requests
		return ""
	case len(e.Idle.Status) == 0 && deaf(all[0].Result):
		return fmt.Sprintf("the target answered nothing: %v", all[0].FirstError)
	}
	if why := voidBut(all[0].Result); why != "" {
		return all[0].at + " " + why
	}
	return ""
}

// voidStep returns why a step and the calm after it say nothing.
func (e evidence) voidStep(s Step) string {
	at := "at " + loadOf(s.Load)
	if deaf(s.Result) && (s.Calm == nil || deaf(s.Calm)) {
		return fmt.Sprintf("%s the target answered nothing, nor after it: %v. If it was the load that ended it, that is your answer, "+
			"but from here it looks like a target that was switched off", at, s.Result.FirstError)
	}
	if why := voidBut(s.Result); why != "" {
		return at + " " + why
	}
	if s.Load <= 1 {
		return ""
	}
	if s.Calm == nil {
		return "the load after " + loadOf(s.Load) + " is missing: nothing is known of its recovery"
	}
	if why := voidBut(s.Calm); why != "" {
		return "after " + loadOf(s.Load) + " " + why
	}
	if s.Recovery < 0 && s.Calm.Plan.Duration < minCalm {
		return fmt.Sprintf("after %s half of the capacity was offered for %s only: that nobody recovered within it says nothing about %s. It takes %s",
			loadOf(s.Load), span(s.Calm.Plan.Duration), span(maxRecovery), span(minCalm))
	}
	return e.tooFew(s)
}

// tooFew returns why a load above the capacity has too small numbers.
func (e evidence) tooFew(s Step) string {
	c := e.Capacity.PerSecond
	// A service that could have served enough and did not has its answer: goodput is not met.
	need, short := tooShort(c, s.Result.Plan.Duration)
	if n := slots(s.Result); short && n < minSlots {
		return fmt.Sprintf("at %s only %s got a slot, and a p99 takes %d: at a capacity of %s/s that needs --duration %v",
			loadOf(s.Load), digits(n), minSlots, asRate.show(c), need)
	}
	return ""
}

// tooShort reports that a load of that length may have too few that get a slot, though the
// service serves as much of its capacity as it must, and the length that would do.
func tooShort(capacity float64, length time.Duration) (need time.Duration, short bool) {
	served := minServed * capacity
	return time.Duration(math.Ceil(minSlots/served)) * time.Second, served*length.Seconds() < minSlots
}

// noCapacity returns why the capacity is none, if so much was in time at a load above it.
func (e evidence) noCapacity(s Step) string {
	c := e.Capacity.PerSecond
	is := s.Result.Goodput(c) * c
	if is <= maxAbove*c || e.voidStep(s) != "" {
		return ""
	}
	whose, then := "that was found", "Run this again, so that it is found anew, or say what it is with --capacity"
	if e.Capacity.Given {
		whose, then = "that was given", "Give the true one with --capacity, or none, so that it is found"
	}
	return fmt.Sprintf("at %s %s/s were in time, more than the capacity %s, %s/s: the loads were less than they are called, "+
		"so nobody knows what happens above it. %s", loadOf(s.Load), asRate.show(is), whose, asRate.show(c), then)
}

// deaf reports that nothing was answered.
func deaf(r *load.Result) bool { return r.Errors > 0 && r.Errors == r.Sent }

// voidBut is Result.Void but for a target that answers nothing, which is for the loads around
// it to say, and with what the machine of the generator ran out of.
func voidBut(r *load.Result) string {
	if r.Late == nil {
		return "nothing was measured"
	}
	for _, own := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL} {
		if (portion{r.Errors, r.Offered}).is() > maxLost && errors.Is(r.FirstError, own) {
			return fmt.Sprintf("the load was not offered: this machine has no more connections (%v)", r.FirstError)
		}
	}
	answering := *r
	answering.Errors = 0
	return answering.Void()
}
