package goodput

import (
	"fmt"
	"time"
)

// A Condition is what a limiter is doing, in a word that stays the same: for tests, logs and
// whoever counts. Stats.State has it as a sentence, with numbers that do not.
type Condition uint8

// Conditions of a limiter.
const (
	ConditionIdle        Condition = iota // nothing runs and nobody waits
	ConditionBusy                         // slots are free
	ConditionBoundary                     // every slot is busy, and nobody waits
	ConditionBurst                        // somebody waits, which no standing overload is why
	ConditionSaturated                    // more is offered than can be served: the queue is short, and the rest is refused at once
	ConditionSlowed                       // a unit is held for longer than it was, and no more work is why: what it depends on has slowed, or the requests are others
	ConditionSearching                    // every slot is busy, and the law does not know yet whether there may be more
	ConditionUnreachable                  // the service alone takes longer than the objective, and somebody waits
	ConditionAllowance                    // slots are free, and the allowance is used up
	ConditionObserving                    // everything runs, and nothing is refused
	ConditionPaused                       // the limit is 0
	ConditionAbsent                       // there is nothing to run work on: see Limiter.SetPresent
	ConditionDraining                     // newcomers are refused, and who is there is served
	ConditionDrained                      // and that is done
)

var conditionWords = [...]string{
	ConditionIdle: "idle", ConditionBusy: "busy", ConditionBoundary: "boundary", ConditionBurst: "burst",
	ConditionSaturated: "saturated", ConditionSlowed: "slowed", ConditionSearching: "searching",
	ConditionUnreachable: "unreachable", ConditionAllowance: "allowance", ConditionObserving: "observing",
	ConditionPaused: "paused", ConditionAbsent: "absent", ConditionDraining: "draining", ConditionDrained: "drained",
}

// String returns the word used in logs and JSON.
func (c Condition) String() string {
	if int(c) < len(conditionWords) {
		return conditionWords[c]
	}
	return fmt.Sprintf("condition(%d)", uint8(c))
}

// Conditions returns all there are.
func Conditions() []Condition {
	all := make([]Condition, len(conditionWords))
	for i := range all {
		all[i] = Condition(i)
	}
	return all
}

// Condition returns what the limiter is doing: the first of what follows that holds. What an
// operator has done comes before what the load does.
func (s *Stats) Condition() Condition {
	full := s.InUse >= s.Limit
	switch {
	case s.Draining && s.Running == 0 && s.Waiting == 0:
		return ConditionDrained
	case s.Draining:
		return ConditionDraining
	case s.Stats.Absent:
		return ConditionAbsent
	case s.Limit == 0:
		return ConditionPaused
	case s.Load > 1 && s.Waiting == 0 && !full && s.rateBinds():
		return ConditionAllowance
	case s.Running == 0 && s.Waiting == 0:
		return ConditionIdle
	case s.Observe:
		return ConditionObserving
	case s.Slowed:
		return ConditionSlowed
	case !s.Derivation.Reachable && s.Waiting > 0:
		return ConditionUnreachable
	case s.LimitSearch && (s.Waiting > 0 || full):
		return ConditionSearching
	case s.Overload, s.young():
		return ConditionSaturated
	case s.Waiting > 0:
		return ConditionBurst
	case full:
		return ConditionBoundary
	}
	return ConditionBusy
}

// young reports whether more is offered than can be served and refused already, but not for so
// long that the overload stands.
func (s *Stats) young() bool { return s.Refusing && s.Load > 1 && !s.Overload }

// State returns what the limiter is doing in a sentence with numbers.
func (s *Stats) State() string {
	if s.Excess > 0 && !s.Observe {
		return fmt.Sprintf("%s; %d in use began while it observed: the limit holds once they have ended", s.doing(), s.Excess)
	}
	return s.doing()
}

func (s *Stats) doing() string {
	d := &s.Derivation
	switch c := s.Condition(); c {
	case ConditionDraining:
		return fmt.Sprintf("draining: %d run and %d wait, newcomers are refused", s.Running, s.Waiting)
	case ConditionAbsent:
		return fmt.Sprintf("absent: there is nothing to run work on, for %v; %d wait for it", short(s.Stats.AbsentFor), s.Waiting)
	case ConditionPaused:
		return fmt.Sprintf("paused: the limit is 0; %d run and %d wait", s.Running, s.Waiting)
	case ConditionAllowance:
		return fmt.Sprintf("the allowance is used up as it comes, %.6g/s: %s, and what comes beyond it is refused at once",
			d.Allowance.Rate, s.freeWords())
	case ConditionObserving:
		return fmt.Sprintf("observing: %d in use where %d may be, nothing is refused", s.InUse, s.Limit)
	case ConditionSlowed:
		return s.slowedState()
	case ConditionUnreachable:
		return fmt.Sprintf("unreachable: the service alone takes %v at the p%.4g, longer than the objective of %v; the queue only keeps the slots busy",
			short(d.Service), 100*d.Percentile, d.Objective)
	case ConditionSearching:
		return fmt.Sprintf("searching for the capacity: %s, and there may be more", s.busyWords())
	case ConditionSaturated:
		return s.saturatedState()
	case ConditionBurst:
		if s.Refusing {
			return fmt.Sprintf("burst: more came at once than may wait; %s, the rest is refused", s.waitingWords())
		}
		return fmt.Sprintf("burst: the queue absorbs it; %s", s.waitingWords())
	case ConditionBoundary:
		return fmt.Sprintf("at the admission boundary: %s, nobody waits", s.busyWords())
	case ConditionBusy:
		return fmt.Sprintf("busy: %s, nobody waits", s.freeWords())
	default:
		return c.String()
	}
}

func (s *Stats) busyWords() string {
	if s.Limit == 1 {
		return "the one slot is busy"
	}
	return fmt.Sprintf("all of %d slots are busy", s.Limit)
}

func (s *Stats) freeWords() string {
	free, are := s.Limit-s.InUse, "are"
	if free == 1 {
		are = "is"
	}
	return fmt.Sprintf("%d of %s %s free", free, plural(s.Limit, "slot"), are)
}

// plural returns "1 slot", "60 slots".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func (s *Stats) saturatedState() string {
	head := "saturated and doing its job"
	if s.young() {
		head = "saturated" // the queue is still as deep as a burst may fill it
	}
	busy := "the slots are busy"
	if s.rateBinds() {
		busy = "the allowance is used up as it comes"
	}
	return fmt.Sprintf("%s: %.3g times what can be served is offered; %s, %s, the rest is refused at once",
		head, s.Load, busy, s.waitingWords())
}

// waitingWords says how much of the queue is in use. Whoever waits keeps its place when the depth falls.
func (s *Stats) waitingWords() string {
	if s.WaitingCost > s.Depth {
		return fmt.Sprintf("%d may join, %d are left of a longer queue", s.Depth, s.WaitingCost)
	}
	return fmt.Sprintf("%d wait where %d may", s.WaitingCost, s.Depth)
}

// slowedWhy is what may be why a unit is held for longer: a limiter sees that it is, and not what
// it does meanwhile.
const slowedWhy = "what it depends on has slowed, or the requests are others than they were, which sizes would tell apart"

// moreOffered is from where on more is said to be offered than before: the rate that is
// offered is known to about a tenth. See offFloor of package admission.
const moreOffered = 1.1

// slowedState says since what, and what that costs: so much less is completed, where somebody waits.
// It gives no rate that was not measured.
func (s *Stats) slowedState() string {
	now := time.Duration(s.SlowedBy * float64(s.Baseline))
	if s.Baseline <= 0 || now <= 0 {
		return "slowed: units are held for longer than over the last minutes: " + slowedWhy
	}
	text := fmt.Sprintf("slowed: a unit is held %.2gx as long (%v) as over the last minutes (%v): %s", s.SlowedBy, brief(now), brief(s.Baseline), slowedWhy)
	if s.Waiting == 0 && !s.Overload || s.OfferedBefore <= 0 || s.CompletedBefore <= 0 {
		return text
	}
	more := "no more is offered"
	if s.Demand > moreOffered*s.OfferedBefore {
		more = "more is offered as well"
	}
	return text + fmt.Sprintf("; %s/s complete where %s/s did, %d wait, and %s: %s/s come where %s/s did",
		perSecond(s.CompletedNow), perSecond(s.CompletedBefore), s.WaitingCost, more, perSecond(s.Demand), perSecond(s.OfferedBefore))
}

// brief is a duration to three figures.
func brief(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
