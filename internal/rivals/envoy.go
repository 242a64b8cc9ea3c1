package rivals

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/goodput/goodput/limit"
)

// Envoy is the gradient controller of Envoy's adaptive concurrency filter:
//
//	measure: limit Least until 50 requests that began since have ended; minRTT is their median
//	then every 100 ms with samples:
//	g     = 1.25 x minRTT / median, within 0.5 and 2
//	limit = g x limit + sqrt(g x limit)
//
// It measures at first, every Interval, longer by up to 15 %, and after the limit has been
// at Least for 5 windows in a row.
//
// Whatever is above Least while it measures is refused: at 1200 requests a second and 50 ms
// that takes a second, in which 5 % of the capacity are used.
type Envoy struct {
	From  int // after the first measurement: Least to Max, default Least
	Least int // of the limit, and to measure at: 1 to Max, default 3
	Max   int // default 1000

	// Interval is between two measurements: a second to a day, default a minute, as in
	// Envoy's example; it has no default there.
	Interval time.Duration
}

const (
	envoyWindow  = 100 * time.Millisecond
	envoySamples = 50
	envoyBuffer  = 1.25
	envoyJitter  = 0.15
	envoyAtLeast = 5 // windows
	// envoyPatience is how long a measurement waits for those who began before it. Envoy
	// tells each from the other; a window does not, and what never ends is not waited for.
	envoyPatience = 10 * time.Second
)

func (e Envoy) withDefaults() Envoy {
	if e.Max == 0 {
		e.Max = max(1000, e.From, e.Least)
	}
	if e.Least == 0 {
		e.Least = min(3, e.Max)
		if e.From > 0 {
			e.Least = min(e.Least, e.From)
		}
	}
	if e.From == 0 {
		e.From = e.Least
	}
	if e.Interval == 0 {
		e.Interval = time.Minute
	}
	return e
}

func (e Envoy) Start() (int, error) {
	d := e.withDefaults()
	switch {
	case d.Least < 1 || d.Max > limit.Max || d.Least > d.Max || d.From < d.Least || d.From > d.Max:
		return 0, fmt.Errorf("least %d, start %d, max %d of the envoy limit are out of range: 1 <= least <= start <= max <= %d", d.Least, d.From, d.Max, limit.Max)
	case d.Interval < time.Second || d.Interval > 24*time.Hour:
		return 0, fmt.Errorf("interval %v of the envoy limit is out of range: 1s to 24h, or 0 for a minute", e.Interval)
	}
	return d.Least, nil // it begins with a measurement
}

func (e Envoy) Begin(seed uint64) limit.State {
	e = e.withDefaults()
	return &envoy{
		Envoy: e, limit: e.Least, later: float64(e.From), measuring: true,
		rand: rand.New(rand.NewPCG(seed, 0)),
	}
}

func (e Envoy) String() string { return "envoy" }

type envoy struct {
	Envoy
	rand  *rand.Rand
	limit int
	why   string

	measuring bool
	older     time.Duration // how long it waits for those who began before
	later     float64       // the limit when the measurement is over

	times   tally
	length  time.Duration // of times
	minRTT  float64       // seconds
	left    time.Duration // until it measures again
	atLeast int           // windows in a row
}

func (s *envoy) Why() string { return s.why }

func (s *envoy) Next(current int, w *limit.Window) limit.Move {
	long := min(max(w.Length, 0), time.Hour)
	if s.measuring {
		return s.measure(w, long)
	}
	s.times.add(w)
	s.length += long
	s.left -= long
	if s.length >= envoyWindow && s.times.n > 0 {
		s.update()
		s.times.reset()
		s.length = 0
	}
	if s.left <= 0 || s.atLeast >= envoyAtLeast {
		s.atLeast = 0
		s.measuring, s.older, s.later = true, envoyPatience, float64(s.limit)
		s.times.reset()
		s.length = 0
		s.to(s.Least, "the shortest time is measured at %d", s.Least)
		return limit.Move{Limit: s.limit, Mark: true}
	}
	return limit.Move{Limit: s.limit}
}

// measure waits until all who began before have ended, in windows before this one, and
// then takes the median of the next 50.
func (s *envoy) measure(w *limit.Window, long time.Duration) limit.Move {
	if s.older > 0 {
		if s.older -= long; !(w.Epochs[1].Left() > 0) {
			s.older = 0
		}
		return limit.Move{Limit: s.limit}
	}
	s.times.add(w)
	if s.times.n < envoySamples {
		return limit.Move{Limit: s.limit}
	}
	s.minRTT = s.times.quantile(0.5)
	n := s.times.n
	s.times.reset()
	s.measuring, s.length = false, 0
	s.left = s.Interval + time.Duration(s.rand.Float64()*envoyJitter*float64(s.Interval))
	s.to(int(s.later), "shortest %.3gms measured by %.0f samples", s.minRTT*1e3, n)
	return limit.Move{Limit: s.limit}
}

func (s *envoy) update() {
	median := s.times.quantile(0.5)
	g := min(max(envoyBuffer*s.minRTT/median, 0.5), 2)
	to := g * float64(s.limit)
	next := int(min(max(to+math.Sqrt(to), float64(s.Least)), float64(s.Max)))
	if next == s.Least && s.limit == s.Least {
		s.atLeast++
	} else {
		s.atLeast = 0
	}
	s.to(next, "gradient %.2f = 1.25 x %.3gms / %.3gms of %.0f samples", g, s.minRTT*1e3, median*1e3, s.times.n)
}

func (s *envoy) to(n int, format string, of ...any) {
	if n != s.limit {
		s.why = fmt.Sprintf("envoy: %d -> %d: %s", s.limit, n, fmt.Sprintf(format, of...))
		s.limit = n
	}
}
