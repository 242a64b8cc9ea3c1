package admission

import (
	"math"
	"slices"
	"time"

	"github.com/goodput/goodput/internal/hist"
)

// What the size of a request says about its service time.
//
// A size is a promise of the caller: a number of rows, of tokens, of milliseconds.
// Some are exact, some say little, and to believe a wrong one is worse than to have
// none. So they are compared with what happened, over the last maxPairs requests at
// most, and by the size that was offered, since no other is known at the door.
//
//	mean                   is what is predicted without a size
//	size x mean/mean size  is what a size is for, and believed before there is evidence
//	base + each x size     by least squares, both at least 0: a call has a cost of its own
//
// The error of a prediction is the variance of the logarithm of service time over
// prediction, which no single long request can dominate. Of the last two the better
// one is taken, and trusted if sizes are correlated with the service times. It is then
// right on average for each size, however little of the rest it knows. That is worth
// much: the prompt of a request to a language model explains 3 % of the variance of
// its service time, and who prefers those of which less is expected answers a quarter
// more of them in time. If sizes are not correlated, and worse than the mean, they are
// ignored, and all is as if nobody had given one.
type sizing struct {
	use       SizeUse
	base      float64 // predicted seconds of service of any request
	each      float64 // and per unit of size
	mean      float64 // service time, seconds
	held      float64 // time that a slot is held, over the service time; at least 1
	explained float64 // part of the variance of the service times, 0 to 1

	last   []pair // the last ones, at most maxPairs
	next   int    // where the next one goes once there are so many
	fresh  int    // since the last fit
	size   float32
	same   int       // consecutive ones of that size: as many as there are, and nothing varies
	ratios []float32 // of service time to prediction, rising; while trusted
	times  []float32 // service times, seconds, rising
	cells  *[hist.N]cell
}

// A SizeUse says what sizes are used for. A size that is the cost, as it is by default, is
// not judged, and goes on to scale: to give way for its cost is not what a costly request
// without a size has asked for.
type SizeUse uint8

const (
	SizeScales  SizeUse = iota // service times are taken to be in proportion: nothing is known to the contrary
	SizeTrusted                // they predict service times: who is predicted to take long gives way
	SizeIgnored                // they do not, and a request takes as long as any other
)

// String returns the word used in logs.
func (u SizeUse) String() string {
	switch u {
	case SizeScales:
		return "scales"
	case SizeTrusted:
		return "trusted"
	case SizeIgnored:
		return "ignored"
	}
	return "size use(?)"
}

// A pair is the size that a request offered, and what it took in seconds.
type pair struct{ size, service, hold float32 }

const (
	// maxPairs make a fit. The standard error of its correlation is 1/32, and that of
	// the p99 of exponential ratios 7 %. 12 KiB, if there are so many.
	maxPairs = 1024

	// windowPairs of a window are kept, evenly spread over it: at windows of 50 ms
	// maxPairs are the last 1.6 s or more.
	windowPairs = 32

	// A fit is repeated when a part of the pairs is new: the logarithms of 1024
	// pairs, and sorting them, take 0.2 ms, which is 3 µs for each new one.
	refitParts = 16

	// fewestPairs: with 20, exact sizes have proved it. Others take longer.
	fewestPairs = 20

	// Of sizes that say nothing the correlation with n service times has the variance
	// 1/(n-1), whatever the distributions (Pitman, "Significance tests which may be
	// applied to samples from any populations II", 1937). Two standard deviations
	// are evidence, which comes by chance once in 44 times, and then the slope of
	// the fit is so small that who is chosen matters little; under one it is gone.
	// With three, the prompts of the trace of TestAzureSizes took 600 requests to be
	// trusted instead of 280.
	correlated = 2 * 2
	unrelated  = 1 * 1

	// Predictions that differ by less than 10 %, one standard deviation, are not
	// worth a choice; half of that, once they are trusted.
	worthAChoice  = 0.1 * 0.1
	worthNoChoice = 0.05 * 0.05

	// Sizes are ignored if the error of a proportion is more than 10 % above that
	// of the mean, and until it is no longer above.
	misleading = 1.1
)

// pairs are those of a Batch: of each so many requests one, the others are skipped.
type pairs struct {
	list  [windowPairs]pair
	n     int
	every int // a power of two; 0 means 1
	skip  int // how many before the next
}

func (p *pairs) add(size int, service, hold time.Duration) {
	if p.skip > 0 {
		p.skip--
		return
	}
	p.keep(pair{float32(size), float32(service.Seconds()), float32(hold.Seconds())})
	p.skip = max(p.every, 1) - 1
}

func (p *pairs) keep(x pair) {
	if p.n == windowPairs { // every second is enough
		for i := range windowPairs / 2 {
			p.list[i] = p.list[2*i]
		}
		p.n, p.every = windowPairs/2, 2*max(p.every, 1)
	}
	p.list[p.n] = x
	p.n++
}

func (p *pairs) merge(o *pairs) {
	for _, x := range o.list[:o.n] {
		p.keep(x)
	}
}

func (p *pairs) reset() {
	clear(p.list[:])
	p.n, p.every, p.skip = 0, 0, 0
}

// observe takes the pairs of a window and fits again if enough are new.
func (s *sizing) observe(p *pairs) {
	for _, x := range p.list[:p.n] {
		if s.same++; x.size != s.size {
			s.same, s.size = 1, x.size
		}
		if s.same > maxPairs {
			continue // nothing varies, and there is nothing to learn
		}
		if s.fresh++; len(s.last) < maxPairs {
			s.last = append(s.last, x)
		} else {
			s.last[s.next] = x
			s.next = (s.next + 1) % maxPairs
		}
	}
	switch n := len(s.last); {
	case n < fewestPairs:
	case s.same >= n:
		s.use, s.fresh = SizeScales, 0
	case s.fresh > 0 && s.fresh >= n/refitParts:
		s.fresh = 0
		s.fit()
	}
}

// pairSums are the means, variances and covariance of the pairs.
type pairSums struct{ size, service, hold, sizes, services, both float64 }

func (s *sizing) sum() (m pairSums) {
	for _, x := range s.last {
		m.size += float64(x.size)
		m.service += float64(x.service)
		m.hold += float64(x.hold)
	}
	n := float64(len(s.last))
	m.size, m.service, m.hold = m.size/n, m.service/n, m.hold/n
	for _, x := range s.last { // about the means: sizes may be a thousand times their spread
		size, service := float64(x.size)-m.size, float64(x.service)-m.service
		m.sizes += size * size
		m.services += service * service
		m.both += size * service
	}
	m.sizes, m.services, m.both = m.sizes/n, m.services/n, m.both/n
	return m
}

func (s *sizing) fit() {
	m := s.sum()
	scale := m.service / m.size
	each := max(0, m.both/m.sizes)
	base := m.service - each*m.size
	proportion := s.error(0, scale)
	if base <= 0 || proportion <= s.error(base, each) {
		base, each = 0, scale
	}
	r2 := 0.0
	if m.services > negligible*m.service*m.service && m.both > 0 {
		r2 = min(1, m.both*m.both/(m.sizes*m.services))
	}
	evidence, worth, worse := float64(correlated), worthAChoice, misleading
	switch s.use {
	case SizeTrusted:
		evidence, worth = unrelated, worthNoChoice
	case SizeIgnored:
		worse = 1
	}
	spread := each * each * m.sizes / (m.service * m.service)
	switch {
	case r2*float64(len(s.last)-1) >= evidence && spread >= worth:
		s.use = SizeTrusted
	case proportion > worse*s.error(m.service, 0)+negligible:
		s.use = SizeIgnored
	default:
		s.use = SizeScales
	}
	s.base, s.each, s.mean = base, each, m.service
	s.held = max(1, m.hold/m.service)
	s.explained = r2
	s.sort()
}

// error returns the variance of the logarithm of service time over prediction.
func (s *sizing) error(base, each float64) float64 {
	var sum, sumsq float64
	for _, x := range s.last {
		l := math.Log(float64(x.service) / (base + each*float64(x.size)))
		sum += l
		sumsq += l * l
	}
	n := float64(len(s.last))
	return max(0, sumsq/n-sum/n*(sum/n))
}

// sort makes the distributions that take the place of the time per unit of size.
func (s *sizing) sort() {
	if s.use == SizeScales {
		return
	}
	if s.cells == nil {
		s.cells = new([hist.N]cell)
		s.times, s.ratios = make([]float32, 0, maxPairs), make([]float32, 0, maxPairs)
	}
	clear(s.cells[:])
	s.times, s.ratios = s.times[:0], s.ratios[:0]
	for _, x := range s.last {
		t := float64(x.service)
		c := &s.cells[hist.Index(seconds(t))]
		c.n++
		c.sum += t
		c.sumsq += t * t
		s.times = append(s.times, x.service)
		s.ratios = append(s.ratios, float32(t/s.predict(int(x.size))))
	}
	slices.Sort(s.times)
	slices.Sort(s.ratios)
}

// quantile returns that of some sorted values.
func quantile(sorted []float32, q float64) float64 {
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
}

// trusted reports whether who is predicted to take long gives way.
func (s *sizing) trusted() bool { return s.use == SizeTrusted }

// predict returns the mean service time of that size, in seconds, while trusted.
func (s *sizing) predict(size int) float64 { return s.base + s.each*float64(size) }
