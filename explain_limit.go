package goodput

import (
	"fmt"
	"strings"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// explainLimit says why the limit is what it is: when it last moved and why, when its law was
// asked, and whether it has found the capacity; or, of a fixed one, that it was measured
// for another service.
func explainLimit(b *strings.Builder, s *Stats, law limit.Law) {
	switch {
	case s.LimitHeld:
		fmt.Fprintf(b, "           held: everything runs at once, so what is measured does not follow from a limit, and none can be found by watching; counted is what one of %d would do\n", s.Limit)
	case admission.Moves(law):
		fmt.Fprintf(b, "           %s; the law was asked %v ago", moved(s), short(s.LimitAsked))
		if s.LimitSearch {
			b.WriteString(", and still searches for the capacity")
		}
		b.WriteString("\n")
	case s.LimitChanges > 0:
		fmt.Fprintf(b, "           %d until it was set %v ago\n", s.LimitFrom, short(s.LimitMoved))
	}
	if _, fixed := law.(limit.Fixed); fixed && s.Derivation.Drifted {
		fmt.Fprintf(b, "           drift: a unit is held for %v, and %v was recorded when the limit was chosen: choose it anew, or let limit.Auto find it; a deeper queue would only add latency\n",
			short(s.Derivation.Mean), short(s.Derivation.Declared))
	}
	if s.Dropped > 0 {
		fmt.Fprintf(b, "           %d were refused by what is behind the limit, or did not reach it\n", s.Dropped)
	}
}

func moved(s *Stats) string {
	if s.LimitChanges == 0 {
		return "it has not moved yet"
	}
	text := fmt.Sprintf("moved from %d %v ago", s.LimitFrom, short(s.LimitMoved))
	if s.LimitWhy != "" {
		text += ": " + s.LimitWhy
	}
	return text
}
