package limit

import "time"

// Gradient2 is the law that compares the service time of the last second with its own long
// average: while the ratio is within a tolerance it adds a few, beyond it shrinks in
// proportion, and it does a fifth of either. Constants and rule are those of
// Gradient2Limit in github.com/Netflix/concurrency-limits, behind its WindowedLimit:
//
//	once a second, if at least 10 requests ended in it:
//	long = exponential average of such means over Long of them; x Drift while it is above twice the mean
//	less than half of the limit was in use at once:  stays
//	g = Tolerance x long/mean, within 0.5 and 1
//	limit = (1 - Smoothing) limit + Smoothing (g x limit + Queue)
//
// What the resource drops changes nothing, as published.
//
// Use it where service times vary and the capacity is within Min and Max, a few
// dozen slots: of the published laws it bears variance best.
//
// Known failures: it climbs by Smoothing x Queue = 0.8 a second, so from 20 to 60 takes
// 50 s, and .41 of the capacity is used in the first 20 s of an overload. And a dependency
// that becomes twice as slow looks like a queue: g is 0.75, and the limit falls
// towards Queue/(1 - g) = 16 whatever the capacity is, from 106 to 34 within a minute, with
// 69 % of what could be served.
type Gradient2 struct {
	From int // before anything has been measured: 1 to Max, default 20
	Min  int // default 20, or From if that is lower
	Max  int // default 200, or From if that is higher

	Queue     int           // how much it adds: 1 to 1,000,000, default 4
	Tolerance float64       // of the ratio: 1 to 100, default 1.5
	Smoothing float64       // how much of a move is made: 0.01 to 1, default 0.2
	Long      int           // samples of the long average: 10 to 1,000,000, default 600
	Drift     float64       // of the long average above twice the mean: 0.1 to 1, default 0.95
	Window    time.Duration // of one sample: 100 ms to an hour, default 1 s
}

var gradient2Span = span{publishedFrom, 20, 200}

func (g Gradient2) withDefaults() Gradient2 {
	s := span{g.From, g.Min, g.Max}.or(gradient2Span)
	return Gradient2{
		From: s.from, Min: s.low, Max: s.high,
		Queue:     or(g.Queue, 4),
		Tolerance: or(g.Tolerance, 1.5),
		Smoothing: or(g.Smoothing, 0.2),
		Long:      or(g.Long, 600),
		Drift:     or(g.Drift, 0.95),
		Window:    or(g.Window, publishedWindow),
	}
}

// Start returns the limit before anything has been measured.
func (g Gradient2) Start() (int, error) {
	err := first(
		span{g.From, g.Min, g.Max}.check("gradient2", gradient2Span),
		checkAll("gradient2",
			constant{"queue", float64(g.Queue), 1, 1e6},
			constant{"tolerance", g.Tolerance, 1, 100},
			constant{"smoothing", g.Smoothing, 0.01, 1},
			constant{"long", float64(g.Long), longWarm, 1e6},
			constant{"drift", g.Drift, 0.1, 1}),
		checkTime("gradient2", "window", g.Window, shortestWindow, longestWindow),
	)
	if err != nil {
		return 0, err
	}
	return g.withDefaults().From, nil
}

// Begin returns the state of one limiter. Nothing in it is random.
func (g Gradient2) Begin(uint64) State {
	g = g.withDefaults()
	return &gradient2{Gradient2: g, course: course{law: "gradient2", exact: float64(g.From), low: g.Min, high: g.Max}}
}

// String returns "gradient2".
func (g Gradient2) String() string { return "gradient2" }

// longWarm is of how many samples the long average is the plain mean, at first.
const longWarm = 10

// A gradient2 is a Gradient2 at work.
type gradient2 struct {
	Gradient2
	course
	long float64 // seconds
	seen float64 // samples in it, to longWarm
	sum  float64 // of those
}

func (s *gradient2) Next(current int, w *Window) Move {
	s.begin(current)
	r, ok := s.spell.add(w, s.Window)
	if !ok || r.mean == 0 {
		return s.stay()
	}
	if s.seen < longWarm {
		s.seen++
		s.sum += r.mean
		s.long = s.sum / s.seen
	} else {
		s.long += 2 / float64(s.Long+1) * (r.mean - s.long)
	}
	long := s.long
	if long > 2*r.mean {
		s.long *= s.Drift
	}
	if 2*float64(r.peak) < s.exact {
		return s.stay()
	}
	g := min(max(s.Tolerance*long/r.mean, 0.5), 1)
	return s.to(s.exact+s.Smoothing*(g*s.exact+float64(s.Queue)-s.exact),
		"gradient %.2f = %.3g x long %s / now %s of %.0f samples, + %d", g, s.Tolerance, ms(long), ms(r.mean), r.samples, s.Queue)
}
