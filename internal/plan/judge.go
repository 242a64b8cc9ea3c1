package plan

import "fmt"

// A Judgement is what a queue of some depth does, once it is full: first come,
// first served, and nobody dropped on the way, as most queues are.
type Judgement struct {
	Depth       int     `json:"depth"`
	LastWait    float64 `json:"mean_wait_seconds"`       // of the last in line: depth / completion rate
	P99Response float64 `json:"p99_response_seconds"`    // of the last in line, at the percentile
	InObjective float64 `json:"in_objective_share"`      // chance of the last in line
	InTime      float64 `json:"in_time_share"`           // chance of the last in line to meet the deadline
	FillSeconds float64 `json:"fills_at_3x_seconds"`     // until it is full at three times the capacity
	Absorbed    float64 `json:"absorbs_2x_seconds"`      // of twice the capacity
	Waiting     int64   `json:"waiting_bytes,omitempty"` // depth x bytes of a request
	Fits        bool    `json:"fits_objective"`
}

// judge returns nil for a depth that nobody gave.
func (l *Limiter) judge(depth int) *Judgement {
	if depth == 0 {
		return nil
	}
	s := l.server
	return &Judgement{
		Depth: depth, LastWait: float64(depth) / s.rate(), P99Response: s.respond(depth),
		InObjective: 1 - s.late(depth, l.Objective), InTime: 1 - s.late(depth, l.Deadline),
		FillSeconds: float64(depth) / (2 * s.rate()), Absorbed: float64(depth) / s.rate(),
		Waiting: int64(depth) * l.in.RequestBytes,
		Fits:    l.Reachable && depth <= l.Depth,
	}
}

// share says a share of the last in line in words.
func share(p float64) string {
	switch {
	case p < 0.0005:
		return "none"
	case p > 0.9995:
		return "all"
	}
	return percent(p)
}

// compare answers the question of an outage: the queue is full, should it be
// deeper? It returns nothing unless both depths were given.
func (l *Limiter) compare() []string {
	a, b := l.Given, l.Proposed
	if a == nil || b == nil || a.Depth == b.Depth {
		return nil
	}
	grows := 2 * l.CompletionRate // at 3x: offered 3, served 1
	lines := []string{
		fmt.Sprintf("From %d to %d the last in line waits %s instead of %s; in time of those who take the last place: %s instead of %s.",
			a.Depth, b.Depth, brief(b.LastWait), brief(a.LastWait), share(b.InTime), share(a.InTime)),
	}
	if b.Depth > a.Depth {
		lines = append(lines, fmt.Sprintf("It refuses no fewer: at 3x, %s of %s are refused once it is full, which takes %s longer: (%d - %d) / (%s - %s).",
			perSecond(grows), perSecond(3*l.CompletionRate), brief(float64(b.Depth-a.Depth)/grows),
			b.Depth, a.Depth, perSecond(3*l.CompletionRate), perSecond(l.CompletionRate)))
	}
	if l.Memory != nil {
		lines = append(lines, fmt.Sprintf("Memory for those who wait: %s instead of %s.", size(b.Waiting), size(a.Waiting)))
	}
	return lines
}
