package plan

import (
	"errors"
	"fmt"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// An Input is what somebody knows about one limiter.
type Input struct {
	Limit   int     // requests that run at once: 1 to limit.Max. Required
	Service Service // required, unless Classes say it
	Assumed bool    // nobody said the shape of Service: the plan says so

	// Classes are several kinds of work behind the one limit, instead of Service.
	Classes []Class

	Objective  time.Duration // of wait and service at Percentile: 1 ms to 24 h; 0 means Deadline, and 1 s without one
	Percentile float64       // 0.5 to 0.999; 0 means 0.99
	Deadline   time.Duration // when the caller stops caring: 1 ms to 24 h; 0 means Objective

	Burst        Burst // 0: twice the capacity, for as long as the depth can take it
	RequestBytes int64 // held in memory by a request: 1 to 2^38, 256 GiB, of which 2^24 waiting fit an int64; 0: not known
	Depth        int   // the queue as it is: 1 to Most; 0: not known
	Proposed     int   // the queue as somebody wants it, likewise

	Attempts      int           // of a client, in all: 1 to 100; 0 means 1
	RetryInterval time.Duration // after which a client tries again; 0: not known
	Loop          time.Duration // how often the limit is decided; 0 means as goodput does

	within *inside // what a slot is held for beyond the own work; nil: nothing
}

// own is the work of the service itself.
func (in Input) own() *work {
	if len(in.Classes) == 0 {
		return mix([]Class{{Service: in.Service, Share: 1}})
	}
	return mix(in.Classes)
}

// held is what slots are held for, and the same in words.
func (in Input) held() (*work, string) {
	if in.within == nil {
		return in.own(), describe(in.Classes)
	}
	return in.within.work, brief(in.within.work.mean) + " held: " + in.within.words
}

// A Burst is a load that lasts: Factor times the completion rate, for Length.
type Burst struct {
	Factor float64 // above 1, to 1000
	Length time.Duration
}

// Validate returns one sentence about the first thing that is wrong, or nil.
func (in Input) Validate() error {
	if in.Limit < 1 || in.Limit > limit.Max {
		return fmt.Errorf("limit %d is out of range: 1 to %d", in.Limit, limit.Max)
	}
	if len(in.Classes) == 0 {
		if err := in.Service.Validate(); err != nil {
			return err
		}
	}
	for _, c := range in.Classes {
		if err := c.Service.Validate(); err != nil {
			return fmt.Errorf("class %s: %w", c.Name, err)
		}
		if !(c.Share > 0 && c.Share <= 1e9) {
			return fmt.Errorf("class %s: share %v is out of range: above 0", c.Name, c.Share)
		}
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"objective", in.Objective}, {"deadline", in.Deadline}, {"burst length", in.Burst.Length}, {"retry interval", in.RetryInterval}, {"loop", in.Loop}} {
		if d.v != 0 && (d.v < time.Millisecond || d.v > admission.MaxObjective) {
			return fmt.Errorf("%s %v is out of range: 1ms to 24h", d.name, d.v)
		}
	}
	if p := in.Percentile; p != 0 && !(p >= 0.5 && p <= 0.999) {
		return fmt.Errorf("percentile %v is out of range: 0.5 to 0.999", p)
	}
	if f := in.Burst.Factor; f != 0 && !(f > 1 && f <= 1000) {
		return fmt.Errorf("burst %vx is out of range: above 1x, what is more than the service can do, to 1000x", f)
	}
	if (in.Burst.Factor == 0) != (in.Burst.Length == 0) {
		return errors.New("a burst has a factor and a length, such as 2x:1s")
	}
	if in.RequestBytes < 0 || in.RequestBytes > 1<<38 {
		return fmt.Errorf("request bytes %d are out of range: 1 to 2^38, 256 GiB", in.RequestBytes)
	}
	if in.Depth < 0 || in.Depth > Most || in.Proposed < 0 || in.Proposed > Most {
		return fmt.Errorf("a depth is out of range: 1 to %d", Most)
	}
	if in.Attempts < 0 || in.Attempts > 100 {
		return fmt.Errorf("attempts %d are out of range: 1 to 100", in.Attempts)
	}
	return nil
}

// defaultObjective is the objective of a limiter that is told nothing.
const defaultObjective = admission.DefaultObjective

// defaulted says in a sentence which of the two latencies nobody gave.
func (in Input) defaulted() string {
	switch {
	case in.Objective == 0 && in.Deadline == 0:
		return fmt.Sprintf("No objective was given: it is taken as %v, as goodput does, and so is the deadline.", defaultObjective)
	case in.Objective == 0:
		return "No objective was given: it is taken as the deadline."
	case in.Deadline == 0:
		return "No deadline was given: it is taken as the objective."
	}
	return ""
}

// withDefaults fills what was left out.
func (in Input) withDefaults() Input {
	first := func(v ...time.Duration) time.Duration {
		for _, d := range v {
			if d != 0 {
				return d
			}
		}
		return 0
	}
	deadline := in.Deadline
	in.Deadline = first(deadline, in.Objective, defaultObjective)
	in.Objective = first(in.Objective, deadline, defaultObjective)
	if in.Percentile == 0 {
		in.Percentile = admission.DefaultPercentile
	}
	if len(in.Classes) == 0 {
		in.Classes = []Class{{Service: in.Service, Share: 1}}
	}
	in.Attempts = max(in.Attempts, 1)
	if in.Loop == 0 {
		in.Loop = min(max(in.Objective/8, 5*time.Millisecond), 100*time.Millisecond)
	}
	return in
}
