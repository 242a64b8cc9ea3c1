package limit_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/goodput/goodput/limit"
)

// A supply is a resource in a few lines of arithmetic, and what a limiter in front of it would
// tell its law: no event is played, so that a test may run hours of it. It serves capacity
// units at once, each for service seconds, others wait there, and limit units are in use as
// long as enough are offered. Package sim has the real thing.
type supply struct {
	capacity, service float64
	offered           float64 // a second
	cv                float64 // of the time that one takes
	takes             float64 // units that it takes at once, if it has a limit of its own: the rest is refused
	pressure          float64
	still             time.Duration // the longest time without an end in the next window

	state limit.State
	limit int
	now   float64
	rand  *rand.Rand
	open  [2]stretch // the current epoch and the one before
	marks int
	w     limit.Window
}

// A stretch is an epoch of it. What is admitted in one takes the same, and by how much that
// differs from the mean by chance is drawn when it begins.
type stretch struct{ begun, over, admitted, arrived, delayed, inFlight, took, dropped, chance float64 }

const tick = 0.05

func newSupply(law limit.Law, seed uint64, capacity, service, offered float64) *supply {
	start, err := law.Start()
	if err != nil {
		panic(err)
	}
	s := &supply{
		capacity: capacity, service: service, offered: offered, cv: 0.4, takes: math.Inf(1),
		state: law.Begin(seed), limit: start, rand: rand.New(rand.NewPCG(seed, 8)),
	}
	s.w = limit.Window{Length: 50 * time.Millisecond, Objective: 400 * time.Millisecond}
	s.w.Times = s.times
	return s
}

// step is a window. It returns what the law says at its end.
func (s *supply) step() limit.Move {
	n := float64(s.limit)
	took := s.service * max(1, n/s.capacity)
	rate := n / took
	if rate > s.offered { // nobody waits
		rate, n, took = s.offered, s.offered*s.service, s.service
	}
	s.now += tick
	e := &s.open[0]
	e.over, e.took = s.now, took
	e.inFlight = (e.inFlight*e.admitted + n*rate*tick) / (e.admitted + rate*tick)
	e.admitted += rate * tick
	e.arrived += s.offered * tick
	e.delayed += (s.offered - rate) * tick
	e.dropped = max(0, 1-s.takes/n)
	w := &s.w
	w.Arrived, w.Delayed, w.Peak, w.Running = s.offered*tick, (s.offered-rate)*tick, int(n), int(n)
	w.Samples = int(rate * tick * (1 - e.dropped))
	w.Ended, w.Dropped = int(rate*tick), int(rate*tick)-w.Samples
	w.Mean = time.Duration(took * 1e9)
	w.Own, w.Quiet, w.Pressure = w.Mean, 5*time.Millisecond+s.still, s.pressure
	s.still = 0
	for i := range s.open {
		s.open[i].show(s.now, s.cv, &w.Epochs[i])
	}
	m := s.state.Next(s.limit, w)
	s.limit = m.Limit
	if m.Mark {
		s.marks++
		s.open[1] = s.open[0]
		s.open[0] = stretch{begun: s.now, chance: s.rand.NormFloat64()}
	}
	return m
}

// show is what is known of it at now: of what was admitted evenly, what began longer ago than
// it takes has ended.
func (e *stretch) show(now, cv float64, to *limit.Epoch) {
	*to = limit.Epoch{}
	if e.admitted == 0 {
		return
	}
	ended := e.admitted * min(max((now-e.took-e.begun)/(e.over-e.begun), 0), 1)
	*to = limit.Epoch{
		Length: seconds(e.over - e.begun), Age: seconds(now - (e.begun+e.over)/2),
		Admitted: e.admitted, InFlight: e.inFlight, Arrived: e.arrived, Delayed: e.delayed,
		Ended: ended, Dropped: ended * e.dropped, Samples: ended * (1 - e.dropped), Served: ended * (1 - e.dropped),
	}
	if to.Samples > 0 {
		to.Mean = seconds(e.took * max(0.1, 1+e.chance*cv/math.Sqrt(max(to.Samples, 1))))
		to.Spread = seconds(e.took * cv)
	}
}

// times are three, whose shortest are as long as the wait and half of the service.
func (s *supply) times(yield func(time.Duration, float64) bool) {
	wait, n := s.w.Mean.Seconds()-s.service, float64(s.w.Samples)/3
	for _, f := range [3]float64{0.5, 1, 1.5} {
		if !yield(seconds(wait+f*s.service), n) {
			return
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }

// run plays so many seconds, and returns the mean of the limit and its deviation.
func (s *supply) run(length float64) (mean, deviation float64) {
	var sum, square, n float64
	for end := s.now + length; s.now < end; n++ {
		s.step()
		sum += float64(s.limit)
		square += float64(s.limit) * float64(s.limit)
	}
	return sum / n, math.Sqrt(max(square/n-sum*sum/n/n, 0))
}
