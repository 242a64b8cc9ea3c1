package limit

import (
	"math"
	"math/rand/v2"
	"time"
)

// Vegas is the law of TCP Vegas: it estimates how many of those in flight are not served
// but wait, from the ratio of the mean service time to the shortest one that was seen, and
// keeps that number between two bounds (Brakmo and Peterson, "TCP Vegas", IEEE JSAC 13(8),
// 1995). Constants and rule are those of VegasLimit in
// github.com/Netflix/concurrency-limits, behind its WindowedLimit. With l = log10(limit),
// rounded down, at least 1:
//
//	once a second, if at least 10 requests ended in it:
//	queue = ceil(limit x (1 - shortest/mean)), shortest being the smallest such mean
//	something was dropped:              limit - l
//	less than half was in use at once:  stays
//	queue <= l:                         limit + Beta l
//	queue <  Alpha l:                   limit + l
//	queue >  Beta l:                    limit - l
//
// The shortest is measured anew after Probe x limit x (0.5 to 1, drawn) such seconds.
//
// Use it before a resource whose service time hardly varies: with a fixed 50 ms and 60
// slots it holds 95 % and more of the capacity.
//
// Known failure: the shortest of what it has seen is taken for the time without a queue, so
// where times vary all in flight seem to wait. In 20 s from a start at 20, at 3 times
// the capacity, a port of it that looks at the minima of seconds reached .86 of the
// capacity with a fixed service time and .29 with an exponential one; after 90 s the latter was
// .11. The means of a thousand times, as here, vary less: .48, and after a minute .3
// to 1, from run to run, as the lowest mean fell. With ten times a second the limit
// falls to a few. And a service that becomes slower for good is a queue, until the
// shortest is measured anew, after ten minutes or more.
type Vegas struct {
	From int // before anything has been measured: 1 to Max, default 20
	Min  int // default 1
	Max  int // default 1000, or From if that is higher

	Alpha     float64       // below so many decades of queue it rises: 0.1 to 100, default 3
	Beta      float64       // above so many it falls; Alpha to 100, default 6
	Smoothing float64       // how much of a move is made: 0.01 to 1, default 1
	Probe     int           // 1 to 1,000,000 seconds per unit of the limit, default 30
	Window    time.Duration // of one sample: 100 ms to an hour, default 1 s
}

var vegasSpan = span{publishedFrom, 1, 1000}

func (v Vegas) withDefaults() Vegas {
	s := span{v.From, v.Min, v.Max}.or(vegasSpan)
	return Vegas{
		From: s.from, Min: s.low, Max: s.high,
		Alpha: or(v.Alpha, 3), Beta: or(v.Beta, max(6, v.Alpha)),
		Smoothing: or(v.Smoothing, 1),
		Probe:     or(v.Probe, 30),
		Window:    or(v.Window, publishedWindow),
	}
}

// Start returns the limit before anything has been measured.
func (v Vegas) Start() (int, error) {
	err := first(
		span{v.From, v.Min, v.Max}.check("vegas", vegasSpan),
		checkAll("vegas",
			constant{"alpha", v.Alpha, 0.1, 100},
			constant{"beta", v.Beta, or(v.Alpha, 3), 100},
			constant{"smoothing", v.Smoothing, 0.01, 1},
			constant{"probe", float64(v.Probe), 1, 1e6}),
		checkTime("vegas", "window", v.Window, shortestWindow, longestWindow),
	)
	if err != nil {
		return 0, err
	}
	return v.withDefaults().From, nil
}

// Begin returns the state of one limiter. When it measures the shortest time anew follows
// from seed.
func (v Vegas) Begin(seed uint64) State {
	v = v.withDefaults()
	s := &vegas{
		Vegas:  v,
		course: course{law: "vegas", exact: float64(v.From), low: v.Min, high: v.Max},
		rand:   rand.New(rand.NewPCG(seed, 0)),
	}
	s.jitter = s.draw()
	return s
}

// String returns "vegas".
func (v Vegas) String() string { return "vegas" }

// A vegas is a Vegas at work.
type vegas struct {
	Vegas
	course
	rand     *rand.Rand
	jitter   float64 // 0.5 to 1
	seen     float64 // samples since the shortest was measured anew
	shortest float64 // seconds; 0: none yet
}

// rounding is what of a request in the queue is none: where all times are equal, means differ
// by a nanosecond, and that is not one more.
const rounding = 1e-4

func (s *vegas) draw() float64 { return 0.5 + s.rand.Float64()/2 }

func (s *vegas) Next(current int, w *Window) Move {
	s.begin(current)
	r, ok := s.spell.add(w, s.Window)
	if !ok {
		return s.stay()
	}
	l := decade(s.exact)
	if r.mean == 0 {
		return s.drop(&r, l)
	}
	if s.seen++; s.jitter*float64(s.Probe)*s.exact <= s.seen {
		s.jitter, s.seen, s.shortest = s.draw(), 0, r.mean
		return s.stay()
	}
	if s.shortest == 0 || r.mean < s.shortest {
		s.shortest = r.mean
		return s.stay()
	}
	queue := max(math.Ceil(s.exact*(1-s.shortest/r.mean)-rounding), 0)
	say := func(by float64, than string, bound float64) Move {
		return s.by(by, "queue estimate %.0f %s %.3g; shortest %s, now %s of %.0f samples", queue, than, bound, ms(s.shortest), ms(r.mean), r.samples)
	}
	switch {
	case r.dropped > 0:
		return s.drop(&r, l)
	case 2*float64(r.peak) < s.exact:
		return s.stay()
	case queue <= l:
		return say(s.Beta*l, "is at most", l)
	case queue < s.Alpha*l:
		return say(l, "is below", s.Alpha*l)
	case queue > s.Beta*l:
		return say(-l, "is above", s.Beta*l)
	}
	return s.stay()
}

func (s *vegas) drop(r *reading, l float64) Move {
	return s.by(-l, "%.0f of %.0f dropped", r.dropped, r.dropped+r.samples)
}

// by moves the limit by so much, or by the part of it that smoothing leaves.
func (s *vegas) by(d float64, format string, of ...any) Move {
	goal := min(max(s.exact+d, float64(s.low)), float64(s.high))
	return s.to(s.exact+s.Smoothing*(goal-s.exact), format, of...)
}
