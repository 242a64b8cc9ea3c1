// Package replay makes a scenario of a log: what yesterday would have been with
// another policy.
//
// A log says when requests arrived and how long the service worked on them. Both
// are played as they were, against a limiter with a queue that the log knows
// nothing of. What the log cannot say is taken as follows.
//
//   - A request that waited in vain, was refused or whose client left has no
//     service time, but it wanted some: it gets one drawn from those of the log.
//   - A request that the proxy answered itself, such as a redirect, never came to
//     the service and does not come to the limiter.
//   - An upgraded connection holds no slot while it is open, and is left out.
//   - A trace and an access log of goodput say how long each caller was willing to wait, and
//     that is what it is played with. They also say tenants and priorities, which are not
//     played: a simulation takes a class for a tenant.
//   - Nobody knows who would have tried again. Nobody does.
//
// Service times measured under an overload hold that overload: see the warnings.
package replay

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

// An Options says what the log is played against.
type Options struct {
	Policy   admission.Config
	Slots    int           // of the service: the limit, or what a law has to find
	Deadline time.Duration // of requests whose line has none; 0: none
	Load     float64       // compress or stretch time to offer so many times the capacity; 0 leaves it
	Depth    int           // of the baselines that are bounded; 0: the rule of thumb
	Compare  []string      // names of policies: goodput, or of sim.Baselines
	Seed     uint64
}

const (
	// enough requests with a service time make a 99th percentile.
	enough = 100

	// kept service times stand for all: the p99 of 10,000 is known to 0.1 points.
	kept = 10_000

	// maxClasses is how many classes have a row of their own.
	maxClasses = 64

	// longest is the longest time of a simulation, package sim's.
	longest = 30 * 24 * time.Hour

	other        = "other"        // the class of those beyond
	unclassified = "unclassified" // requests that no rule and no column put in a class
)

// A Survey is what one walk over a log showed.
type Survey struct {
	log  *accesslog.Log
	rand *rand.Rand

	Used     int64 // arrivals that are played
	Sampled  int64 // of which have a service time
	Drawn    int64 // of which get one from the others
	Answered int64 // left out: answered without the service
	Streams  int64 // left out
	Floors   int64 // service times that are lower bounds
	Budgets  int64 // arrivals that say how long their caller waits
	Who      int64 // arrivals with a tenant or a priority
	Cut      int64 // service times beyond longest, which are played as that

	first, last int64
	work        float64 // ns, service times: a sum of months does not fit a time.Duration
	held        float64 // seconds of a unit of cost that they were
	samples     []time.Duration
	classes     []string
}

// Look walks over the log once.
func Look(log *accesslog.Log) (*Survey, error) {
	s := &Survey{log: log, rand: rand.New(rand.NewPCG(1, 1))}
	for r, err := range log.Records() {
		if err != nil {
			return nil, err
		}
		s.look(&r)
	}
	if len(s.classes) == 0 {
		s.classes = []string{""}
	}
	return s, nil
}

func (s *Survey) look(r *accesslog.Record) {
	d, ok := s.wants(r)
	switch {
	case !ok && r.Outcome == accesslog.Stream:
		s.Streams++
		return
	case !ok:
		s.Answered++
		return
	}
	if s.Used == 0 {
		s.first = r.Arrival
	}
	s.last = r.Arrival
	s.Used++
	s.class(r.Class)
	if r.Budget >= 0 {
		s.Budgets++
	}
	if r.Tenant != "" || r.Priority != "" {
		s.Who++
	}
	if d == 0 {
		s.Drawn++
		return
	}
	if r.ServiceAtLeast {
		s.Floors++
	}
	if d == longest {
		s.Cut++
	}
	s.Sampled++
	s.work += float64(d)
	s.held += d.Seconds() * float64(max(r.Cost, 1))
	if len(s.samples) < kept {
		s.samples = append(s.samples, d)
	} else if i := s.rand.Int64N(s.Sampled); i < kept { // Vitter's algorithm R: each is kept alike
		s.samples[i] = d
	}
}

// wants returns the service time of a request that came to the service, 0 where
// the log has none, and false for one that did not come there.
func (s *Survey) wants(r *accesslog.Record) (time.Duration, bool) {
	if d, ok := r.Sample(); ok && r.Outcome != accesslog.Stream {
		return min(max(d, 1), longest), true // 0.000 is less than a millisecond, not nothing
	}
	switch r.Outcome {
	case accesslog.Rejected, accesslog.ExpiredInQueue, accesslog.Cancelled:
		return 0, true
	}
	return 0, false
}

// class returns the index of a class. Beyond maxClasses they are one.
func (s *Survey) class(name string) int {
	if i := slices.Index(s.classes, name); i >= 0 {
		return i
	}
	switch {
	case len(s.classes) == maxClasses:
		return maxClasses - 1
	case len(s.classes) == maxClasses-1:
		name = other
	}
	s.classes = append(s.classes, name)
	return len(s.classes) - 1
}

// Mean is the mean service time.
func (s *Survey) Mean() time.Duration {
	if s.Sampled == 0 {
		return 0
	}
	return time.Duration(s.work / float64(s.Sampled))
}

// Span is from the first arrival to the last.
func (s *Survey) Span() time.Duration { return time.Duration(s.last - s.first) }

// Load is what the log offered to so many slots, over what they can serve.
func (s *Survey) Load(slots int) float64 {
	if s.Span() <= 0 || s.Sampled == 0 {
		return 0
	}
	each := s.held / float64(s.Sampled)
	return float64(s.Used) * each / s.Span().Seconds() / float64(slots)
}

// Void says why there is no answer, or "".
func (s *Survey) Void(sum *accesslog.Summary) string {
	switch {
	case s.Sampled < enough:
		return fmt.Sprintf("%d of %d lines have a service time: %d are needed for a 99th percentile", s.Sampled, sum.Lines, enough)
	case s.Span() <= 0:
		return "all requests arrived at one instant: there is no rate"
	case s.Span() > longest:
		day := func(at int64) string { return time.Unix(0, at).UTC().Format(time.DateTime) }
		return fmt.Sprintf("the first request came at %s and the last at %s, and at most %v can be played: cut the log, or see whether a stamp is wrong",
			day(s.first), day(s.last), longest)
	case s.Sampled < s.Drawn && !own(sum):
		return fmt.Sprintf("%d requests have a service time and %d have none: more would be invented than measured", s.Sampled, s.Drawn)
	}
	return ""
}

// own reports whether goodput has written the log. It refuses without a look at how long
// something will take, unless sizes say that, so those that it served stand for the others.
func own(sum *accesslog.Summary) bool {
	return len(sum.Files) > 0 && !slices.ContainsFunc(sum.Files, func(f accesslog.File) bool { return !f.Own() })
}

// Run plays the log against each policy of o.
func (s *Survey) Run(o Options) ([]*sim.Result, sim.Ceilings, error) {
	var none sim.Ceilings
	scenario, factor, err := s.scenario(o)
	if err != nil {
		return nil, none, err
	}
	var results []*sim.Result
	for _, name := range o.Compare {
		sc := scenario
		if name != "goodput" {
			p, err := sim.Named(name, o.told(), o.Depth, scenario.Tiers[0].Service)
			if err != nil {
				return nil, none, err
			}
			sc = scenario.With(p)
		}
		t := s.trace(factor)
		sc.Trace = t.next
		r, err := sim.Run(sc, o.Seed)
		if err := errors.Join(err, t.close()); err != nil {
			return nil, none, err
		}
		results = append(results, r)
	}
	t := s.trace(factor)
	scenario.Trace = t.next
	ceilings, err := scenario.Ceilings(o.Seed)
	return results, ceilings, errors.Join(err, t.close())
}

// scenario returns what is played, and by how much time is stretched.
func (s *Survey) scenario(o Options) (sim.Scenario, float64, error) {
	if v := s.Void(s.log.Summary()); v != "" {
		return sim.Scenario{}, 0, errors.New(v)
	}
	factor := 1.0
	if o.Load > 0 {
		factor = s.Load(o.Slots) / o.Load
	}
	if long := float64(s.Span()) * factor; long > float64(longest) {
		return sim.Scenario{}, 0, fmt.Errorf("at %v times the capacity the log takes %.0f h, and at most %v can be played: %v times is recorded",
			o.Load, long/float64(time.Hour), longest, s.Load(o.Slots))
	}
	length := time.Duration(float64(s.Span())*factor) + 1 // the last one arrives before the end
	tier := sim.Tier{
		Name:    "service",
		Policy:  sim.Policy{Name: "goodput", Core: &o.Policy},
		Service: sim.Dist{Kind: sim.Empirical, Samples: s.samples},
	}
	if o.Policy.Limit != limit.Fixed(o.Slots) {
		tier.Slots = o.Slots // with that limit it does not matter how many there are
	}
	sc := sim.Scenario{Name: "replay", Length: length, Tiers: []sim.Tier{tier}}
	for _, name := range s.classes {
		c := sim.Class{Name: cmp.Or(name, unclassified), Patience: sim.Vanishes}
		if o.Deadline > 0 {
			c.Deadlines = []sim.Deadline{{After: o.Deadline, Share: 1}}
		}
		sc.Classes = append(sc.Classes, c)
	}
	return sc, factor, nil
}

// told is the limit of those that do not find it: the one of the policy, or, where a law
// finds that, what there is to find.
func (o Options) told() int {
	if n, ok := o.Policy.Limit.(limit.Fixed); ok {
		return int(n)
	}
	return o.Slots
}

// Policy returns a policy with a limit for an objective.
func Policy(law limit.Law, objective time.Duration) admission.Config {
	return admission.Config{Limit: law, Objective: objective}
}

// A trace hands the requests of a log to a simulation.
type trace struct {
	s      *Survey
	factor float64
	pull   func() (accesslog.Record, error, bool)
	stop   func()
	err    error
}

func (s *Survey) trace(factor float64) *trace {
	t := &trace{s: s, factor: factor}
	t.pull, t.stop = iter.Pull2(s.log.Records())
	return t
}

func (t *trace) next(j *sim.Job) bool {
	for {
		r, err, ok := t.pull()
		if err != nil {
			t.err = err
		}
		if !ok || err != nil {
			return false
		}
		d, wanted := t.s.wants(&r)
		if !wanted {
			continue
		}
		*j = sim.Job{
			At:      time.Duration(float64(r.Arrival-t.s.first) * t.factor),
			Class:   t.s.class(r.Class),
			Service: d, Cost: r.Cost, Size: r.Size,
		}
		if r.Budget >= 0 {
			j.Deadline = max(r.Budget, 1) // 0 is that of the class
		}
		return true
	}
}

func (t *trace) close() error {
	t.stop()
	return t.err
}
