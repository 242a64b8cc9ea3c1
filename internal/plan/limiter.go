package plan

import (
	"fmt"
	"math"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/theory"
)

// Loads are the overloads that every plan looks at, in multiples of what the
// service can do: a bad day, a retry storm, an outage elsewhere.
var Loads = []float64{1.5, 3, 10}

// A Limiter is the plan of one limit with its queue. Times are in seconds, rates
// per second, depths in requests, shares from 0 to 1.
type Limiter struct {
	Limit          int     `json:"limit"`
	Service        string  `json:"service"` // in words
	ServiceAssumed bool    `json:"service_shape_assumed"`
	ServiceMean    float64 `json:"service_mean_seconds"`
	ServiceP99     float64 `json:"service_quantile_seconds"` // at Percentile
	ServiceCV      float64 `json:"service_cv"`
	Objective      float64 `json:"objective_seconds"`
	Percentile     float64 `json:"percentile"`
	Deadline       float64 `json:"deadline_seconds"`

	CompletionRate float64 `json:"completion_rate"`     // limit / mean service
	CeilingDepth   int     `json:"ceiling_depth"`       // completion rate x deadline
	RuleDepth      int     `json:"rule_of_thumb_depth"` // completion rate x objective
	RuleP99        float64 `json:"rule_of_thumb_response_seconds"`

	// Depth is the derived depth: the largest whose last place still meets the
	// objective at the percentile. If none does, it is what keeps the slots busy.
	Depth       int     `json:"depth"`
	DepthReason string  `json:"depth_reason"` // as the limiter prints it
	Reachable   bool    `json:"objective_reachable"`
	P99Response float64 `json:"p99_response_seconds"` // at Percentile, of the last place of a full queue of Depth
	LastWait    float64 `json:"mean_wait_seconds"`    // of the last place: Depth / completion rate

	DeadlineDepth     int  `json:"deadline_depth"` // the same for the deadline
	DeadlineReachable bool `json:"deadline_reachable"`

	Standing    []Standing    `json:"standing"`
	Expected    []Expected    `json:"expected"`
	Memory      *Memory       `json:"memory,omitempty"`
	Burst       BurstAnswer   `json:"burst"`
	Given       *Judgement    `json:"given,omitempty"`        // of the depth as it is
	Proposed    *Judgement    `json:"proposed,omitempty"`     // of the depth as somebody wants it
	Change      []string      `json:"depth_change,omitempty"` // from the one to the other, in sentences
	Retries     *Retries      `json:"retries,omitempty"`
	Sensitivity []Sensitivity `json:"sensitivity"`
	Sizing      Sizing        `json:"sizing"`
	Findings    []Finding     `json:"findings"`

	in        Input
	server    *server
	defaulted string // what nobody said, in a sentence
}

// Standing is the depth to which the core shrinks a queue in an overload that
// lasts.
type Standing struct {
	Load  float64 `json:"load"`
	Depth int     `json:"depth"`
}

// Memory is what requests hold.
type Memory struct {
	Request int64 `json:"request_bytes"`
	Waiting int64 `json:"waiting_bytes"` // depth x request
	Total   int64 `json:"total_bytes"`   // with those that run
}

// BurstAnswer is what a burst does to the queue.
type BurstAnswer struct {
	Factor   float64 `json:"factor"`
	Length   float64 `json:"seconds"`          // as asked; 0: nothing was asked
	Offered  float64 `json:"offered_rate"`     // factor x completion rate
	Needed   int     `json:"needed_depth"`     // (offered - completion rate) x length
	Absorbed float64 `json:"absorbed_seconds"` // depth / (offered - completion rate)
	Refused  float64 `json:"refused"`          // requests of the burst that do not fit
	Share    float64 `json:"refused_share"`    // of the burst
}

// Retries is what the clients of one limiter add to an overload.
type Retries struct {
	Attempts int     `json:"attempts"`
	Load     []Retry `json:"load"`
}

// A Retry is a load that becomes another when the refused try again.
type Retry struct {
	Load    float64 `json:"load"`
	Becomes float64 `json:"becomes"`
}

// Sensitivity is the plan again with one assumption changed.
type Sensitivity struct {
	Case        string  `json:"case"`
	Rate        float64 `json:"completion_rate"`
	Depth       int     `json:"depth"`
	Reachable   bool    `json:"objective_reachable"`
	P99Response float64 `json:"response_seconds"` // if the depth stays that of the plan
	Slots       int     `json:"slots_for_same_rate"`
}

// Sizing is the completion rate computed from the mean and, wrongly, from the
// percentile of the service time.
type Sizing struct {
	SlotsByMean     int     `json:"slots_by_mean"`     // rate x mean, for the completion rate
	SlotsByQuantile int     `json:"slots_by_quantile"` // rate x service at Percentile, for the same
	RateByQuantile  float64 `json:"rate_by_quantile"`  // limit / service at Percentile
}

// New plans one limiter. The error is the sentence of Input.Validate.
func New(in Input) (*Limiter, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	defaulted := in.defaulted()
	in = in.withDefaults()
	work, said := in.held()
	s := newServer(work, in.Limit, in.Percentile)
	l := &Limiter{
		Limit: in.Limit, Service: said, ServiceAssumed: in.Assumed,
		ServiceMean: s.mean, ServiceCV: math.Sqrt(s.cv2),
		Objective: in.Objective.Seconds(), Percentile: in.Percentile, Deadline: in.Deadline.Seconds(),
		CompletionRate: s.rate(), in: in, server: s, defaulted: defaulted,
	}
	if err := l.depths(); err != nil {
		return nil, err
	}
	for _, load := range Loads {
		l.Standing = append(l.Standing, Standing{load, min(admission.Standing(float64(in.Limit), load), max(l.Depth, 1))})
	}
	if err := l.expect(); err != nil {
		return nil, err
	}
	if n := in.RequestBytes; n > 0 {
		l.Memory = &Memory{n, n * int64(l.Depth), n * int64(l.Depth+in.Limit)}
	}
	l.burst()
	if in.Attempts > 1 {
		l.Retries = &Retries{Attempts: in.Attempts}
		for _, load := range Loads {
			l.Retries.Load = append(l.Retries.Load, Retry{load, theory.RetryLoad(in.Attempts, load)})
		}
	}
	l.Given, l.Proposed = l.judge(in.Depth), l.judge(in.Proposed)
	l.Change = l.compare()
	if err := l.sensitivity(); err != nil {
		return nil, err
	}
	l.Findings = l.findings()
	return l, nil
}

// depths fills what the core derives.
func (l *Limiter) depths() error {
	s := l.server
	v, err := s.derive(l.in.Objective)
	if err != nil {
		return err
	}
	l.ServiceP99 = v.Service.Seconds()
	// The hair above is for 60 / 0.05 x 2, which is 2399.9999999999995.
	l.CeilingDepth = int(math.Floor(s.rate() * l.Deadline * (1 + 1e-12)))
	l.RuleDepth = int(math.Round(s.rate() * l.Objective))
	l.RuleP99 = s.respond(l.RuleDepth)
	l.Depth, l.Reachable, l.DepthReason = v.Depth, v.Reachable, v.String()
	l.LastWait = float64(l.Depth) / s.rate()
	l.P99Response = s.respond(l.Depth)

	d, err := s.derive(l.in.Deadline)
	if err != nil {
		return err
	}
	l.DeadlineDepth, l.DeadlineReachable = d.Depth, d.Reachable
	if !d.Reachable {
		l.DeadlineDepth = 0
	}
	return nil
}

// burst fills what the queue takes of a burst. A burst of f times the capacity
// grows it by (f - 1) x completion rate, whatever the load was before: the slots
// are busy from its first instant.
func (l *Limiter) burst() {
	b := l.in.Burst
	if b.Factor == 0 {
		b.Factor = 2
	}
	grows := (b.Factor - 1) * l.CompletionRate
	l.Burst = BurstAnswer{
		Factor: b.Factor, Length: b.Length.Seconds(), Offered: b.Factor * l.CompletionRate,
		Absorbed: float64(l.Depth) / grows,
	}
	if b.Length == 0 {
		return
	}
	needed := grows * b.Length.Seconds()
	l.Burst.Needed = int(math.Ceil(needed * (1 - 1e-12)))
	l.Burst.Refused = max(0, needed-float64(l.Depth))
	l.Burst.Share = l.Burst.Refused / (l.Burst.Offered * b.Length.Seconds())
}

// sensitivity plans again with the service half as slow again, and with the
// other shapes that the same mean may have.
func (l *Limiter) sensitivity() error {
	mean := seconds(l.ServiceMean)
	same := func(s Service) *work { return mix([]Class{{Service: s, Share: 1}}) }
	for _, c := range []struct {
		name string
		work *work
	}{
		{"as planned", nil},
		{"service +50 %", l.server.stretched(1.5)},
		{"fixed", same(Service{Mean: mean, Shape: Fixed})},
		{"exponential", same(Service{Mean: mean})},
		{"lognormal CV 2", same(Service{Mean: mean, Shape: Lognormal, CV: 2})},
	} {
		s := l.server
		if c.work != nil {
			s = newServer(c.work, l.Limit, l.Percentile)
		}
		v, err := s.derive(l.in.Objective)
		if err != nil {
			return err
		}
		l.Sensitivity = append(l.Sensitivity, Sensitivity{
			Case: c.name, Rate: s.rate(), Depth: v.Depth, Reachable: v.Reachable,
			P99Response: s.respond(l.Depth), Slots: slotsFor(l.CompletionRate, s.mean),
		})
	}
	// Whoever puts the percentile where the mean belongs pays for a service that is
	// always as slow as its slowest hundredth. Slots are held for the mean; only
	// deadlines are about the percentile.
	l.Sizing = Sizing{
		SlotsByMean: slotsFor(l.CompletionRate, l.ServiceMean), SlotsByQuantile: slotsFor(l.CompletionRate, l.server.alone()),
		RateByQuantile: float64(l.Limit) / l.server.alone(),
	}
	return nil
}

// slotsFor returns the slots that serve rate with a mean service time: rate x
// mean (Little), rounded up. A millionth above is what whole nanoseconds leave.
func slotsFor(rate, mean float64) int { return int(math.Ceil(rate * mean * (1 - 1e-6))) }

// describe says the service in words.
func describe(classes []Class) string {
	if len(classes) == 1 {
		return classes[0].Service.String()
	}
	var total, mean float64
	for _, c := range classes {
		total += c.Share
		mean += c.Share * c.Service.Mean.Seconds()
	}
	text := brief(mean/total) + " mean of"
	for i, c := range classes {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %s (%s)", c.Name, c.Service, percent(c.Share/total))
	}
	return text
}
