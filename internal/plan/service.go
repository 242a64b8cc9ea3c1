package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goodput/goodput/internal/sim"
)

// Shape is the family of a service time.
type Shape uint8

const (
	// Exponential is what a service of unknown shape is taken for: its standard
	// deviation is its mean, as it roughly is where caches, queries and pages of
	// all sizes meet.
	Exponential Shape = iota
	// Fixed always takes its mean.
	Fixed
	// Lognormal has the coefficient of variation CV.
	Lognormal
	// Tailed is known by its mean and its 99th percentile. It is the lognormal
	// that has both. None has if the percentile is more than 15 times the mean:
	// then most of the work is exponential and one request in fifty, another class
	// of work in truth, takes P99.
	Tailed
)

// A Service is a service time, from slot to response.
type Service struct {
	Mean  time.Duration // 1 µs to 1 h
	Shape Shape
	CV    float64       // of Lognormal: standard deviation / mean, 0.01 to 10
	P99   time.Duration // of Tailed: the mean to 50 times the mean
}

// A Class is one kind of work among those that share a limit.
type Class struct {
	Name    string
	Service Service
	Share   float64 // of the requests, relative to the other classes
}

// String returns "50ms exponential", "50ms lognormal of CV 2".
func (s Service) String() string {
	switch s.Shape {
	case Fixed:
		return brief(s.Mean.Seconds()) + " fixed"
	case Lognormal:
		return fmt.Sprintf("%s lognormal of CV %.3g", brief(s.Mean.Seconds()), s.CV)
	case Tailed:
		return fmt.Sprintf("%s with a p99 of %s", brief(s.Mean.Seconds()), brief(s.P99.Seconds()))
	}
	return brief(s.Mean.Seconds()) + " exponential"
}

// Validate returns one sentence about what is out of range, or nil.
func (s Service) Validate() error {
	switch {
	case s.Mean < time.Microsecond || s.Mean > time.Hour:
		return fmt.Errorf("service %v is out of range: 1µs to 1h", s.Mean)
	case s.Shape == Lognormal && !(s.CV >= 0.01 && s.CV <= 10):
		return fmt.Errorf("service CV %v is out of range: 0.01 to 10", s.CV)
	case s.Shape == Tailed && (s.P99 < s.Mean || s.P99 >= 50*s.Mean):
		return fmt.Errorf("service p99 %v does not fit a mean of %v: 1 to 50 times the mean is possible, as one request in fifty that takes 50 times the mean is all the work there is", s.P99, s.Mean)
	case s.Shape > Tailed:
		return fmt.Errorf("service shape %d is unknown", s.Shape)
	}
	return nil
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// slowShare is the share of the second class of a Tailed service: twice the hundredth
// that the 99th percentile leaves, so that it is P99 and not a hair above or below.
const slowShare = 0.02

// classes returns what a service is made of: itself, or the parts of a Tailed one.
func (s Service) classes() []Class {
	if s.Shape != Tailed {
		return []Class{{Service: s, Share: 1}}
	}
	// The lognormal of mean m and sigma s has its p99 at m exp(z s - s^2/2): the
	// smaller root for the ratio of the two.
	if root := z99*z99 - 2*math.Log(float64(s.P99)/float64(s.Mean)); root >= 0 {
		sigma := z99 - math.Sqrt(root)
		cv := math.Sqrt(math.Expm1(sigma * sigma))
		if cv < 0.01 {
			return []Class{{Service: Service{Mean: s.Mean, Shape: Fixed}, Share: 1}}
		}
		return []Class{{Service: Service{Mean: s.Mean, Shape: Lognormal, CV: cv}, Share: 1}}
	}
	rest := (float64(s.Mean) - slowShare*float64(s.P99)) / (1 - slowShare)
	return []Class{
		{Service: Service{Mean: time.Duration(rest)}, Share: 1 - slowShare},
		{Service: Service{Mean: s.P99, Shape: Fixed}, Share: slowShare},
	}
}

// at returns the u-quantile in seconds, 0 < u < 1, of what is not Tailed.
func (s Service) at(u float64) float64 {
	mean := s.Mean.Seconds()
	switch s.Shape {
	case Fixed:
		return mean
	case Lognormal:
		s2 := math.Log1p(s.CV * s.CV)
		return mean * math.Exp(-s2/2+math.Sqrt(2*s2)*math.Erfinv(2*u-1))
	}
	return -mean * math.Log1p(-u)
}

// strata is how many evenly spaced quantiles stand for a distribution: as the
// tests of the core do, so that a plan carries no noise of sampling.
const strata = 100_000

// A work is the distribution of what one limiter serves, as sorted samples in
// seconds.
type work struct {
	sorted []float64
	mean   float64 // exact
	cv2    float64 // squared coefficient of variation of the samples
	dist   sim.Dist
}

// mix returns the work of classes that share a limit.
func mix(classes []Class) *work {
	var parts []Class
	total := 0.0
	for _, c := range classes {
		for _, p := range c.Service.classes() {
			p.Share *= c.Share
			parts = append(parts, p)
			total += p.Share
		}
	}
	w := &work{}
	for _, p := range parts {
		n := max(1, int(math.Round(p.Share/total*strata)))
		for i := range n {
			w.sorted = append(w.sorted, p.Service.at((float64(i)+0.5)/float64(n)))
		}
		w.mean += p.Share / total * p.Service.Mean.Seconds()
	}
	slices.Sort(w.sorted)
	var sum, squares float64
	for _, s := range w.sorted {
		sum += s
		squares += s * s
	}
	n := float64(len(w.sorted))
	w.cv2 = max(0, squares/n/(sum/n)/(sum/n)-1)
	w.dist = w.simulated(parts)
	return w
}

// simulated returns the work as the simulator draws it: exactly for one family,
// as draws from the samples for a mixture.
func (w *work) simulated(parts []Class) sim.Dist {
	if len(parts) == 1 {
		s := parts[0].Service
		kind := map[Shape]sim.Kind{Exponential: sim.Exponential, Fixed: sim.Fixed, Lognormal: sim.Lognormal}[s.Shape]
		return sim.Dist{Kind: kind, Mean: s.Mean, CV: s.CV}
	}
	return w.drawn()
}

// drawn returns the work as draws from every tenth of its samples.
func (w *work) drawn() sim.Dist {
	d := sim.Dist{Kind: sim.Empirical}
	for i := 5; i < len(w.sorted); i += 10 {
		d.Samples = append(d.Samples, seconds(w.sorted[i]))
	}
	return d
}

// stretched returns w with every time k times as long.
func (w *work) stretched(k float64) *work {
	s := &work{sorted: make([]float64, len(w.sorted)), mean: seconds(k * w.mean).Seconds(), cv2: w.cv2}
	for i, v := range w.sorted {
		s.sorted[i] = k * v
	}
	return s
}

// slowest returns which part of all work the slowest share of the requests is.
func (w *work) slowest(share float64) float64 {
	var all, tail float64
	from := int(float64(len(w.sorted)) * (1 - share))
	for i, s := range w.sorted {
		all += s
		if i >= from {
			tail += s
		}
	}
	return tail / all
}

// longer returns the share of requests whose service alone takes longer than t
// seconds.
func (w *work) longer(t float64) float64 {
	i, _ := slices.BinarySearch(w.sorted, math.Nextafter(t, math.Inf(1)))
	return 1 - float64(i)/float64(len(w.sorted))
}

// seconds converts from seconds, to the nearest nanosecond; what is longer than
// 292 years becomes that.
func seconds(s float64) time.Duration {
	if ns := s * float64(time.Second); ns < math.MaxInt64 {
		return time.Duration(math.Round(ns))
	}
	return math.MaxInt64
}
