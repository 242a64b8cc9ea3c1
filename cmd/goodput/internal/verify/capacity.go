package verify

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The search for the capacity: what a service answers in time, per second, with more offered
// than that. Arrivals are evenly spaced here, since the question is how much and not how it
// likes bursts, and answers are counted by when they came, not by when they were due: the
// queue that a short overload leaves behind is answered after it, and is no throughput.
//
//	double    from half of 1 / (idle latency), until less than nine tenths of what is offered
//	          is answered in time; down from there if the first is too much
//	climb     from a tenth above what the best of these gave, by tenths, until a load is not
//	          carried: a service without protection shows its capacity only just above it,
//	          before its queue is as long as the deadline
//	confirm   the load at which that ends, or one far above it if that gave the most, again and
//	          again. Only these are counted: the highest of a dozen readings is high by chance
const (
	holds = 0.9 // of the offered load in time: it is carried

	// A reading counts enough answers that chance does not decide it: at twice the capacity
	// half is answered, and 100 +- 10 are no 0.9 of 200. Slow services get four seconds.
	enough    = 200
	shortest  = time.Second
	longest   = 4 * time.Second
	leastRate = 0.5 // per second; two answers in four seconds say nothing

	// 17 doublings are from 1/s to more than any --max-rate.
	maxDoublings = 17

	// Ten climbs are from half of the capacity, the least that doubling leaves, to 1.3 times.
	maxClimbs = 10

	// 700 answers have a standard error of 3.8 % if they come at random, as the services of
	// many slots do; those of one slot come more evenly.
	confirmEnough   = 700
	confirmShortest = 2 * time.Second
	confirmLongest  = 8 * time.Second
	confirmLeast    = 3
	confirmMost     = 8
)

// The search asks how many, not how long: a generator that is 50 ms late moves 5 % of the
// answers of a second past its ends, 2.5 % of those that are counted in the end, and no more
// of them over the deadline than a tenth of it holds. One that was later is asked again, since
// a busy machine may be so for a moment.
const (
	lateSearch = 50 * time.Millisecond
	tries      = 3
)

// A reading is a probe, with what was counted after its warm-up.
type reading struct {
	Probe
	offered, inTime float64 // per second
	answers         int64   // in time
	length          time.Duration
}

// holds reports whether the load was carried.
func (p *reading) holds() bool { return p.inTime >= holds*p.offered }

// A search is one for a capacity.
type search struct {
	*run
	readings []reading
}

// search finds the capacity, or says in Void why not.
func (r *run) search(ctx context.Context) {
	s := &search{run: r}
	if s.double(ctx) {
		s.confirm(ctx)
	}
	if r.report.Void == "" && ctx.Err() == nil && r.report.Capacity.Why == "" {
		r.report.Void = "the capacity was not found"
	}
}

// double finds a load that is carried and twice it, which is not, and reports whether it could.
func (s *search) double(ctx context.Context) bool {
	rate := min(0.5/s.report.Idle.P50.Seconds(), s.cfg.MaxRate/16)
	rate = max(rate, min(2*leastRate, s.cfg.MaxRate))
	carried, much := false, false
	for range maxDoublings {
		p, ok := s.read(ctx, rate, window(rate, enough, shortest, longest))
		if !ok {
			return false
		}
		carried, much = carried || p.holds(), much || !p.holds()
		switch {
		case carried && much:
			return true
		case much:
			if rate /= 2; rate < leastRate {
				s.none()
				return false
			}
		default:
			if s.report.Void = s.endless(p); s.report.Void != "" {
				return false
			}
			rate = min(2*rate, s.cfg.MaxRate)
		}
	}
	return carried
}

// none is the answer of a service that answers nothing in time, whatever is asked.
func (s *search) none() {
	s.report.Capacity.Why = fmt.Sprintf("of every load down to %s, less than %.0f %% was answered in time", aSecond(2*leastRate), 100*holds)
}

// endless returns one sentence if a capacity of what p carried, or more, cannot be judged
// within --max-rate.
func (s *search) endless(p *reading) string {
	top := max(1, slices.Max(s.cfg.Loads))
	if p.inTime*top*float64(s.cfg.Attempts) <= s.cfg.MaxRate*holds && p.Rate < s.cfg.MaxRate {
		return ""
	}
	return fmt.Sprintf("the capacity was not reached: of %s, %s were answered in time, and %gx of that%s is more than --max-rate %s allows: lower the highest of --steps%s",
		aSecond(p.Rate), aSecond(p.inTime), top, s.cfg.each(), aSecond(s.cfg.MaxRate), orRaise(s.cfg.MaxRate < maxMaxRate))
}

// best returns the reading with the most in time. Of those within 3 % of it, it is that of the
// lowest load.
func (s *search) best() *reading {
	most := 0.0
	for i := range s.readings {
		most = max(most, s.readings[i].inTime)
	}
	var best *reading
	for i := range s.readings {
		if p := &s.readings[i]; p.inTime >= 0.97*most && (best == nil || p.Rate < best.Rate) {
			best = p
		}
	}
	return best
}

// confirm climbs until a load is not carried, repeats that, and takes the mean.
func (s *search) confirm(ctx context.Context) {
	best := *s.best()
	at, fell := 1.1*best.inTime, false
	var used []reading
	for range maxClimbs + confirmMost {
		at = min(at, s.cfg.MaxRate)
		length := window(best.inTime, confirmEnough, confirmShortest, confirmLongest)
		if best.Result.Refused == 0 {
			length = s.before(at/best.inTime, length)
		}
		p, ok := s.read(ctx, at, length)
		switch {
		case !ok:
			return
		case !fell && p.inTime >= 0.97*p.offered && at < s.cfg.MaxRate:
			if best.inTime < p.inTime {
				best = *p
			}
			at, used = 1.1*at, nil
			continue
		case !fell && (best.Rate > at || p.inTime < best.inTime*(0.93-2/math.Sqrt(float64(best.answers)))):
			// A load far above the capacity gave the most, or what is a little too much gives
			// less than what is not, beyond two standard errors: the most is what it answers
			// at the load at which it answered that.
			fell, at, used = true, best.Rate, nil
			continue
		}
		if used = append(used, *p); confirmed(used) {
			break
		}
	}
	s.conclude(used)
}

// before returns how long a load of so many times the capacity may last before the queue of
// a service without protection is half as long as callers wait, and at least a second.
func (s *search) before(times float64, length time.Duration) time.Duration {
	if times <= 1 {
		return length
	}
	half := (s.cfg.Deadline - s.report.Idle.P50).Seconds() / 2
	return min(length, max(lasting(half/(times-1))-s.warm(), shortest))
}

func confirmed(used []reading) bool {
	answers := int64(0)
	for _, p := range used {
		answers += p.answers
	}
	return len(used) >= confirmMost || len(used) >= confirmLeast && answers >= confirmEnough/2
}

// conclude writes the capacity down, with its arithmetic.
func (s *search) conclude(used []reading) {
	if len(used) < confirmLeast {
		s.report.Void = "the capacity was not found: it was another one each time"
		return
	}
	c := &s.report.Capacity
	var answers []string
	total, length := int64(0), time.Duration(0)
	for _, p := range used {
		total, length = total+p.answers, length+p.length
		answers = append(answers, grouped(float64(p.answers)))
	}
	c.PerSecond = float64(total) / length.Seconds()
	c.Error = math.Sqrt(float64(total)) / length.Seconds()
	c.Why = fmt.Sprintf("%d loads of %s, after %v of warm-up: (%s) answers in time / %.1fs = %s, with a standard error of sqrt(%s) / %.1fs = %.2g/s at the most",
		len(used), aSecond(used[0].Rate), s.warm(), strings.Join(answers, " + "), length.Seconds(), aSecond(c.PerSecond),
		grouped(float64(total)), length.Seconds(), c.Error)
}

// window returns how long a load takes for so many answers, within bounds.
func window(rate, answers float64, shortest, longest time.Duration) time.Duration {
	return min(max(lasting(answers/rate), shortest), longest)
}

// lasting is a number of seconds.
func lasting(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// warm is how long a load lasts before its answers count: until the slots are full, which
// takes a few service times, and half a second for connections.
func (r *run) warm() time.Duration {
	return min(max(500*time.Millisecond, 4*r.report.Idle.P50.Round(time.Millisecond)), longest)
}

// read offers a load, after which it waits until the service is calm if it was too much. It
// reports false if the search cannot go on; Void says why, unless it was interrupted. A load
// that the generator could not offer is tried again.
func (s *search) read(ctx context.Context, rate float64, length time.Duration) (*reading, bool) {
	for try := 1; ; try++ {
		if need, sent := rate*(s.warm()+length).Seconds(), float64(s.sent.Load()); sent+need > float64(s.cfg.MaxRequests) {
			s.report.Void = fmt.Sprintf("the capacity was not found within --max-requests %s: %s were sent, and %s more are needed for the next load, %s",
				grouped(float64(s.cfg.MaxRequests)), grouped(sent), grouped(need), aSecond(rate))
			return nil, false
		}
		p := s.offerEven(ctx, rate, length)
		s.report.Capacity.Probes = append(s.report.Capacity.Probes, p.Probe)
		if ctx.Err() != nil {
			return nil, false
		}
		res := p.Result
		gone := res.Errors > 0 && res.Errors == res.Sent // it is the service that could not
		why := res.Void()
		if why == "" || gone {
			s.readings = append(s.readings, p)
			if !p.holds() {
				s.settle(ctx, rate)
			}
			return &s.readings[len(s.readings)-1], ctx.Err() == nil
		}
		if try == tries {
			s.report.Void = fmt.Sprintf("the capacity was not found: at %s, %s", aSecond(rate), why)
			return nil, false
		}
		s.settle(ctx, rate)
	}
}

// offerEven offers a load of evenly spaced arrivals and counts its answers after the warm-up.
func (s *search) offerEven(ctx context.Context, rate float64, length time.Duration) reading {
	plan := s.plan(rate, s.warm()+length, 0)
	plan.Constant, plan.Trace = true, nil
	plan.Attempts, plan.Backoff, plan.Follow = 1, nil, 0
	plan.Tolerance = max(plan.Tolerance, min(lateSearch, s.cfg.Deadline/10))
	g := s.generator(plan)
	var from, to load.Live
	counted := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(counted)
		pause(ctx, time.Until(start.Add(s.warm())))
		from = g.Live()
		pause(ctx, time.Until(start.Add(s.warm()+length)))
		to = g.Live()
	}()
	res := s.watch(ctx, "capacity", g, start)
	<-counted
	p := reading{Probe: Probe{Rate: rate, Result: res}, length: to.Elapsed - from.Elapsed, answers: to.InTime - from.InTime}
	if p.length > 0 {
		p.offered = float64(to.Offered-from.Offered) / p.length.Seconds()
		p.inTime = float64(p.answers) / p.length.Seconds()
	}
	return p
}

// The service is calm again when three requests, one after another, take as long as on an
// idle one: twice the median, or its longest. A queue without a bound may take for ever.
const (
	calmRequests = 3
	calmGap      = 20 * time.Millisecond
	calmWithin   = 10 * time.Second
)

// settle waits until the service is calm after a load of rate.
func (r *run) settle(ctx context.Context, rate float64) {
	if r.report.Idle.Max == 0 {
		return // it has answered nobody: there is no calm to come back to
	}
	bound := max(2*r.report.Idle.P50+5*time.Millisecond, r.report.Idle.Max)
	within, cancel := context.WithTimeout(ctx, calmWithin)
	defer cancel()
	for calm := 0; calm < calmRequests && within.Err() == nil; {
		due := time.Now()
		a := r.send(within)
		if a.Refused() || a.Failed() || time.Since(due) > bound {
			calm = 0
		} else {
			calm++
		}
		pause(within, max(calmGap, time.Until(due.Add(r.gap(0)))))
	}
	if within.Err() != nil && ctx.Err() == nil {
		r.note("The service was not calm again %v after a load of %s: the next began with what was left of that, and may look worse than it is.", calmWithin, aSecond(rate))
	}
}
