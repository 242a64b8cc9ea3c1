package plan

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// A Topology is the limiters that one request passes, from the door inwards, with
// the resources that they share.
type Topology struct {
	Deadline  time.Duration // end to end: 1 ms to 24 h. Required
	Layers    []Layer       // 1 to 100
	Resources []Resource    // at most 100
}

// A Layer is one kind of process with a limiter. Several replicas of it run, each
// with one or more workers, and each worker has the limit for itself.
type Layer struct {
	Name     string
	Limit    int    // of one worker. 0: not limited here
	Replicas Range  // 0: 1
	Surge    int    // replicas more while a release rolls out
	Workers  int    // processes of a replica, or of a host, with a limit each; 0: 1
	Shared   bool   // the workers of a replica share one limit
	Resource string // what it uses, by the name of a Resource
	Holds    int    // slots of the resource that one request holds at once; 0: 1

	Service    Service // its own work, without what it waits for further in; 0: not known
	Assumed    bool
	Classes    []Class // instead of Service
	Objective  time.Duration
	Percentile float64
	Depth      int
	Bytes      int64         // of a request
	Wait       time.Duration // the most that a request waits here; 0: what its depth or its objective say

	Attempts      int     // that it makes, in all, at what is further in; 0: 1
	RetryBudget   float64 // retries per first attempt, 0 to 1; 0: as many as Attempts says
	RetryInterval time.Duration
	Loop          time.Duration // how often its limit is decided; 0: as goodput does
	FanOut        int           // calls that it makes further in, all of which must answer; 0: 1
}

// A Resource is what layers share: a database, a pooler, another service.
type Resource struct {
	Name    string
	Limit   Range // connections or slots; smaller when it is scaled in
	Largest bool  // plan with the largest limit instead of the smallest
}

// A Range is a number that moves, such as that of replicas. The zero value is
// absent.
type Range struct{ Min, Max int }

// String returns "6000" or "112-900".
func (r Range) String() string {
	if r.Min == r.Max {
		return fmt.Sprint(r.Min)
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

// Limit returns the limit that the plan counts on.
func (r Resource) limit() int {
	if r.Largest {
		return r.Limit.Max
	}
	return r.Limit.Min
}

// A Fault is a field of a topology that is wrong.
type Fault struct {
	Path string // such as "layers[1].limit", from the top of the file
	Text string // one sentence
}

// Faults returns everything that is out of range or names nothing.
func (t Topology) Faults() []Fault {
	var out []Fault
	bad := func(path, format string, args ...any) { out = append(out, Fault{path, fmt.Sprintf(format, args...)}) }
	within := func(path, name string, v, lo, hi int) {
		if v < lo || v > hi {
			bad(path, "%s %d is out of range: %d to %d", name, v, lo, hi)
		}
	}
	span := func(path, name string, d time.Duration) {
		if d != 0 && (d < time.Millisecond || d > admission.MaxObjective) {
			bad(path, "%s %v is out of range: 1ms to 24h", name, d)
		}
	}
	span("deadline", "deadline", t.Deadline)
	if t.Deadline == 0 {
		bad("deadline", "deadline is missing: when the caller at the door stops caring, such as 2s")
	}
	if n := len(t.Layers); n < 1 || n > 100 {
		bad("layers", "there are %d layers: 1 to 100 are allowed", n)
	}
	if n := len(t.Resources); n > 100 {
		bad("resources", "there are %d resources: at most 100 are allowed", n)
	}
	names := map[string]bool{}
	for i, r := range t.Resources {
		at := fmt.Sprintf("resources[%d]", i)
		if r.Name == "" || names[r.Name] {
			bad(at+".name", "resource %q needs a name of its own", r.Name)
		}
		names[r.Name] = true
		within(at+".limit", "limit", r.Limit.Min, 1, 1<<30)
		within(at+".limit", "limit", r.Limit.Max, r.Limit.Min, 1<<30)
	}
	seen := map[string]bool{}
	for i, l := range t.Layers {
		at := fmt.Sprintf("layers[%d]", i)
		if l.Name == "" || seen[l.Name] {
			bad(at+".name", "layer %q needs a name of its own", l.Name)
		}
		seen[l.Name] = true
		if l.Resource != "" && !names[l.Resource] {
			bad(at+".resource", "resource %q is not among the resources", l.Resource)
		}
		if l.Resource != "" && l.Limit == 0 {
			bad(at+".limit", "limit is missing: without one the layer takes all of %s that it can get", l.Resource)
		}
		within(at+".limit", "limit", l.Limit, 0, limit.Max)
		within(at+".replicas", "replicas", l.Replicas.Min, 0, 1e6)
		within(at+".replicas", "replicas", l.Replicas.Max, l.Replicas.Min, 1e6)
		within(at+".surge", "surge", l.Surge, 0, 1e6)
		within(at+".workers", "workers", l.Workers, 0, 1e4)
		within(at+".holds", "holds", l.Holds, 0, 1000)
		within(at+".attempts", "attempts", l.Attempts, 0, 100)
		within(at+".fan_out", "fan_out", l.FanOut, 0, 1e5)
		within(at+".depth", "depth", l.Depth, 0, Most)
		span(at+".wait", "wait", l.Wait)
		span(at+".objective", "objective", l.Objective)
		span(at+".retry_interval", "retry_interval", l.RetryInterval)
		span(at+".loop", "loop", l.Loop)
		if !(l.RetryBudget >= 0 && l.RetryBudget <= 1) {
			bad(at+".retry_budget", "retry_budget %v is out of range: 0 to 1 retries per first attempt", l.RetryBudget)
		}
		known := l.Service.Mean != 0 || len(l.Classes) > 0
		switch {
		case known && l.Limit == 0:
			bad(at+".limit", "limit is missing: how many requests a worker of %s runs at once", l.Name)
		case !known && l.Objective != 0:
			bad(at+".objective", "objective says nothing without service: how long the work of %s takes", l.Name)
		case !known && l.Depth != 0:
			bad(at+".depth", "depth says nothing without service; without it, say how long a request waits: wait")
		}
		if l.planned() {
			if err := l.input(t.Deadline).Validate(); err != nil && t.Deadline != 0 {
				bad(at, "%v", err)
			}
		}
	}
	return out
}

// planned reports whether enough is known of a layer to plan its limiter.
func (l Layer) planned() bool {
	return l.Limit > 0 && (l.Service.Mean != 0 || len(l.Classes) > 0)
}

// input is the limiter of one worker of the layer.
func (l Layer) input(deadline time.Duration) Input {
	return Input{
		Limit: l.Limit, Service: l.Service, Assumed: l.Assumed, Classes: l.Classes,
		Objective: l.Objective, Percentile: l.Percentile, Deadline: deadline,
		Depth: l.Depth, RequestBytes: l.Bytes, RetryInterval: l.RetryInterval, Loop: l.Loop,
	}
}

// replicas returns the fewest and the most that run at once, a release included.
func (l Layer) replicas() (fewest, most int) {
	return max(l.Replicas.Min, 1), max(l.Replicas.Max, 1) + l.Surge
}

// limits returns how many workers of a replica have a limit of their own.
func (l Layer) limits() int {
	if l.Shared {
		return 1
	}
	return max(l.Workers, 1)
}

// holds returns how many slots of its resource a request holds at once.
func (l Layer) holds() int { return max(l.Holds, 1) }

// fanOut and attempts return at least 1.
func (l Layer) fanOut() int   { return max(l.FanOut, 1) }
func (l Layer) attempts() int { return max(l.Attempts, 1) }
