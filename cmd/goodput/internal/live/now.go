package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput"
)

// What a limiter has counted since the start does not show an outage of today: after a week in
// which all was well the p99 of all that ever was is within the objective whatever happens. So
// what the program says of a limiter begins with the rates of the last second, and holds the
// latency of the last window against the objective.

// A Now is what the latest tick says of a limiter.
type Now struct {
	View  *View // without what explains
	Stats *goodput.Stats
	at    time.Time
}

// Now returns what the latest tick says of a limiter; nil if there are no rates yet: that takes
// two ticks.
func (h *Hub) Now(l *goodput.Limiter) *Now {
	h.mu.Lock()
	f := h.latest
	h.mu.Unlock()
	if f == nil {
		return nil
	}
	i := slices.IndexFunc(f.snaps, func(s Snapshot) bool { return s.limiter == l })
	if i < 0 {
		return nil
	}
	return f.now(i)
}

// now is of limiter number i. A frame is not changed once it is published.
func (f *frame) now(i int) *Now {
	v := &f.tick.Limiters[i]
	if v.WindowSeconds == 0 { // its first tick
		return nil
	}
	return &Now{v, &f.snaps[i].Stats, f.tick.Time}
}

// stale is from when on a tick is old: two more were missed.
const stale = 3 * interval

// facts are those of an explanation, with what is so now.
func (n *Now) facts(all []goodput.Fact) []goodput.Fact {
	if n == nil {
		return slices.Insert(slices.Clone(all), 0, goodput.Fact{Topic: "rate", Text: "no rates yet: counts are compared once a second"})
	}
	all = slices.Insert(slices.Clone(all), 0, goodput.Fact{Topic: "rate", Text: n.rate()})
	for i := range all {
		if q, known := n.Stats.Latency.Quantile(n.percentile()); all[i].Topic == "latency" && known {
			all[i].Text = fmt.Sprintf("p%.4g %s since the start; the objective is held against the last window, see rate", 100*n.percentile(), brief(q.Seconds()))
		}
	}
	return all
}

func (n *Now) percentile() float64 { return percentileOf(n.Stats) }

// rate is how it goes now:
//
//	offered 1143/s, goodput 460/s (40 % in time), capacity 480/s
//	refused 680/s: quota 590, queue_full 90
//	p99 236ms of the last 10 s, within the objective of 300ms
func (n *Now) rate() string {
	r := &n.View.Rates
	share := "nothing came"
	if r.InTime != nil {
		share = percent(*r.InTime) + " in time"
	}
	lines := []string{fmt.Sprintf("offered %s/s, goodput %s/s (%s), capacity %s/s", figure(r.Offered), figure(r.Goodput), share, figure(n.Stats.Capacity))}
	if age := time.Since(n.at); age > stale {
		lines[0] += fmt.Sprintf("; that was %v ago", age.Round(time.Second))
	}
	switch would := reasonsOf(r.Shadow); {
	case n.Stats.Observe && would == "":
		lines = append(lines, "nobody is refused: it only observes, and would refuse nobody either")
	case n.Stats.Observe:
		lines = append(lines, "nobody is refused: it only observes; would be, per second: "+would)
	case r.Refused > 0:
		lines = append(lines, fmt.Sprintf("refused %s/s: %s", figure(r.Refused), reasonsOf(r.Reasons)))
	default:
		lines = append(lines, "refused: nobody")
	}
	return strings.Join(append(lines, n.latency()), "\n")
}

func (n *Now) latency() string {
	q, objective := n.View.Latency, n.Stats.Derivation.Objective
	if q == nil {
		return fmt.Sprintf("nothing that had a slot ended in the last %.0f s (objective %v)", n.View.WindowSeconds, objective)
	}
	verdict, over := "within", ""
	if q.Target > objective.Seconds() || q.TargetOver {
		verdict = "above"
	}
	if q.TargetOver {
		over = "over "
	}
	return fmt.Sprintf("p%.4g %s%s of the last %.0f s, %s the objective of %v", 100*n.percentile(), over, brief(q.Target), n.View.WindowSeconds, verdict, objective)
}

// reasonsOf lists rates of refusals, the most frequent first. Who left by himself was not refused.
func reasonsOf(rates map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(rates), func(a, b string) int {
		if rates[a] != rates[b] {
			return map[bool]int{true: -1, false: 1}[rates[a] > rates[b]]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		if rates[name] > 0 && name != goodput.Client.String() && name != goodput.Parent.String() {
			parts = append(parts, name+" "+figure(rates[name]))
		}
	}
	return strings.Join(parts, ", ")
}

// figure is a number per second to three figures, without an exponent.
func figure(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// brief is a duration to three figures.
func brief(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	for unit := time.Microsecond; ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
}

// percent is a share of 0 to 1. What is rounded does not say all, or nothing.
func percent(v float64) string {
	switch {
	case v < 1 && v > 0.995:
		return "> 99 %"
	case v > 0 && v < 0.005:
		return "< 1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}
