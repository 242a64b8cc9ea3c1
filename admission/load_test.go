package admission

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A load is an open-loop run: Poisson arrivals of cost 1 at a multiple of what
// the slots can serve, for a length of virtual time, then drained.
type load struct {
	slots     int
	cost      int // of each request; 0: 1. The limit is slots x cost
	mean      time.Duration
	shape     shape
	times     float64                        // offered over capacity
	rate      func(at time.Duration) float64 // if set, times at an instant; at most times
	deadline  time.Duration                  // 0: none
	blind     bool                           // the core is not told the deadlines
	deadlines []time.Duration                // if set, drawn from these
	length    time.Duration
	skip      time.Duration // what arrives before is not counted
	objective time.Duration // 0: 400 ms
	law       limit.Law     // nil: a fixed limit of slots x cost
	config    Config        // Limit and Objective are filled in
	seed      uint64
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
			root: at, arrival: at, deadline: Never, blind: l.blind, cost: l.cost, attempt: 1,
			service: time.Duration(l.shape.draw(service) * float64(l.mean)),
		}
		if l.deadline > 0 {
			j.deadline = at + l.deadline
		}
		if n := len(l.deadlines); n > 0 {
			if d := l.deadlines[arrivals.IntN(n)]; d != Never {
				j.deadline = at + d
			}
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
	l.cost = max(l.cost, 1)
	l.config.Limit, l.config.Objective = limit.Fixed(l.slots*l.cost), l.objective
	if l.law != nil {
		l.config.Limit = l.law
	}
	core, err := New(l.config)
	if err != nil {
		t.Fatal(err)
	}
	r := &result{core: core, capacity: float64(l.slots) * (l.length - l.skip).Seconds()}
	w := &world{TB: t, core: core, next: l.source()}
	w.each = func() { r.deepest = max(r.deepest, core.cost) }
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
