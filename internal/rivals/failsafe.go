package rivals

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goodput/goodput/limit"
)

// Failsafe is the adaptive limiter of github.com/failsafe-go/failsafe-go, v0.9.8, with its
// defaults:
//
//	once a second, or in twice the shortest time, to 30 s, if there are 50 samples:
//	recent   = p90, median of the last 5 such, exponential average over 5
//	baseline = exponential average of recent over 10
//	queue    = ceil(limit x (1 - baseline/recent));  l = log10(limit), rounded down, at least 1
//	limit - l:  queue > 6 l, or, while all slots are taken, one of
//	            in flight and throughput are correlated below 0;
//	            below 0.3, and in flight and recent above 0.5;
//	            throughput has a CV below 0.2, and in flight and recent are correlated above 0.5
//	limit + l:  queue < 3 l
//	at most 5 x what was in flight at once
//
// Throughput is not measured in it: it is in flight / recent. Correlations are over 50 such
// seconds, 0 before there are 10, and where one of the two varies by less than 1 %.
//
// The first 50 samples are taken as soon as they are there. Those are the short ones, so the
// baseline begins low, and for some ten seconds what comes looks like a queue.
//
// The baseline follows what is recent, so after some ten seconds what is slow is normal.
type Failsafe struct {
	From int // before anything has been measured: Min to Max, default 20
	Min  int // default 1
	Max  int // default 200, or From if that is higher
}

const (
	failsafeWindow  = time.Second
	failsafeLongest = 30 * time.Second
	failsafeSamples = 50
	failsafeWarm    = 10
	failsafeRecent  = 5
	failsafeBase    = 10
	failsafePairs   = 50
	failsafeTimes   = 5 // what was in flight at once
)

func (f Failsafe) withDefaults() Failsafe {
	if f.Max == 0 {
		f.Max = max(200, f.From, f.Min)
	}
	if f.Min == 0 {
		f.Min = 1
	}
	if f.From == 0 {
		f.From = min(max(20, f.Min), f.Max)
	}
	return f
}

func (f Failsafe) Start() (int, error) {
	d := f.withDefaults()
	if d.Min < 1 || d.From < d.Min || d.From > d.Max || d.Max > limit.Max {
		return 0, fmt.Errorf("min %d, start %d, max %d of the failsafe limit are out of range: 1 <= min <= start <= max <= %d", d.Min, d.From, d.Max, limit.Max)
	}
	return d.From, nil
}

func (f Failsafe) Begin(uint64) limit.State {
	f = f.withDefaults()
	return &failsafe{
		Failsafe: f, limit: float64(f.From),
		recent: newMean(failsafeRecent, failsafeWarm),
		base:   newMean(failsafeBase, failsafeWarm),
	}
}

func (f Failsafe) String() string { return "failsafe" }

type failsafe struct {
	Failsafe
	limit float64
	why   string

	times  tally
	peak   int
	length time.Duration
	next   time.Duration // how long the window is to be; the first ends with its 50th sample

	last         [failsafeRecent]float64 // p90, in a ring
	at, seen     int
	recent, base mean
	rtt, flow    pairs // of what is in flight with recent, and with throughput
}

func (s *failsafe) Why() string { return s.why }

func (s *failsafe) Next(current int, w *limit.Window) limit.Move {
	if current != int(s.limit) {
		s.limit = float64(min(max(current, s.Min), s.Max))
	}
	s.times.add(w)
	s.peak = min(max(s.peak, w.Peak), limit.Max)
	s.length = min(s.length+max(w.Length, 0), time.Hour)
	if s.length >= s.next && s.times.n >= failsafeSamples {
		recent := s.recent.add(s.median(s.times.quantile(0.9)))
		s.update(recent, w.Running >= int(s.limit))
		s.next = min(max(time.Duration(2*s.times.shortest()*1e9), failsafeWindow), failsafeLongest)
		s.times.reset()
		s.peak, s.length = 0, 0
	}
	return limit.Move{Limit: int(s.limit)}
}

// median returns that of the last five, v included; before there are five, v.
func (s *failsafe) median(v float64) float64 {
	s.last[s.at] = v
	s.at = (s.at + 1) % len(s.last)
	if s.seen < len(s.last)-1 {
		s.seen++
		return v
	}
	five := s.last
	slices.Sort(five[:])
	return five[len(five)/2]
}

func (s *failsafe) update(recent float64, full bool) {
	base := s.base.add(recent)
	queue := math.Ceil(s.limit*(1-base/recent) - 1e-6)
	flight := float64(s.peak)
	rate := flight / recent
	flow, cv := s.flow.add(flight, rate)
	rtt, _ := s.rtt.add(flight, recent)
	l := math.Floor(math.Log10(s.limit + 1e-6))
	l = max(l, 1)

	to, why := s.limit, fmt.Sprintf("queue estimate %.0f of 3 x %.0f to 6 x %.0f", queue, l, l)
	switch {
	case queue > 6*l:
		to -= l
	case full && flow < 0:
		to, why = to-l, fmt.Sprintf("throughput falls with what is in flight: correlation %.2f", flow)
	case full && flow < 0.3 && rtt > 0.5:
		to, why = to-l, fmt.Sprintf("time rises with what is in flight: correlation %.2f, that of throughput %.2f", rtt, flow)
	case full && cv < 0.2 && rtt > 0.5:
		to, why = to-l, fmt.Sprintf("time rises with what is in flight: correlation %.2f, throughput has a CV of %.2f", rtt, cv)
	case queue < 3*l:
		to += l
	}
	if most := failsafeTimes * flight; to > most {
		why = fmt.Sprintf("at most %d x the %.0f in flight", failsafeTimes, flight)
		if to = most; s.limit > most {
			to = s.limit - l
		}
	}
	to = min(max(to, float64(s.Min)), float64(s.Max))
	if int(to) != int(s.limit) {
		s.why = fmt.Sprintf("failsafe: %d -> %d: %s; baseline %.3gms, recent %.3gms", int(s.limit), int(to), why, base*1e3, recent*1e3)
	}
	s.limit = to
}

// pairs are the last of two values that may be correlated.
type pairs struct {
	x, y [failsafePairs]float64
	n    int
	at   int
}

// add counts a pair and returns the correlation of all, and the coefficient of variation
// of y. A pair with a 0 is none.
func (p *pairs) add(x, y float64) (corr, cv float64) {
	if x != 0 && y != 0 {
		p.x[p.at], p.y[p.at] = x, y
		p.at = (p.at + 1) % failsafePairs
		p.n = min(p.n+1, failsafePairs)
	}
	if p.n < failsafeWarm {
		return 0, 0
	}
	n := float64(p.n)
	var mx, my float64
	for i := range p.n {
		mx += p.x[i] / n
		my += p.y[i] / n
	}
	var vx, vy, vxy float64
	for i := range p.n {
		dx, dy := p.x[i]-mx, p.y[i]-my
		vx += dx * dx / n
		vy += dy * dy / n
		vxy += dx * dy / n
	}
	const least = 0.01
	if cv = math.Sqrt(vy) / my; math.Sqrt(vx)/mx < least || cv < least {
		return 0, cv
	}
	return vxy / math.Sqrt(vx*vy), cv
}
