package admission

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A world drives a core in virtual time, as any driver does: arrivals from a
// source, a resource that serves whoever was admitted, one alarm a waiter, and
// a window of measurements every 50 ms. The service time of a request is drawn
// when it arrives, so that two policies meet the same work.
type world struct {
	testing.TB
	core   *Core
	now    time.Duration
	events events
	batch  Batch
	check  bool // Check after every event

	next func() *job                                      // the next arrival, nil when there are no more
	ends func(start, service time.Duration) time.Duration // when work that starts now ends; nil: start + service
	done func(*job)                                       // a request was refused or has ended
	each func(now time.Duration)                          // before every event; nil: nothing
	pend int                                              // requests that are not done
	last time.Duration                                    // window of the last arrival seen
}

const window = 50 * time.Millisecond

type job struct {
	root     time.Duration // first attempt
	arrival  time.Duration
	deadline time.Duration
	service  time.Duration
	cost     int
	bytes    int64
	attempt  int
	priority Priority

	waiter  *Waiter
	start   time.Duration
	end     time.Duration // of the work, or when it was refused
	refused Reason
}

// inTime reports whether the work was done before its deadline; without one,
// within the objective.
func (j *job) inTime(objective time.Duration) bool {
	if j.deadline == Never {
		return j.refused == None && j.end-j.arrival <= objective
	}
	return j.refused == None && j.end <= j.deadline
}

const (
	arrives = iota
	ends
	rings
	measures
)

type event struct {
	at   time.Duration
	seq  int
	kind int
	job  *job
}

// events is a heap by time, then by the order of scheduling.
type events struct {
	list []event
	seq  int
}

func (e *events) less(i, j int) bool {
	a, b := &e.list[i], &e.list[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (e *events) push(at time.Duration, kind int, j *job) {
	e.seq++
	e.list = append(e.list, event{at, e.seq, kind, j})
	for i := len(e.list) - 1; i > 0 && e.less(i, (i-1)/2); i = (i - 1) / 2 {
		e.list[i], e.list[(i-1)/2] = e.list[(i-1)/2], e.list[i]
	}
}

func (e *events) pop() event {
	top, last := e.list[0], len(e.list)-1
	e.list[0] = e.list[last]
	e.list[last] = event{}
	e.list = e.list[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && e.less(child+1, child) {
			child++
		}
		if !e.less(child, i) {
			return top
		}
		e.list[i], e.list[child] = e.list[child], e.list[i]
		i = child
	}
}

// run plays until nothing is left to happen.
func (w *world) run() {
	w.Helper()
	w.schedule()
	w.events.push(window, measures, nil)
	for w.pend > 0 {
		e := w.events.pop()
		w.now = e.at
		if w.each != nil {
			w.each(w.now)
		}
		switch e.kind {
		case arrives:
			w.schedule()
			w.offer(e.job)
		case ends:
			w.end(e.job)
		case rings:
			w.ring(e.job)
		case measures:
			w.core.Observe(w.now, &w.batch)
			w.batch.Reset()
			w.events.push(w.now+window, measures, nil)
		}
		w.collect()
	}
	if c := w.core; c.inUse != 0 || c.running != 0 || c.waiting != 0 || c.cost != 0 || c.bytes != 0 || c.exempt != 0 {
		w.Fatalf("at rest: %d in use, %d running, %d waiting of cost %d and %d bytes, %d exempt",
			c.inUse, c.running, c.waiting, c.cost, c.bytes, c.exempt)
	}
	if err := w.core.Check(); err != nil {
		w.Fatal(err)
	}
}

// schedule asks the source for one more arrival.
func (w *world) schedule() {
	if w.next == nil {
		return
	}
	if j := w.next(); j != nil {
		w.arrive(j)
	} else {
		w.next = nil
	}
}

func (w *world) arrive(j *job) {
	w.pend++
	w.events.push(j.arrival, arrives, j)
}

func (w *world) offer(j *job) {
	d := w.core.Offer(w.now, Request{
		Cost: j.cost, Bytes: j.bytes, Arrival: j.root, Deadline: j.deadline, Attempt: j.attempt, Priority: j.priority,
	})
	switch d.Verdict {
	case Admitted:
		w.begin(j)
	case Queued:
		d.Waiter.Ref, j.waiter = j, d.Waiter
		w.events.push(d.Waiter.Alarm(), rings, j)
	default:
		w.refuse(j, d.Reason)
	}
}

func (w *world) begin(j *job) {
	j.waiter = nil
	j.start, j.end = w.now, w.now+j.service
	if w.ends != nil {
		j.end = w.ends(w.now, j.service)
	}
	w.events.push(j.end, ends, j)
}

func (w *world) end(j *job) {
	o := Completed
	if w.now > j.deadline {
		o = Late
	}
	w.batch.Add(j.end-j.start, j.end-j.start, j.cost, 0)
	w.core.Release(w.now, End{Cost: j.cost, Outcome: o})
	w.pend--
	w.done(j)
}

func (w *world) refuse(j *job, why Reason) {
	j.waiter = nil
	j.refused, j.end = why, w.now
	w.pend--
	w.done(j)
}

func (w *world) ring(j *job) {
	switch p := j.waiter; {
	case p == nil: // it was decided before its alarm rang
	case w.core.Cancel(w.now, p, None):
		if p.Verdict() == Refused {
			w.refuse(j, p.Reason())
		}
	default:
		w.events.push(p.Alarm(), rings, j)
	}
}

// collect does what the core decided.
func (w *world) collect() {
	for p := w.core.Next(); p != nil; p = w.core.Next() {
		if j := p.Ref.(*job); p.Verdict() == Admitted {
			w.begin(j)
		} else {
			w.refuse(j, p.Reason())
		}
	}
	if w.check {
		if err := w.core.Check(); err != nil {
			w.Fatalf("at %v: %v", w.now, err)
		}
	}
}

// A load is an open-loop run: Poisson arrivals of cost 1 at a multiple of what
// the slots can serve, for a length of virtual time, then drained.
type load struct {
	slots     int
	mean      time.Duration
	shape     shape
	times     float64                        // offered over capacity
	rate      func(at time.Duration) float64 // if set, times at an instant; at most times
	deadline  time.Duration                  // 0: none
	deadlines []time.Duration                // if set, drawn from these
	length    time.Duration
	skip      time.Duration // what arrives before is not counted
	objective time.Duration // 0: 400 ms
	config    Config        // Limit and Objective are filled in
	seed      uint64
	check     bool
	tune      func(*world)
}

// A shape is a distribution of service times with mean 1.
type shape struct {
	name string
	draw func(*rand.Rand) float64
}

func lognormal(cv float64) func(*rand.Rand) float64 {
	s2 := math.Log(1 + cv*cv)
	return func(r *rand.Rand) float64 { return math.Exp(-s2/2 + math.Sqrt(s2)*r.NormFloat64()) }
}

var (
	fixed       = shape{"fixed", func(*rand.Rand) float64 { return 1 }}
	exponential = shape{"exponential", (*rand.Rand).ExpFloat64}
	lognormal14 = shape{"lognormal CV 1.41", lognormal(1.41)}
)

// source returns the arrivals of l: Poisson, thinned where the rate varies.
func (l *load) source() func() *job {
	arrivals, service := rand.New(rand.NewPCG(l.seed, 1)), rand.New(rand.NewPCG(l.seed, 2))
	top := l.times * float64(l.slots) / l.mean.Seconds()
	at := time.Duration(0)
	return func() *job {
		for {
			at += time.Duration(arrivals.ExpFloat64() / top * float64(time.Second))
			if at > l.length {
				return nil
			}
			if l.rate == nil || arrivals.Float64() < l.rate(at)/l.times {
				break
			}
		}
		j := &job{
			root: at, arrival: at, deadline: Never, cost: 1, attempt: 1,
			service: time.Duration(l.shape.draw(service) * float64(l.mean)),
		}
		if l.deadline > 0 {
			j.deadline = at + l.deadline
		}
		if n := len(l.deadlines); n > 0 {
			j.deadline = at + l.deadlines[arrivals.IntN(n)]
		}
		return j
	}
}

// A result is what a run showed.
type result struct {
	core     *Core
	offered  int
	served   int             // got a slot
	good     int             // in time
	busy     float64         // slot-seconds of work inside [skip, length]
	capacity float64         // slot-seconds there are in it
	work     float64         // seconds of service of all that was served
	latency  []time.Duration // of all that got a slot
	told     []time.Duration // how long the refused waited for their no
	reasons  [Reasons]int
	deepest  int
}

// run plays l. A seed is in the message of whatever fails.
func (l load) run(t testing.TB) *result {
	t.Helper()
	if l.objective == 0 {
		l.objective = 400 * time.Millisecond
	}
	l.config.Limit, l.config.Objective = limit.Fixed(l.slots), l.objective
	core, err := New(l.config)
	if err != nil {
		t.Fatal(err)
	}
	r := &result{core: core, capacity: float64(l.slots) * (l.length - l.skip).Seconds()}
	w := &world{TB: t, core: core, check: l.check, next: l.source()}
	w.each = func(time.Duration) { r.deepest = max(r.deepest, core.cost) }
	w.done = func(j *job) { r.add(j, &l) }
	if l.tune != nil {
		l.tune(w)
	}
	w.run()
	return r
}

func (r *result) add(j *job, l *load) {
	if j.refused == None {
		r.busy += max(0, min(j.end, l.length)-max(j.start, l.skip)).Seconds()
	}
	if j.root < l.skip {
		return
	}
	r.offered++
	if j.refused != None {
		r.reasons[j.refused]++
		r.told = append(r.told, j.end-j.arrival)
		return
	}
	r.served++
	r.work += (j.end - j.start).Seconds()
	r.latency = append(r.latency, j.end-j.root)
	if j.inTime(l.objective) {
		r.good++
	}
}

// goodput is in time / min(offered, capacity), the capacity being what the
// slots could have served of the work that came: slot-seconds over the mean
// service time of this run, so that the luck of the draw is in neither side.
// What remains of chance is the count of those that were late: its standard
// error is sqrt(late share / served), 0.04 % for 0.4 % of 24,000.
func (r *result) goodput() float64 {
	utilisation := r.busy / r.capacity
	inTime := float64(r.good) / float64(r.served)
	return max(inTime*utilisation, float64(r.good)/float64(r.offered))
}

func (r *result) refused() float64 { return 1 - float64(r.served)/float64(r.offered) }

// p returns a quantile of d, 0 if it is empty.
func p(q float64, d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}
