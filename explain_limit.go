package goodput

import (
	"fmt"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// explainLimit says what the limit is and why: when it last moved and why, when its law was
// asked, and whether it has found the capacity; or, of a fixed one, that it was measured
// for another service.
func explainLimit(f *facts, s *Stats, law limit.Law) {
	f.add("limit", "%d (%v); %d in use by %s", s.Limit, law, s.InUse, plural(s.Running, "request"))
	switch {
	case s.LimitHeld:
		f.also("held: everything runs at once, so what is measured does not follow from a limit, and none can be found by watching; counted is what one of %d would do", s.Limit)
	case admission.Moves(law):
		search := ""
		if s.LimitSearch {
			search = ", and still searches for the capacity"
		}
		f.also("%s; the law was asked %v ago%s", moved(s), brief(s.LimitAsked), search)
		if s.LimitFloored > 0 {
			f.also("it has stood at its minimum of %d for %v while more was offered than that serves", s.LimitMin, short(s.LimitFloored))
		}
	case s.LimitChanges > 0:
		f.also("%d until it was set %v ago", s.LimitFrom, brief(s.LimitMoved))
	}
	if _, fixed := law.(limit.Fixed); fixed && s.Derivation.Drifted && !s.Unlimited {
		f.also("drift: a unit is held for %v, and %v was recorded when the limit was chosen: choose it anew, or let limit.Auto find it; a deeper queue would only add latency",
			short(s.Derivation.Mean), short(s.Derivation.Declared))
	}
	if s.Dropped > 0 {
		were := "were"
		if s.Dropped == 1 {
			were = "was"
		}
		f.also("%d %s refused by what is behind the limit, or did not reach it", s.Dropped, were)
	}
}

// explainMeasured says of what the service times are that all of the arithmetic is about, if that is not
// just the work under this limit.
func explainMeasured(f *facts, s *Stats) {
	switch {
	case s.Unlimited:
		f.add("measured", "without a limit, %d in use where %d may be: the depth, what can be served and the load follow from that, and are nothing to scale by", s.InUse, s.Limit)
	case s.Excess > 0:
		f.add("measured", "before: what runs now, with %d that no limit has admitted, says nothing of the service under one", s.Excess)
	}
}

func moved(s *Stats) string {
	if s.LimitChanges == 0 {
		return "it has not moved yet"
	}
	text := fmt.Sprintf("moved from %d %v ago", s.LimitFrom, brief(s.LimitMoved))
	if s.LimitWhy != "" {
		text += ": " + s.LimitWhy
	}
	return text
}
