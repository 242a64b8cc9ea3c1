package admission

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A world drives a core in virtual time: open-loop Poisson arrivals at a
// resource with as many servers as the limit, each request's service time drawn
// ahead of the run so that two policies meet the same work.
type world struct {
	core    *Core
	rng     *rand.Rand
	events  events
	now     time.Duration
	service func(*rand.Rand) time.Duration
	batch   Batch
	check   bool
	onEnd   func(j *job)
}

type job struct {
	arrival, start, end time.Duration
	deadline            time.Duration
	service             time.Duration
	reason              Reason
	told                time.Duration // when it was refused
	waiter              *Waiter
	cost                int
}

type event struct {
	at   time.Duration
	seq  int
	kind int // 0 arrival, 1 end, 2 alarm, 3 window
	job  *job
}

type events struct {
	list []event
	seq  int
}

func (e events) Len() int { return len(e.list) }
func (e events) Less(i, j int) bool {
	if e.list[i].at != e.list[j].at {
		return e.list[i].at < e.list[j].at
	}
	return e.list[i].seq < e.list[j].seq
}
func (e events) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }
func (e *events) Push(x any)   { e.list = append(e.list, x.(event)) }
func (e *events) Pop() any {
	x := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return x
}

func (w *world) at(t time.Duration, kind int, j *job) {
	w.events.seq++
	heap.Push(&w.events, event{t, w.events.seq, kind, j})
}

func (w *world) started(j *job) {
	j.start = w.now
	j.end = w.now + j.service
	w.at(j.end, 1, j)
}

func (w *world) refused(j *job, why Reason) {
	j.reason, j.told = why, w.now
	w.onEnd(j)
}

func (w *world) drain(t testing.TB) {
	for d := w.core.Next(); d != nil; d = w.core.Next() {
		j := d.Ref.(*job)
		if d.Verdict() == Admitted {
			w.started(j)
		} else {
			w.refused(j, d.Reason())
		}
	}
	if w.check {
		if err := w.core.Check(); err != nil {
			t.Fatalf("at %v: %v", w.now, err)
		}
	}
}

func (w *world) step(t testing.TB, next func() (time.Duration, *job)) bool {
	if len(w.events.list) == 0 {
		return false
	}
	e := heap.Pop(&w.events).(event)
	w.now = e.at
	j := e.job
	switch e.kind {
	case 0:
		if at, n := next(); n != nil {
			w.at(at, 0, n)
		}
		d := w.core.Offer(w.now, Request{Cost: j.cost, Arrival: j.arrival, Deadline: j.deadline})
		switch d.Verdict {
		case Admitted:
			w.started(j)
		case Queued:
			d.Waiter.Ref, j.waiter = j, d.Waiter
			w.at(d.Waiter.Alarm(), 2, j)
		default:
			w.refused(j, d.Reason)
		}
	case 1:
		o := Completed
		if w.now > j.deadline {
			o = Late
		}
		w.batch.Add(j.service, j.end-j.start, j.cost, 0)
		w.core.Release(w.now, End{Cost: j.cost, Outcome: o})
		w.onEnd(j)
	case 2:
		if j.waiter.Verdict() == Queued {
			if w.core.Cancel(w.now, j.waiter, None) {
				w.refused(j, j.waiter.Reason())
			} else {
				w.at(j.waiter.Alarm(), 2, j)
			}
		}
	case 3:
		w.core.Observe(w.now, &w.batch)
		w.batch.Reset()
		if len(w.events.list) > 0 {
			w.at(w.now+50*time.Millisecond, 3, nil)
		}
	}
	w.drain(t)
	return true
}

type result struct {
	offered, refused, good, late int
	latency, told                []time.Duration
	reasons                      [Reasons]int
	maxWaiting                   int
	core                         *Core
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

// run offers load x capacity for length of virtual time and drains.
func run(t testing.TB, cfg Config, service func(*rand.Rand) time.Duration, mean time.Duration,
	load float64, deadline, length time.Duration, seed uint64,
) result {
	core, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{core: core, rng: rand.New(rand.NewPCG(seed, 1)), service: service}
	r := result{core: core}
	slots := core.limit
	rate := load * float64(slots) / mean.Seconds()
	arrivals := rand.New(rand.NewPCG(seed, 2))
	at := time.Duration(0)
	next := func() (time.Duration, *job) {
		at += time.Duration(arrivals.ExpFloat64() / rate * float64(time.Second))
		if at > length {
			return 0, nil
		}
		d := Never
		if deadline > 0 {
			d = at + deadline
		}
		return at, &job{arrival: at, deadline: d, service: service(w.rng), cost: 1}
	}
	w.onEnd = func(j *job) {
		r.offered++
		if j.reason != None {
			r.refused++
			r.reasons[j.reason]++
			r.told = append(r.told, j.told-j.arrival)
			return
		}
		r.latency = append(r.latency, j.end-j.arrival)
		if j.deadline == Never && j.end-j.arrival <= cfg.Objective || j.end <= j.deadline && j.deadline != Never {
			r.good++
		} else {
			r.late++
		}
	}
	first, j := next()
	w.at(first, 0, j)
	w.at(50*time.Millisecond, 3, nil)
	for w.step(t, next) {
		r.maxWaiting = max(r.maxWaiting, core.waiting)
	}
	if core.inUse != 0 || core.waiting != 0 || core.bytes != 0 {
		t.Fatalf("at rest: %d in use, %d waiting, %d bytes", core.inUse, core.waiting, core.bytes)
	}
	return r
}

func TestProbeOverload(t *testing.T) {
	exp := func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * 50e6) }
	fixed := func(*rand.Rand) time.Duration { return 50 * time.Millisecond }
	logn := func(r *rand.Rand) time.Duration {
		s2 := math.Log(1 + 1.41*1.41)
		return time.Duration(50e6 * math.Exp(-s2/2+math.Sqrt(s2)*r.NormFloat64()))
	}
	for _, sv := range []struct {
		name string
		f    func(*rand.Rand) time.Duration
	}{{"exp", exp}, {"fixed", fixed}, {"logn", logn}} {
		for _, slots := range []int{60, 8} {
			for _, load := range []float64{0.9, 0.95, 1, 1.05, 1.2, 1.5, 3, 10} {
				for _, dl := range []time.Duration{400 * time.Millisecond, 2 * time.Second} {
					for seed := uint64(1); seed <= 3; seed++ {
						length := 40 * time.Second
						cfg := Config{Limit: limit.Fixed(slots), Objective: 400 * time.Millisecond}
						r := run(t, cfg, sv.f, 50*time.Millisecond, load, dl, length, seed)
						cap := min(float64(r.offered), float64(slots)/0.05*length.Seconds())
						t.Logf("%s %d %5.2fx dl %v: goodput %.4f refused %.4f late %d p50 %v p99 %v told p50 %v p99 %v maxq %d %v", sv.name, slots, load, dl,
							float64(r.good)/cap, float64(r.refused)/float64(r.offered), r.late, quantile(r.latency, .5).Round(1e6), quantile(r.latency, .99).Round(1e6),
							quantile(r.told, .5), quantile(r.told, .99).Round(1e6), r.maxWaiting, r.reasons)
					}
				}
			}
		}
	}
}
