package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/goodput/goodput/admission"
)

// A world is a scenario being played.
type world struct {
	*Scenario
	now    time.Duration
	events events
	free   *call // calls that are over, to be used again

	tiers   []*tier
	classes []*class
	job     Job // the next of the trace, while hasJob
	hasJob  bool
	jobAt   time.Duration // of the last one; they never go back

	clients *rand.Rand // backoff, and the instance that a request goes to
	open    int        // calls that are not over. Invariant: 0 at the end
	result  *Result
	shared  []shared      // tallies of tenants
	bin     time.Duration // length of one
	sampled bool          // the series are complete

	discard    Tally // of requests that arrived before the window
	afterwards Bin   // what happens after the last
}

// A tier is a Tier being played: its instances and their one resource.
type tier struct {
	Tier
	index     int
	instances []*instance
	rand      *rand.Rand // work of sub-requests
	service   sampler
	fan       sampler // of the work of its sub-requests at the next tier
	time      *timeline
	chance    *rand.Rand // of a fault
	fault     int        // the index of the one that is next, or now
	absent    bool       // its limiters have nothing to run work on
	mortal    bool       // an instance may end, and must know what is in it

	busy           int   // requests that the resource works on
	now            int   // slots that there are, 0 for no bound; work that took more goes on
	taken          int   // slots that they take
	inUse          int   // requests that hold a slot of a limiter
	waiting        int   // in the limiters
	oldest, newest *call // waiting at the resource, first come first served
	behind         int
	crowd          gauge // units of cost at the resource, worked on or waiting
	result         *TierResult
}

// An instance is one process of a tier: its limiter and what is in it.
type instance struct {
	tier    *tier
	index   int32
	core    *admission.Core // or nil, and then
	seed    uint64          // of its law
	queue   *queue
	batch   admission.Batch
	window  time.Duration // between two Observe
	member  *member       // of a group; nil without one
	waiting int
	bytes   int64
	due     time.Duration // when the allowance is there for who is first; never if nobody waits for it
	alive   *call         // what is in it, if the tier is mortal
	down    bool
	sender  sender  // of sub-requests
	cold    Restart // the latest; At is when it came back
	limit   gauge   // that of its limiter
	still   bool    // the limit never moves
}

// A class is a Class being played.
type class struct {
	Class
	entry     *tier
	source    *source
	next      time.Duration // arrival; never when there are no more
	work      *rand.Rand
	service   sampler
	sizes     []float64
	deadlines []float64
	objective time.Duration
	average   float64 // of the work of a unit of size, ns
	sender    sender  // its Retry
	recorded  demand  // what of the trace came in the window, ns
	tally     *Tally
	crowd     *crowd // nil for clients of one name, of whom the truth is told
}

// The streams of randomness of one seed. Each has its own, so that what one
// consumes changes nothing for the others.
const (
	streamClients = iota
	streamArrivals
	streamWork
	streamTier
	streamSpeed
	streams
)

func stream(seed uint64, kind, index int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(index*streams+kind)))
}

func newWorld(s *Scenario, seed uint64) (*world, error) {
	w := &world{Scenario: s, clients: stream(seed, streamClients, 0)}
	w.result = &Result{Scenario: s.Name, Seed: seed, Window: s.Length - s.Warmup}
	w.result.Policy = s.Tiers[0].Policy.Name
	w.result.Tiers = make([]TierResult, len(s.Tiers))
	w.result.Classes = make([]Tally, len(s.Classes))
	for i := range s.Tiers {
		t, err := w.newTier(i, seed)
		if err != nil {
			return nil, err
		}
		w.tiers = append(w.tiers, t)
	}
	if err := w.join(); err != nil {
		return nil, err
	}
	for i := range s.Classes {
		w.classes = append(w.classes, w.newClass(i, seed))
	}
	w.enroll()
	bins := s.Bins
	if bins == 0 {
		bins = defaultBins
	}
	w.bin = (s.Length + time.Duration(bins) - 1) / time.Duration(bins)
	w.result.Series = make([]Bin, 0, bins)
	w.result.Series = append(w.result.Series, Bin{End: w.bin})
	w.events.push(event{at: w.bin, what: samples})
	w.advanceTrace()
	return w, nil
}

func (w *world) newTier(i int, seed uint64) (*tier, error) {
	t := &tier{Tier: w.Tiers[i], index: i, rand: stream(seed, streamTier, i), result: &w.result.Tiers[i]}
	t.result.Name = t.Name
	t.service = newSampler(&w.Tiers[i].Service)
	if t.Next != nil {
		t.fan = newSampler(w.fanWork(t.Next))
	}
	t.time = newTimeline(t.Speed, stream(seed, streamSpeed, i))
	t.chance = faultStream(seed, i)
	t.mortal = len(t.Restarts) > 0 || t.Memory > 0
	t.now = t.Slots
	for n := range max(t.Instances, 1) {
		in := &instance{tier: t, index: int32(n), due: never}
		if t.Next != nil {
			in.sender = newSender(t.Next.Retry)
		}
		if b := t.Policy.Baseline; b != nil && b.Law == nil {
			in.queue = &queue{Baseline: *b, begun: *b}
		} else {
			in.seed = seed + uint64(i)<<32 + uint64(n)<<8
			core, err := admission.New(in.config())
			if err != nil {
				return nil, err
			}
			in.core = core
			in.window = t.cores().Window()
			// Instances do not measure in step.
			w.events.push(event{at: in.window + in.window*time.Duration(n)/time.Duration(max(t.Instances, 1)), what: observes, who: in.index, gen: uint32(i)})
		}
		t.instances = append(t.instances, in)
		in.limit.level = float64(in.begin())
	}
	for n, s := range t.SlotSteps {
		w.events.push(event{at: s.At, what: resizes, who: int32(i), gen: uint32(n)})
	}
	w.scheduleAbsences(t)
	for n, r := range t.Restarts {
		w.events.push(event{at: r.At, what: breaks, who: int32(i), gen: uint32(n)})
	}
	return t, nil
}

func (w *world) newClass(i int, seed uint64) *class {
	c := &class{Class: w.Classes[i], entry: w.tiers[w.Classes[i].Tier], work: stream(seed, streamWork, i)}
	w.result.Classes[i].Name = c.Name
	c.crowd = newCrowd(&w.Classes[i], i, seed)
	c.source = newSource(c.Arrivals, stream(seed, streamArrivals, i), w.Length)
	c.objective = w.Tiers[c.Tier].objective()
	c.service, c.average = newSampler(w.workOf(i)), float64(w.workOf(i).average())
	if n := len(c.Sizes); n > 0 {
		c.sizes = shares(n, func(i int) float64 { return c.Sizes[i].Share })
	}
	if n := len(c.Deadlines); n > 0 {
		c.deadlines = shares(n, func(i int) float64 { return c.Deadlines[i].Share })
	}
	c.sender = newSender(c.Retry)
	c.advance()
	return c
}

// workOf returns the distribution of the work of a class where it arrives.
func (s *Scenario) workOf(class int) *Dist {
	if d := &s.Classes[class].Service; !d.zero() {
		return d
	}
	return &s.Tiers[s.Classes[class].Tier].Service
}

// fanWork returns the distribution of the work of a sub-request of f.
func (s *Scenario) fanWork(f *Fan) *Dist {
	if !f.Service.zero() {
		return &f.Service
	}
	return &s.Tiers[f.Tier].Service
}

// objective is what in time means without a deadline.
func (t *Tier) objective() time.Duration {
	switch {
	case t.Objective > 0:
		return t.Objective
	case t.Policy.Core != nil:
		return t.Policy.Core.WithDefaults().Objective
	}
	return admission.DefaultObjective
}

func (c *class) advance() {
	at, ok := c.source.next()
	if !ok {
		at = never
	}
	c.next = at
}

func (w *world) advanceTrace() {
	w.hasJob = false
	if w.Trace == nil {
		return
	}
	w.job = Job{}
	last := w.jobAt
	if !w.Trace(&w.job) || w.job.At >= w.Length {
		return
	}
	j := &w.job
	if j.At < last || j.Class < 0 || j.Class >= len(w.classes) || j.Service < 0 || j.Cost < 0 || j.Size < 0 || j.Deadline < 0 {
		panic(fmt.Sprintf("sim: a job of the trace is out of range, or earlier than the one before it at %v: %+v of %d classes", last, *j, len(w.classes)))
	}
	w.hasJob, w.jobAt = true, j.At
}

// run plays until nothing is left to happen.
func (w *world) run() {
	for w.step() {
	}
	w.finish()
}

// step lets the next thing happen; false when the last request has ended and the
// series are complete.
func (w *world) step() bool {
	from, at := w.soonest()
	if at == never && w.open == 0 && w.sampled {
		return false
	}
	if len(w.events.list) == 0 && at == never {
		panic("sim: requests are left, and nothing will happen to them")
	}
	if len(w.events.list) == 0 || at <= w.events.list[0].at && at != never {
		w.now = at
		w.arrive(from)
		return true
	}
	e := w.events.pop()
	w.now = e.at
	w.happen(&e)
	return true
}

// soonest returns the class whose arrival is next, nil for the trace, and when.
func (w *world) soonest() (*class, time.Duration) {
	var from *class
	at := never
	if w.hasJob {
		at = max(w.job.At, w.now)
	}
	for _, c := range w.classes {
		if c.next < at {
			from, at = c, c.next
		}
	}
	return from, at
}

func (w *world) happen(e *event) {
	if c := e.call; c != nil {
		if c.gen != e.gen {
			return
		}
		switch e.what {
		case ends:
			w.end(c)
		case rings:
			w.ring(c)
		case leaves:
			w.leave(c)
		case answers:
			w.conclude(c, c.came > 0)
		case retries:
			w.retry(c)
		}
		return
	}
	switch e.what {
	case observes:
		t := w.tiers[e.gen]
		in := t.instances[e.who]
		if !in.down {
			in.core.Observe(w.now, &in.batch)
			w.collect(in)
			if !in.still {
				in.limit.set(w, float64(in.stats(w.now).Limit))
			}
		}
		in.batch.Reset()
		w.events.push(event{at: w.now + in.window, what: observes, who: e.who, gen: e.gen})
	case breaks:
		t := w.tiers[e.who]
		for _, in := range t.instances {
			w.kill(in, t.Restarts[e.gen])
		}
	case resizes:
		t := w.tiers[e.who]
		t.now = t.SlotSteps[e.gen].Slots
		w.advanceLine(t)
	case turns:
		w.turn(w.tiers[e.who], e.gen == 1)
	case refills:
		w.refill(w.tiers[e.gen].instances[e.who])
	case comes:
		in := w.tiers[e.gen].instances[e.who]
		in.down, in.cold.At = false, w.now
		if in.tier.absent {
			in.core.SetPresent(w.now, false)
		}
	case samples:
		w.sample()
	}
}
