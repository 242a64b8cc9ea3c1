package admission

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/goodput/goodput/internal/theory"
)

// The depth of a queue, from what is known about the service.
//
// Who takes the d-th place, in units of cost, waits until d units have departed
// and is then served. With every slot busy, units depart at rate = limit / mean
// time held, and the time of the d-th has the mean d/rate and the variance
// cv2 x d/rate^2, cv2 the squared coefficient of variation of the service time
// (renewal theory; exact for exponential service, where it is an Erlang
// distribution). Work that takes always the same has none of it, but leaves the slots out
// of step by whatever they were, which has a variance of its own: theory.RoundVariance.
// Without that, 8 slots of 180 ms and an objective of 400 ms have nine places, and the
// ninth waits for two services before its own. The units of one request
// depart together, which multiplies the variance by the mean cost of a request.
// The time is taken as a gamma distribution of these moments. The service
// itself, of a request of mean size, is added by summing over its measured
// distribution.
//
// An allowance grants the d-th unit d/allowed after it has run out, neither sooner nor
// with any variance. Who takes the d-th place has waited for both, the departures and the
// grants, so it waits for the later one: P(wait > t) is 1 up to d/allowed, and that of the
// departures beyond.

// A pace is how fast a queue drains.
type pace struct {
	slots   float64 // units of cost per second that the slots can serve
	limit   int     // how many those are
	cv2     float64 // of the service
	allowed float64 // units of cost per second that are allowed; 0: any
}

// rate is the cost per second that is served.
func (p pace) rate() float64 {
	if p.allowed > 0 {
		return min(p.slots, p.allowed)
	}
	return p.slots
}

// departures is the distribution of the time in which a number of units depart.
type departures struct {
	mean, sd float64 // seconds
	never    float64 // seconds: beyond, the probability is taken as 0
	always   float64 // seconds: below, as 1
	s, root  float64 // 1/(9k) for the shape k, and its square root
}

// departing returns the distribution for d units; a cv2 below 1e-6 counts as fixed.
func departing(d int, of pace) departures {
	p := departures{mean: float64(d) / of.slots}
	variance := of.cv2*float64(d) + theory.RoundVariance(d, of.limit, of.cv2)
	if variance < 1e-6*float64(d) || d == 0 {
		p.never = p.mean * (1 - 1e-9)
		p.always = p.never
	} else {
		p.sd = math.Sqrt(variance) / of.slots
		p.s = variance / (9 * float64(d) * float64(d))
		p.root = math.Sqrt(p.s)
		// Eight standard deviations off there is nothing to compute, nor where the cube root
		// is off by what is beyond reach.
		most, least := 1-p.s+normalReach*p.root, max(0, 1-p.s-normalReach*p.root)
		p.never = min(p.mean+8*p.sd, p.mean*most*most*most*(1+1e-9))
		if of.limit > 0 { // the end of the round, by which they depart if the service does not vary
			whole := float64((d + of.limit - 1) / of.limit * of.limit)
			p.never = min(p.never, (whole*(1-1e-9)+8*math.Sqrt(of.cv2*float64(d)))/of.slots)
		}
		p.always = max(p.mean-8*p.sd, p.mean*least*least*least*(1-1e-9))
	}
	if of.allowed > 0 {
		spaced := float64(d) / of.allowed * (1 - 1e-9)
		p.never, p.always = max(p.never, spaced), max(p.always, spaced)
	}
	return p
}

// longer returns the probability that they take longer than t seconds.
func (p *departures) longer(t float64) float64 {
	switch {
	case t < 0 || t < p.always || t == 0 && p.mean > 0:
		return 1
	case t >= p.never:
		return 0
	}
	// Wilson and Hilferty (1931): the cube root of a gamma variable of shape k
	// is nearly normal, with mean 1 - 1/(9k) and variance 1/(9k).
	z := (math.Cbrt(t/p.mean) - (1 - p.s)) / p.root
	return beyond(z)
}

// beyond returns the probability that a standard normal variable exceeds z, off by
// at most 3e-7: it is compared with one in a thousand, at the least. That is 0 or 1
// beyond 5; between, a straight line from one of 2560 values to the next, which is
// off by at most 0.242/8/256^2, the second derivative at 1.
func beyond(z float64) float64 {
	at := (z + normalReach) * normalParts
	switch i := int(at); {
	case z <= -normalReach:
		return 1
	case !(z < normalReach):
		return 0
	default:
		return normal[i] + (at-float64(i))*(normal[i+1]-normal[i])
	}
}

const (
	normalReach = 5
	normalParts = 256
)

var normal = func() (table [2*normalReach*normalParts + 1]float64) {
	for i := range table {
		table[i] = 0.5 * math.Erfc((float64(i)/normalParts-normalReach)/math.Sqrt2)
	}
	return table
}()

// late returns P(d departures + one service > t), t in seconds.
func (e *estimate) late(d int, of pace, t float64) float64 {
	size, cost := e.request()
	of.cv2 *= cost
	queue := departing(d, of)
	var p float64
	for i := len(e.points) - 1; i >= 0; i-- {
		s := &e.points[i]
		at, spread := s.at*size, s.spread*size
		if t-at*1.1-2e-6 > queue.never {
			break // shorter ones, within a bucket that spans 9 % or 2 us, leave time enough
		}
		if spread == 0 {
			p += s.weight * queue.longer(t-at)
			continue
		}
		// Two points at one spread each side have the moments of the bucket.
		p += s.weight / 2 * (queue.longer(t-at+spread) + queue.longer(t-at-spread))
	}
	return p / e.total
}

// deepest returns the largest d <= most with P(d departures + service > t) <=
// miss, and false if not even d = 0 is within: the service alone takes longer.
// The search starts at guess, the depth that was right a moment ago.
func (e *estimate) deepest(of pace, t, miss float64, guess, most int) (int, bool) {
	if e.late(0, of, t) > miss {
		return 0, false
	}
	ok := func(d int) bool { return e.late(d, of, t) <= miss }
	lo, hi := 0, most+1 // ok(lo), not ok(hi) or out of range
	if most == 0 {
		return 0, true
	}
	guess = min(max(guess, 1), most)
	for step := 1; lo < guess && guess < hi; step *= 2 { // gallop to a bracket
		if ok(guess) {
			lo, guess = guess, guess+step
		} else {
			hi, guess = guess, guess-step
		}
	}
	for lo+1 < hi {
		if mid := lo + (hi-lo)/2; ok(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, true
}

// latency returns the quantile of d departures + service, in seconds.
func (e *estimate) latency(d int, of pace, q float64) float64 {
	size, _ := e.request()
	lo, hi := 0.0, float64(d)/of.rate()+e.quantile(q)*size+1e-6
	for e.late(d, of, hi) > 1-q {
		hi *= 2
	}
	for range 14 { // 2^-14 of the range: finer than the three figures that are printed
		if mid := (lo + hi) / 2; e.late(d, of, mid) > 1-q {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// idleTolerated is the share of the capacity that a queue in a standing
// overload may leave unused: 0.1 %, a tenth of the goodput that is promised to
// be lost at the most.
const idleTolerated = 0.001

// Standing returns the smallest depth that keeps slots busy to within 0.1 %
// (idleTolerated) while load times what they can serve is offered: what a Core
// shrinks the depth to in an overload that lasts, if the derived depth is not less.
// The depth is in requests, 1 to 2^24; slots are those that run at once, at least 1
// (the limit over the mean cost of a request), and load is above 1: at 1 or below no
// depth is enough, and Standing panics.
//
// Without a queue the share of the capacity lost is 1 - load (1 - B(c, load c)),
// B the Erlang loss formula; in an M/M/c/K queue the states beyond c are
// geometric with the ratio load, so each place divides the loss by about load.
// Service that varies less needs less, so the formula errs on the deep side.
func Standing(slots, load float64) int {
	if !(load > 1) {
		panic(fmt.Sprintf("admission: a load of %v is not above 1: no queue stands", load))
	}
	c := int(min(max(slots, 1), 4096))                    // beyond, the loss only shrinks: still on the deep side
	loss := 1 - theory.LossCeiling(c, min(load, maxLoad)) // beyond, nothing is lost
	if loss <= idleTolerated {
		return 1
	}
	return int(max(1, min(math.Ceil(math.Log(loss/idleTolerated)/math.Log(load)), maxItems)))
}

// maxLoad is the highest load that is told from others: 1 - B keeps seven figures.
const maxLoad = 1e9

// A Derivation is the arithmetic of the depth, a value that prints itself: the
// log, the metrics, the state page and a refusal show the same one.
type Derivation struct {
	Limit       int
	Mean        time.Duration // time for which a unit of cost is held, by whatever ends: what fails late or is read slowly too, so it may exceed Service
	Rate        float64       // units of cost per second that can be served: by the slots, or as Allowance has it if that is less
	Allowance   Quota         // Config.Allowance, its burst with its default; zero without
	Objective   time.Duration
	Percentile  float64
	Service     time.Duration // service time at Percentile, of a request of mean size
	Depth       int           // units of cost that may wait
	Growth      float64       // by how much Rate may have grown while the queue drains, as the limit is being searched: 1 when it is not
	Rule        int           // the rule of thumb: Rate x Objective
	RuleLatency time.Duration // the latency at Percentile that a queue of Rule would give
	Reachable   bool          // Service fits Objective
	Tight       bool          // fewer than 4 slots, which Depth does not keep busy: who has a deadline within Objective may queue beyond it
	Chances     bool          // Service leaves the objective next to nothing, or nothing, while most of it fits: who has a deadline within Objective may queue beyond Depth
	Fixed       bool          // Config.Depth said so; nothing was derived
	Samples     int           // service times behind it
	Prior       time.Duration // mean of the prior while that still counts: 100 samples and one objective long
	Declared    time.Duration // Config.Service, 0 if nothing was declared
	Drifted     bool          // Mean is more than 25 % away from Declared

	// What the sizes of requests say about their service times: see SizeUse. Of those
	// that are trusted SizeBase is the part of a service time that is the same for all,
	// and SizeEach what a unit of size adds.
	Sizes              SizeUse
	Explained          float64 // part of the variance of service times, 0 to 1
	SizeBase, SizeEach time.Duration
}

// SlotRate returns how much cost per second the slots alone could serve, and whether the
// allowance is less than that and bounds what can be served.
func (d Derivation) SlotRate() (rate float64, bound bool) {
	if d.Mean > 0 {
		rate = float64(d.Limit) / d.Mean.Seconds()
	}
	return rate, d.Allowance.Rate > 0 && d.Allowance.Rate < rate
}

// driftTolerated is how far the measured service time may be from the declared
// one before it is flagged: a number that was right decays with every release.
const driftTolerated = 0.25

// String returns one line, such as
//
//	60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 230ms -> 201 deep (rule of thumb 480: p99 would be 628ms)
//	60 slots / 50ms mean = 1200/s, 100/s allowed, burst 20; objective 400ms p99, service p99 230ms -> 16 deep (rule of thumb 40: p99 would be 633ms)
//	16 slots / 40ms mean = 400/s, on average 6.28 times that while the limit is searched and may grow; objective 400ms p99, service p99 185ms -> 538 deep, none waiting beyond its deadline, or without one the objective or MaxWait (rule of thumb 160: p99 would be 598ms)
//	20 slots / 65ms mean, failures and slow readers included = 307.7/s; objective 400ms p99, service p99 54ms -> 102 deep (rule of thumb 123: p99 would be 466ms)
func (d Derivation) String() string {
	var b strings.Builder
	p := fmt.Sprintf("p%g", math.Round(d.Percentile*1e5)/1e3)
	slots, busy := d.Rate, "the slots busy"
	if d.Allowance.Rate > 0 && d.Mean > 0 {
		var binds bool
		if slots, binds = d.SlotRate(); binds {
			busy = "the allowance in use"
		}
	}
	if d.Fixed && d.Depth == 0 && d.Samples == 0 {
		return fmt.Sprintf("no queue, as configured: %d at once", d.Limit) // nothing is measured, and nothing follows from it
	}
	fmt.Fprintf(&b, "%s / %s mean", plural(d.Limit, "slot"), brief(d.Mean))
	if d.Mean > d.Service+d.Service/10 { // by more than the bucket of a histogram
		b.WriteString(", failures and slow readers included")
	}
	fmt.Fprintf(&b, " = %s/s", figures(slots))
	if d.Allowance.Rate > 0 {
		b.WriteString(", " + d.Allowance.allowed())
	}
	if d.Growth > 1 {
		fmt.Fprintf(&b, ", on average %.3g times that while the limit is searched and may grow", d.Growth)
	}
	fmt.Fprintf(&b, "; objective %s %s, service %s %s -> ", brief(d.Objective), p, p, brief(d.Service))
	switch {
	case d.Fixed:
		fmt.Fprintf(&b, "%d deep as configured", d.Depth)
	case d.Limit == 0:
		b.WriteString("0 deep: a limit of 0 serves nobody, so nobody new may wait")
	case !d.Reachable:
		fmt.Fprintf(&b, "unreachable: the service alone takes longer; %d deep, what keeps %s", d.Depth, busy)
	default:
		fmt.Fprintf(&b, "%d deep", d.Depth)
	}
	if d.Growth > 1 && !d.Fixed {
		b.WriteString(", none waiting beyond its deadline, or without one the objective or MaxWait")
	}
	if d.Tight || d.Chances {
		b.WriteString(", more for whoever has a deadline within the objective")
	}
	if d.Rule > 0 {
		fmt.Fprintf(&b, " (rule of thumb %d: %s would be %s)", d.Rule, p, brief(d.RuleLatency))
	}
	if d.Prior > 0 {
		fmt.Fprintf(&b, "; %s, prior service %s", plural(d.Samples, "sample"), brief(d.Prior))
	}
	if d.Drifted {
		fmt.Fprintf(&b, "; drifted: declared service %s", brief(d.Declared))
	}
	switch d.Sizes {
	case SizeTrusted:
		fmt.Fprintf(&b, "; sizes are trusted: %s + %s a unit explain %.3g%% of the variance", brief(d.SizeBase), brief(d.SizeEach), 100*d.Explained)
	case SizeIgnored:
		fmt.Fprintf(&b, "; sizes are ignored: they explain %.3g%% of the variance", 100*d.Explained)
	}
	return b.String()
}

// priorMean is the mean service time that is believed before any was measured:
// the declared one, else a tenth of the objective. An exponential service of
// that mean has its p99 at 0.46 of the objective: it can be met with room for a
// queue, which is what somebody who asks for the objective believes.
func priorMean(declared, objective time.Duration) time.Duration {
	if declared > 0 {
		return declared
	}
	return objective / 10
}

// plural returns "1 slot", "60 slots".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// brief prints a duration to three figures: 49.983ms is 50ms.
func brief(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	unit := math.Pow(10, math.Floor(math.Log10(float64(d)))-2)
	if unit > 1 {
		d = time.Duration(math.Round(float64(d)/unit) * unit)
	}
	return d.String()
}

// figures prints a rate to four figures, without an exponent.
func figures(f float64) string {
	if f <= 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return "0"
	}
	if f < 0.01 {
		return fmt.Sprintf("%.4g", f)
	}
	unit := math.Pow(10, math.Floor(math.Log10(f))-3)
	s := fmt.Sprintf("%.3f", math.Round(f/unit)*unit)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
