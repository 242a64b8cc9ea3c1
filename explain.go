package goodput

import (
	"fmt"
	"strings"
	"time"

	"github.com/goodput/goodput/admission"
)

// explainDepth has the arithmetic of both depths, and says why the one in force is less.
func explainDepth(f *facts, s *Stats) {
	f.add("depth", "%s", s.Derivation)
	if s.Depth >= s.Derivation.Depth {
		return
	}
	busy := "the slots busy"
	if s.rateBinds() {
		busy = "the allowance in use"
	}
	f.also("%d in force, what keeps %s at load %.3g; more would only add latency", s.Depth, busy, s.Load)
}

// busier reports whether more is offered than over the last minutes, and no less completed: by a quarter,
// as package admission has it where it looks for what has slowed.
func (s *Stats) busier() bool {
	const by = 1.25
	return s.OfferedBefore > 0 && s.Demand >= by*s.OfferedBefore && by*s.CompletedNow >= s.CompletedBefore
}

// explainHeld says for how long a unit is held beside the last minutes, and which part of that is not the
// service's own: that is nothing until a dependency has been marked.
func explainHeld(f *facts, s *Stats) {
	about := len(*f)
	say := func(format string, of ...any) {
		if len(*f) == about {
			f.add("held", format, of...)
			return
		}
		f.also(format, of...)
	}
	switch {
	case s.Baseline > 0 && s.SlowedBy > 0:
		now := time.Duration(s.SlowedBy * float64(s.Baseline))
		verdict := "as is usual"
		switch {
		case s.Slowed:
			verdict = slowedWhy + "; neither more load nor a higher limit nor larger sizes are why"
		case s.SlowedBy > 1.25 && s.busier():
			verdict = fmt.Sprintf("%s/s come where %s/s did, and it answers slower: the limit may be above what the resource does at once, and work queues behind it",
				perSecond(s.Demand), perSecond(s.OfferedBefore))
		case s.SlowedBy > 1.25 || s.SlowedBy < 0.8:
			verdict = "which is not called slow: it has not lasted, or the load, the limit or the sizes are why"
		}
		if s.SlowedBy < 0.8 {
			verdict = "faster than usual"
		}
		say("a unit is held for %v now, and was for %v over the last minutes, %.2fx: %s", brief(now), brief(s.Baseline), s.SlowedBy, verdict)
	case s.Baseline > 0:
		say("a unit was held for %v over the last minutes that anything ran", brief(s.Baseline))
	}
	if hold := s.Derivation.Mean; s.Elsewhere >= 0.001 && hold > 0 {
		away := time.Duration(s.Elsewhere * float64(hold))
		say("%v on average, %v of it (%.0f %%) downstream of this limiter: not its own time, and no reason to lower the limit",
			short(hold), short(away), 100*s.Elsewhere)
	}
}

func explainQueue(f *facts, s *Stats) {
	text := fmt.Sprintf("%d waiting", s.Waiting)
	if s.Waiting > 0 {
		text += fmt.Sprintf(", cost %d, %d bytes, the oldest for %v", s.WaitingCost, s.WaitingBytes, s.Age.Round(time.Millisecond))
	}
	f.add("queue", "%s", text)
}

// explainOrder says who goes first, and why it is so.
func explainOrder(f *facts, s *Stats, configured Order) {
	d := &s.Derivation
	// As the core has it: the queue has stood for what the objective leaves for waiting, at
	// least a mean service, and whoever is first would be late (admission, order).
	patience := min(max(d.Objective-d.Service, d.Mean), time.Second)
	queue, stands := "the queue", s.Stats
	if s.Observe { // then only the shadow has one
		queue, stands = "the queue that there would be", s.Shadow
	}
	var why string
	switch {
	case configured != admission.Auto:
		why = "the configuration says so (Order)"
	case d.Sizes == admission.SizeTrusted:
		why = "sizes tell how long requests take, so it is known who would be late"
	case s.Order == FIFO && stands.Waiting == 0:
		why = "nobody waits"
	case s.Order == FIFO:
		why = fmt.Sprintf("%s has stood for %v, and whoever is first still makes the objective; it takes %v for another order", queue, short(stands.Stood), short(patience))
	case s.Order == EDF:
		why = fmt.Sprintf("%s has stood for %v, more than %v, and deadlines differ; fifo again once it has drained", queue, short(stands.Stood), short(patience))
	default:
		why = fmt.Sprintf("%s has stood for %v, more than %v, and who came first would be late: who came last is not; fifo again once it has drained", queue, short(stands.Stood), short(patience))
	}
	f.add("order", "%v: %s", s.Order, why)
}

func explainLoad(f *facts, s *Stats) {
	f.add("load", "%.2f over the last %v, fading: %s/s offered, %s/s can be served",
		s.Load, s.Derivation.Objective, perSecond(s.Demand), perSecond(s.Capacity))
}

// explainLatency compares the latency with the objective. It is that of all requests so far.
func explainLatency(f *facts, s *Stats) {
	d := &s.Derivation
	q, known := s.Latency.Quantile(d.Percentile)
	if !known {
		f.add("latency", "no data: nothing that was timed has ended")
		return
	}
	p50, _ := s.Latency.Quantile(0.5)
	verdict := "within"
	if q > d.Objective {
		verdict = "above"
	}
	f.add("latency", "p%.4g %v of all that got a slot so far, %s the objective of %v; p50 %v", 100*d.Percentile, brief(q), verdict, d.Objective, brief(p50))
}

// explainEnds says how requests ended so far.
func explainEnds(f *facts, s *Stats) {
	f.add("ended", "%d of %d arrivals%s", ended(s), s.Arrivals, counts(s.Outcomes[:], func(i int) string { return Outcome(i).String() }))
	if refused := counts(s.Refusals[:], func(i int) string { return Reason(i).String() }); refused != "" {
		again := fmt.Sprintf("retry after %v", s.RetryAfter)
		if s.Draining {
			again = "another instance may take what comes now"
		}
		f.add("refused", "%s; %s", strings.TrimPrefix(refused, ": "), again)
	}
	if !s.Observe {
		return
	}
	would := counts(s.Shadow.Refusals[:], func(i int) string {
		if Reason(i) == Client {
			return "waiting when it ended" // it really ran, and was faster than the shadow's queue
		}
		return Reason(i).String()
	})
	if would == "" {
		would = ": nobody"
	}
	f.add("observe", "nothing is refused; would have been%s", would)
}

// perSecond is a number per second to three figures, without an exponent.
func perSecond(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func ended(s *Stats) (n uint64) {
	for _, c := range s.Outcomes {
		n += c
	}
	return n
}

// counts lists those that are not zero, each after a space, all after a colon.
func counts(n []uint64, name func(int) string) string {
	var b strings.Builder
	for i, c := range n {
		if c > 0 {
			fmt.Fprintf(&b, " %s %d", name(i), c)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return ":" + b.String()
}
