package admission_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// A driver in virtual time: one request every 8 ms, two slots, 30 ms of service each, and a
// resource that allows 60 per second: twice what can be served. Everything a driver does
// is here.
type driver struct {
	core    *admission.Core
	now     time.Duration
	next    time.Duration       // arrival
	ends    []time.Duration     // of those that run
	waiting []*admission.Waiter // until they are decided
	seen    map[string]int      // what became of whom
	batch   admission.Batch     // measured since the last window
}

func (d *driver) arrive() {
	d.next += 8 * time.Millisecond
	switch a := d.core.Offer(d.now, admission.Request{Deadline: d.now + 200*time.Millisecond}); a.Verdict {
	case admission.Admitted:
		d.start()
	case admission.Queued:
		d.waiting = append(d.waiting, a.Waiter)
	case admission.Refused:
		d.seen["rejected: "+a.Reason.String()]++
	}
}

func (d *driver) start() { d.ends = append(d.ends, d.now+30*time.Millisecond) }

func (d *driver) end() {
	d.ends = d.ends[1:]
	d.batch.Add(30*time.Millisecond, 30*time.Millisecond, 1, 0)
	d.core.Release(d.now, admission.End{Outcome: admission.Completed})
	d.seen["completed"]++
}

// ring asks again about a waiter whose alarm is due. A live driver has a timer
// for each.
func (d *driver) ring(w *admission.Waiter) {
	if d.core.Cancel(d.now, w, admission.None) {
		d.seen["dropped: "+w.Reason().String()]++
	}
}

// collect follows every call: who else was decided?
func (d *driver) collect() {
	for w := d.core.Next(); w != nil; w = d.core.Next() {
		if w.Verdict() == admission.Admitted {
			d.start()
		} else {
			d.seen["dropped: "+w.Reason().String()]++
		}
	}
	d.waiting = slices.DeleteFunc(d.waiting, func(w *admission.Waiter) bool { return w.Verdict() != admission.Queued })
}

func Example_driver() {
	core, err := admission.New(admission.Config{
		Limit: limit.Fixed(2), Objective: 150 * time.Millisecond,
		Allowance: admission.Quota{Rate: 60, Burst: 2}, // what the resource grants per second
	})
	if err != nil {
		panic(err)
	}
	d := &driver{core: core, seen: map[string]int{}}
	window := 50 * time.Millisecond
	for d.next < 2*time.Second || len(d.ends)+len(d.waiting) > 0 {
		at, do := window, func() { d.core.Observe(d.now, &d.batch); d.batch.Reset(); window += 50 * time.Millisecond }
		if d.next < 2*time.Second && d.next < at {
			at, do = d.next, d.arrive
		}
		if len(d.ends) > 0 && d.ends[0] < at {
			at, do = d.ends[0], d.end
		}
		if refill := core.RefillAt(); refill < at { // Never if nobody waits for the allowance
			at, do = refill, func() { core.Dispatch(d.now) }
		}
		for _, w := range d.waiting {
			if w.Alarm() < at {
				at, do = w.Alarm(), func() { d.ring(w) }
			}
		}
		d.now = at
		do()
		d.collect()
	}
	s := core.Stats(d.now)
	fmt.Println(d.seen)
	fmt.Println(s.Derivation)
	fmt.Println(s.Arrivals, "arrivals,", s.InUse, "in use,", s.Waiting, "waiting")
	// Output:
	// map[completed:124 rejected: queue_full:126]
	// 2 slots / 30ms mean = 66.67/s, 60/s allowed, burst 2; objective 150ms p99, service p99 30ms -> 7 deep, more for whoever has a deadline within the objective (rule of thumb 9: p99 would be 188ms)
	// 250 arrivals, 0 in use, 0 waiting
}
