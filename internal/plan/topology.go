package plan

import (
	"fmt"
	"strings"
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

// faults collects.
type faults []Fault

func (f *faults) bad(path, format string, args ...any) {
	*f = append(*f, Fault{path, fmt.Sprintf(format, args...)})
}

// within checks the last word of a path.
func (f *faults) within(at, name string, v, lo, hi int) {
	if v < lo || v > hi {
		f.bad(at+"."+name, "%s %d is out of range: %d to %d", name, v, lo, hi)
	}
}

func (f *faults) span(at, name string, d time.Duration) {
	if d != 0 && (d < time.Millisecond || d > admission.MaxObjective) {
		f.bad(at+name, "%s %v is out of range: 1ms to 24h", strings.TrimPrefix(name, "."), d)
	}
}

// Faults returns everything that is out of range or names nothing.
func (t Topology) Faults() []Fault {
	var f faults
	f.span("", "deadline", t.Deadline)
	if t.Deadline == 0 {
		f.bad("deadline", "deadline is missing: when the caller at the door stops caring, such as 2s")
	}
	if n := len(t.Layers); n < 1 || n > 100 {
		f.bad("layers", "there are %d layers: 1 to 100 are allowed", n)
	}
	if n := len(t.Resources); n > 100 {
		f.bad("resources", "there are %d resources: at most 100 are allowed", n)
	}
	resources, layers := map[string]bool{}, map[string]bool{}
	for i, r := range t.Resources {
		at := fmt.Sprintf("resources[%d]", i)
		if r.Name == "" || resources[r.Name] {
			f.bad(at+".name", "resource %q needs a name of its own", r.Name)
		}
		resources[r.Name] = true
		f.within(at, "limit", r.Limit.Min, 1, maxSlots)
		f.within(at, "limit", r.Limit.Max, r.Limit.Min, maxSlots)
	}
	for i, l := range t.Layers {
		at := fmt.Sprintf("layers[%d]", i)
		if l.Name == "" || layers[l.Name] {
			f.bad(at+".name", "layer %q needs a name of its own", l.Name)
		}
		layers[l.Name] = true
		if l.Resource != "" && !resources[l.Resource] {
			f.bad(at+".resource", "resource %q is not among the resources", l.Resource)
		}
		l.faults(&f, at, t.Deadline)
	}
	return f
}

// The most of anything there is: products of these stay far from overflow of an
// int64, 2^20 x 1000 x 10^4 x 10^5.
const (
	maxSlots    = 1 << 30
	maxReplicas = 1e5
)

// faults checks a layer by itself.
func (l Layer) faults(f *faults, at string, deadline time.Duration) {
	f.within(at, "limit", l.Limit, 0, limit.Max)
	f.within(at, "replicas", l.Replicas.Min, 0, maxReplicas)
	f.within(at, "replicas", l.Replicas.Max, l.Replicas.Min, maxReplicas)
	f.within(at, "surge", l.Surge, 0, maxReplicas)
	f.within(at, "workers", l.Workers, 0, 1e4)
	f.within(at, "holds", l.Holds, 0, 1000)
	f.within(at, "attempts", l.Attempts, 0, 100)
	f.within(at, "fan_out", l.FanOut, 0, 1e5)
	f.within(at, "depth", l.Depth, 0, Most)
	f.span(at, ".wait", l.Wait)
	f.span(at, ".objective", l.Objective)
	f.span(at, ".retry_interval", l.RetryInterval)
	f.span(at, ".loop", l.Loop)
	if !(l.RetryBudget >= 0 && l.RetryBudget <= 1) {
		f.bad(at+".retry_budget", "retry_budget %v is out of range: 0 to 1 retries per first attempt", l.RetryBudget)
	}
	switch known := l.Service.Mean != 0 || len(l.Classes) > 0; {
	case l.Resource != "" && l.Limit == 0:
		f.bad(at+".limit", "limit is missing: without one the layer takes all of %s that it can get", l.Resource)
	case known && l.Limit == 0:
		f.bad(at+".limit", "limit is missing: how many requests a worker of %s runs at once", l.Name)
	case !known && l.Objective != 0:
		f.bad(at+".objective", "objective says nothing without service: how long the work of %s takes", l.Name)
	case !known && l.Depth != 0:
		f.bad(at+".depth", "depth says nothing without service; without it, say how long a request waits: wait")
	}
	if l.planned() && deadline != 0 {
		if err := l.input(deadline).Validate(); err != nil {
			f.bad(at, "%v", err)
		}
	}
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

// attempts is how many calls at the bottom one request at the door may become, whatever
// the budgets; 1e15 stands for more.
func (t Topology) attempts() int {
	n := 1
	for _, l := range t.Layers {
		if n *= l.attempts(); n > 1e15 {
			return 1e15
		}
	}
	return n
}
