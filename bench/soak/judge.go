package soak

import (
	"fmt"
	"strings"
	"time"
)

// Bounds of the criteria.
const (
	// memoryGrowth is what the mean of the last half may be of that of the first.
	memoryGrowth = 1.05

	// goodputLeast is the goodput ratio of each class, as `goodput verify` asks for.
	goodputLeast = 0.95

	// linesMost bounds the decision log, per minute: a line a second for each of the four
	// classes that may refuse, one a second of failures of the upstream, and one for each
	// thing that changes: in a minute 3 policies, 2 x 2 times a server out and back, and
	// of the classes overload began and ended, derived depth, capacity found: 60.
	linesMost = 60*(4+1) + 60

	// resetsLeast is how many clients must have broken off in each minute: of the bursts
	// half, since who cannot connect breaks nothing off.
	resetsLeast = bursts * wildEach / 2

	// secondsLeast is how many seconds must be judged: 12,000 requests, of which 120 are
	// above the 99th percentile.
	secondsLeast = 50

	// samplesLeast of a half: below that a mean says nothing.
	samplesLeast = 3
)

// Names of the criteria.
const (
	CritRan       = "ran-to-the-end"
	CritChaos     = "chaos"
	CritMemory    = "memory"
	CritLeaks     = "goroutines-and-files"
	CritRest      = "nothing-at-rest"
	CritCounters  = "counters-add-up"
	CritNeverFall = "counters-never-fall"
	CritReloads   = "reloads"
	CritLog       = "log-is-bounded"
	CritOffered   = "offered"
	CritServed    = "served"
	CritRefused   = "refused"
	CritHangs     = "nobody-hangs"
	CritLosses    = "losses-explained"
	CritGoodput   = "goodput"
	CritP99       = "p99"
)

// A Criterion is one thing that must hold.
type Criterion struct {
	Name  string
	Met   bool
	Said  string // what was seen, with numbers
	Known bool   // what it needs was measured: otherwise it is not met
	Apart bool   // it is reported, and decides nothing: what else the machine does is in it
}

// Judge returns the criteria, in a fixed order.
func Judge(r *Report) []Criterion {
	cs := []Criterion{ran(r), chaos(r), memory(r), leaks(r), atRest(r), addUp(r), neverFall(r), reloads(r), bounded(r), offered(r), served(r), refusals(r), hangs(r), losses(r)}
	for _, c := range []Criterion{goodput(r), p99(r)} {
		c.Apart = true
		cs = append(cs, c)
	}
	for i, c := range cs {
		if lack := found(r.Unseen, c.Name); len(lack) > 0 && c.Met {
			cs[i].Met, cs[i].Known, cs[i].Said = false, false, first(lack)
		} else if len(lack) > 0 {
			cs[i].Said += "; " + first(lack)
		}
	}
	return cs
}

// Missed are the names of those that are not met: of those that decide, or of those apart.
func Missed(cs []Criterion, apart bool) []string {
	return names(cs, func(c Criterion) bool { return c.Known && !c.Met && c.Apart == apart })
}

// Unknown are the names of those of which the run has not measured what they need.
func Unknown(cs []Criterion) []string {
	return names(cs, func(c Criterion) bool { return !c.Known })
}

func names(cs []Criterion, of func(Criterion) bool) (names []string) {
	for _, c := range cs {
		if of(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

func criterion(name string, met bool, format string, args ...any) Criterion {
	return Criterion{Name: name, Met: met, Known: true, Said: fmt.Sprintf(format, args...)}
}

// first is the first of what was found, and how many there are.
func first(found []string) string {
	if len(found) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d times, first: %s", len(found), found[0])
}

// found are the findings of a criterion.
func found(all []Finding, what string) (said []string) {
	for _, f := range all {
		if f.What == what {
			said = append(said, fmt.Sprintf("at %v %s", f.At.Round(time.Second), f.Said))
		}
	}
	return said
}

// notTaken is what the decision log says of a broken policy, at level ERROR as it should.
const notTaken = `"msg":"reload failed: the configuration until now stays in force"`

func ran(r *Report) Criterion {
	switch {
	case r.Broken != "":
		return criterion(CritRan, false, "%s", r.Broken)
	case r.Took < r.Length:
		return criterion(CritRan, false, "it took %v of %v", r.Took, r.Length)
	case r.Drained != "":
		return criterion(CritRan, false, "after SIGTERM: %s", r.Drained)
	}
	for _, line := range r.Errors {
		if !strings.Contains(line, notTaken) {
			return criterion(CritRan, false, "the decision log has an error: %s", line)
		}
	}
	if broken := r.done().Refused; broken > 0 && len(r.Errors) == 0 {
		return unknown(CritRan, fmt.Sprintf("the decision log says nothing at level ERROR of %d broken policies: whether it has other errors was", broken))
	}
	return criterion(CritRan, true, "one process for %v; after SIGTERM it drained and ended with 0", r.Length)
}

// chaos: without it the rest says nothing.
func chaos(r *Report) Criterion {
	if wrong := found(r.Wrong, CritChaos); len(wrong) > 0 {
		return criterion(CritChaos, false, "%s", first(wrong))
	}
	var sum Minute
	for i, m := range r.Minutes {
		if m.Reloads == 0 || m.Restarts == 0 || m.Resets < resetsLeast {
			return criterion(CritChaos, false, "minute %d had %d reloads, %d restarts and %d resets: 1, 1 and %d are the least", i+1, m.Reloads, m.Restarts, m.Resets, resetsLeast)
		}
		sum.Reloads += m.Reloads
		sum.Restarts += m.Restarts
		sum.Resets += m.Resets
	}
	return criterion(CritChaos, len(r.Minutes) > 0, "%d reloads, %d restarts of a server, %d clients that broke off; some of each in every minute", sum.Reloads, sum.Restarts, sum.Resets)
}

// halves are the means of the first and the last half of the samples behind the warm-up, and the
// largest.
func (r *Report) halves(of func(Sample) float64) (h [2]float64, most float64, n [2]int) {
	middle := r.Warm + (r.Length-r.Warm)/2
	for _, s := range r.Samples {
		if s.At < r.Warm {
			continue
		}
		i := 0
		if s.At >= middle {
			i = 1
		}
		h[i] += of(s)
		n[i]++
		most = max(most, of(s))
	}
	for i := range h {
		if n[i] > 0 {
			h[i] /= float64(n[i])
		}
	}
	return h, most, n
}

const mib = 1 << 20

func resident(s Sample) float64   { return float64(s.Resident) / mib }
func heap(s Sample) float64       { return float64(s.Heap) / mib }
func goroutines(s Sample) float64 { return float64(s.Goroutines) }
func files(s Sample) float64      { return float64(s.Files) }

func memory(r *Report) Criterion { return r.flat(CritMemory, "%.1f MiB", resident) }

func (r *Report) flat(name, unit string, of func(Sample) float64) Criterion {
	h, most, n := r.halves(of)
	if min(n[0], n[1]) < samplesLeast {
		return criterion(name, false, "%d and %d samples in the halves, %d are the least", n[0], n[1], samplesLeast)
	}
	if h[0] == 0 {
		return unknown(name, fmt.Sprintf("a mean of "+unit+" is none: it was", h[0]))
	}
	return criterion(name, h[1] <= memoryGrowth*h[0], "mean of the first half "+unit+", of the last "+unit+": %.3f of it, %v at the most; at the most "+unit,
		h[0], h[1], h[1]/h[0], memoryGrowth, most)
}

// leaks: what holds memory that is not yet felt.
func leaks(r *Report) Criterion {
	g, f := r.flat(CritLeaks, "%.1f goroutines", goroutines), r.flat(CritLeaks, "%.1f open files", files)
	c := criterion(CritLeaks, g.Met && f.Met, "%s. %s", g.Said, f.Said)
	c.Known = g.Known && f.Known
	return c
}

func atRest(r *Report) Criterion {
	if len(r.Rests) == 0 {
		return criterion(CritRest, false, "there was no rest")
	}
	longest, shortest := time.Duration(0), restTime
	for _, x := range r.Rests {
		if len(x.Left) > 0 {
			return criterion(CritRest, false, "at %v there is %s", x.At.Round(time.Second), strings.Join(x.Left, "; "))
		}
		longest, shortest = max(longest, x.Empty), min(shortest, x.Stayed)
	}
	said := fmt.Sprintf("%d times without load: everything was 0 at most %v after the last client had ended", len(r.Rests), longest.Round(time.Millisecond))
	if shortest == 0 {
		return unknown(CritRest, said+"; for how long it stayed so was")
	}
	return criterion(CritRest, shortest >= staying/2, "%s, and stayed so for %v at the least", said, shortest.Round(time.Millisecond))
}

func addUp(r *Report) Criterion {
	wrong := found(r.Wrong, CritCounters)
	for _, x := range r.Rests {
		for _, d := range x.Differs {
			wrong = append(wrong, fmt.Sprintf("at rest at %v %s", x.At.Round(time.Second), d))
		}
	}
	switch {
	case len(wrong) > 0:
		return criterion(CritCounters, false, "%s", first(wrong))
	case r.Dropped > 0 || r.Books.Bad > 0:
		return criterion(CritCounters, false, "%d lines of the logs were dropped and %d cannot be read", r.Dropped, r.Books.Bad)
	case len(r.Rests) == 0:
		return criterion(CritCounters, false, "there was no rest to compare at")
	case len(r.Samples) == 0 || r.Rests[len(r.Rests)-1].Lines == 0:
		return unknown(CritCounters, fmt.Sprintf("%d scrapes, and an access log without lines: whether counters add up was", len(r.Samples)))
	}
	return criterion(CritCounters, true, "the identity held at each of %d scrapes; at %d rests the metrics and %d lines of the access log were equal by class and outcome, and fitted what clients were told",
		len(r.Samples), len(r.Rests), r.Rests[len(r.Rests)-1].Lines)
}

func neverFall(r *Report) Criterion {
	fell := found(r.Wrong, CritNeverFall)
	return criterion(CritNeverFall, len(fell) == 0 && len(r.Samples) > 1, "%d scrapes; fell: %s", len(r.Samples), first(fell))
}

// done is what was done to the policy in all minutes.
func (r *Report) done() (sum Minute) {
	for _, m := range r.Minutes {
		sum.Reloads += m.Reloads
		sum.Refused += m.Refused
		sum.Missed += m.Missed
	}
	return sum
}

func reloads(r *Report) Criterion {
	sum := r.done()
	return criterion(CritReloads, sum.Missed == 0 && sum.Reloads > 0, "%d policies came into force, %d broken ones changed nothing; otherwise: %d", sum.Reloads, sum.Refused, sum.Missed)
}

func bounded(r *Report) Criterion {
	most, at := 0, 0
	for i, m := range r.Minutes {
		if m.Lines == 0 {
			return unknown(CritLog, fmt.Sprintf("nothing was read of the decision log in minute %d, which has a line for each policy at the least: it was", i+1))
		}
		if m.Lines > most {
			most, at = m.Lines, i+1
		}
	}
	return criterion(CritLog, most <= linesMost && most > 0, "%d lines in minute %d, %d are the most", most, at, linesMost)
}

func goodput(r *Report) Criterion {
	var said []string
	met := len(r.Classes) > 0
	for _, c := range r.Classes {
		met = met && c.Ratio() >= goodputLeast && c.Seconds >= secondsLeast
		said = append(said, fmt.Sprintf("%s %.3f in %d s", c.Name, c.Ratio(), c.Seconds))
	}
	return criterion(CritGoodput, met, "%s; %v is the least, in %d s; %d s more were too busy with other work to be judged", strings.Join(said, ", "), goodputLeast, secondsLeast, r.Busy)
}

func p99(r *Report) Criterion {
	var said []string
	met := len(r.Classes) > 0
	for _, c := range r.Classes {
		answered := false
		for _, q := range c.Of {
			if q.Deadline == shortDeadline { // see pageHead
				answered = true
				met = met && q.P99 <= objective
				said = append(said, fmt.Sprintf("%s %v", c.Name, q.P99.Round(time.Millisecond)))
			}
		}
		if !answered {
			met, said = false, append(said, c.Name+" had no answers")
		}
	}
	return criterion(CritP99, met, "%s; the objective is %v", strings.Join(said, ", "), objective)
}
