package admission

import (
	"testing"
	"time"
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
	window time.Duration // between two Observe
	steps  int

	next func() *job                                      // the next arrival, nil when there are no more
	ends func(start, service time.Duration) time.Duration // when work that starts now ends; nil: start + service
	done func(*job)                                       // a request was refused or has ended
	each func()                                           // after every event; nil: nothing
	open int                                              // requests that are not done
}

const (
	// checkEvery event the invariants are checked. The million steps against the
	// model check after each; here the walk would be most of the time.
	checkEvery = 100
)

type job struct {
	root     time.Duration // first attempt
	arrival  time.Duration
	deadline time.Duration // when its caller stops caring
	blind    bool          // the core is not told so
	service  time.Duration
	cost     int
	bytes    int64
	attempt  int

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
	w.window = max(50*time.Millisecond, w.core.cfg.Objective/8)
	w.events.push(w.window, measures, nil)
	for w.open > 0 {
		e := w.events.pop()
		w.now = e.at
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
			w.events.push(w.now+w.window, measures, nil)
		}
		w.collect()
		if w.each != nil {
			w.each()
		}
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
	w.open++
	w.events.push(j.arrival, arrives, j)
}

func (w *world) offer(j *job) {
	r := Request{Cost: j.cost, Bytes: j.bytes, Arrival: j.root, Deadline: j.deadline, Attempt: j.attempt}
	if j.blind {
		r.Deadline = Never
	}
	d := w.core.Offer(w.now, r)
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
	w.open--
	w.done(j)
}

func (w *world) refuse(j *job, why Reason) {
	j.waiter = nil
	j.refused, j.end = why, w.now
	w.open--
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
	if w.steps++; w.steps%checkEvery == 0 {
		if err := w.core.Check(); err != nil {
			w.Fatalf("at %v: %v", w.now, err)
		}
	}
}
