package theory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// A Job is one request as a clairvoyant sees it: all three times are known in
// advance. None is negative.
type Job struct {
	Release  time.Duration // when it arrives, since any start
	Service  time.Duration // how long it holds the server
	Deadline time.Duration // when it must be finished, since the same start
}

// Clairvoyant returns the most jobs that one server can finish by their
// deadlines, one at a time and without interruption, for who knows everything in
// advance: the ceiling above every policy. The server takes as long for each job
// as its Service says; more servers are Pool's.
//
// Deadlines are agreeable if nobody who arrives later has an earlier one, as
// when all have the same patience. Then the result is exact: the algorithm is
// that of Kise, Ibaraki and Mine (A solvable case of the one-machine scheduling
// problem with ready and due times, Operations Research 26, 1978), which for
// equal releases is Moore's (1968, with Hodgson). Jobs are taken in the order of
// arrival; when one would be late, the one without which the rest is finished
// first is given up. Interruptions would not help either: the order of arrival
// is the order of deadlines, so nobody is ever worth interrupting for.
//
// Otherwise the problem is NP-hard (Lenstra, Rinnooy Kan and Brucker 1977) and
// the result, with exact false, is an upper bound, with or without
// interruptions. It is the smaller of two exact results for jobs that are easier
// to serve, and whose deadlines are agreeable: each deadline moved to the latest
// of those who came before, or each arrival moved to the earliest of those whose
// deadlines are later. What finishes in time still does so when a deadline comes
// later or an arrival earlier.
//
// Jobs that do not fit between their own arrival and deadline are left out
// first. The work is O(n log n).
func Clairvoyant(jobs []Job) (most int, exact bool) {
	fit := make([]Job, 0, len(jobs))
	for _, j := range jobs {
		if j.fits() {
			fit = append(fit, j)
		}
	}
	slices.SortFunc(fit, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Release, b.Release), cmp.Compare(a.Deadline, b.Deadline))
	})
	if slices.IsSortedFunc(fit, func(a, b Job) int { return cmp.Compare(a.Deadline, b.Deadline) }) {
		return inOrder(fit), true
	}
	later := slices.Clone(fit)
	for i := 1; i < len(later); i++ {
		later[i].Deadline = max(later[i].Deadline, later[i-1].Deadline)
	}
	slices.SortFunc(fit, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), cmp.Compare(a.Release, b.Release))
	})
	for i := len(fit) - 2; i >= 0; i-- {
		fit[i].Release = min(fit[i].Release, fit[i+1].Release)
	}
	return min(inOrder(later), inOrder(fit)), false
}

// fits reports whether the job, alone, is finished in time.
func (j Job) fits() bool {
	if j.Release < 0 || j.Service < 0 || j.Deadline < 0 {
		panic(fmt.Sprintf("theory: a job arrives at %v, takes %v and has the deadline %v: negative times are not allowed",
			j.Release, j.Service, j.Deadline))
	}
	return j.Service <= j.Deadline-j.Release
}

// Pool returns the jobs for one server that is as fast as c servers of unit
// speed together: each service time, times the servers that the job holds at once,
// divided by c, rounded down to a nanosecond. widths says how many that is, at most
// all; nil is one each. Jobs longer than their own window are left out before, since
// the servers of the c do not finish them.
//
// Clairvoyant(Pool(jobs, c)) is an upper bound for c servers: whatever they do in
// some short time, the fast server does in the same time, working on their jobs
// in turn. So each job is finished no later, with interruptions, and those do
// not matter (see Clairvoyant). The bound is loose where fewer than c jobs are
// there, since one job alone then has only one server.
func Pool(jobs []Job, widths []int, c int) []Job {
	needCount("the number of servers", c, 1)
	pooled := make([]Job, 0, len(jobs))
	all := time.Duration(c)
	for i, j := range jobs {
		if !j.fits() {
			continue
		}
		width := time.Duration(1)
		if widths != nil {
			needCount("the width of a job", widths[i], 1)
			width = time.Duration(min(widths[i], c))
		}
		j.Service = j.Service/all*width + j.Service%all*width/all // the product itself may be out of range
		pooled = append(pooled, j)
	}
	return pooled
}

// inOrder returns the most jobs in time, for jobs sorted by release as well as
// by deadline, each of which fits its window.
//
// Those kept are served in this order, so the last one ends at
//
//	end = max over k of (release(k) + the services from k on)
//
// and everybody kept is in time. Without job i the end is the larger of end -
// service(i) and of the same maximum over k > i alone, since nobody starts
// before the release. Among the jobs from i on, the longest is the best one to
// give up; so with long(i) the longest service from i on and rest(i) the maximum
// over k > i, the earliest end is the minimum over i of max(end - long(i),
// rest(i)). The first rises with i and the second falls: the minimum is where
// they cross, found by one way down a tree of the suffixes.
func inOrder(jobs []Job) int {
	t := newSuffixes(jobs)
	most := 0
	for i, j := range jobs {
		t.put(i)
		most++
		if t.nodes[1].end > j.Deadline {
			t.drop(t.worst())
			most--
		}
	}
	return most
}

// suffixes is a binary tree over the jobs in their order, those not kept being
// empty leaves.
type suffixes struct {
	jobs  []Job
	first int // index of the first leaf, a power of two
	nodes []suffix
}

// A suffix sums up consecutive jobs that are kept.
type suffix struct {
	work    time.Duration // sum of their services
	end     time.Duration // when they end if they start as early as they can; never if there are none
	longest int           // index of the longest one, the last of them if several are; -1 if there are none
}

// never is before every time, with room to add services to it.
const never = time.Duration(math.MinInt64 / 2)

func newSuffixes(jobs []Job) *suffixes {
	t := &suffixes{jobs: jobs, first: 1}
	for t.first < len(jobs) {
		t.first *= 2
	}
	t.nodes = make([]suffix, 2*t.first)
	for i := range t.nodes {
		t.nodes[i] = suffix{end: never, longest: -1}
	}
	return t
}

func (t *suffixes) put(i int) {
	j := t.jobs[i]
	t.set(i, suffix{work: j.Service, end: j.Release + j.Service, longest: i})
}

func (t *suffixes) drop(i int) { t.set(i, suffix{end: never, longest: -1}) }

func (t *suffixes) set(i int, s suffix) {
	n := t.first + i
	for t.nodes[n] = s; n > 1; {
		n /= 2
		t.nodes[n] = t.join(t.nodes[2*n], t.nodes[2*n+1])
	}
}

// join returns the suffix of the jobs of a and then those of b.
func (t *suffixes) join(a, b suffix) suffix {
	longest := b.longest
	if t.long(a) > t.long(b) {
		longest = a.longest
	}
	return suffix{work: a.work + b.work, end: max(a.end+b.work, b.end), longest: longest}
}

// long returns the longest service in s, -1 if there is none.
func (t *suffixes) long(s suffix) time.Duration {
	if s.longest < 0 {
		return -1
	}
	return t.jobs[s.longest].Service
}

// worst returns the job without which the rest ends first.
func (t *suffixes) worst() int {
	end := t.nodes[1].end
	crossed := func(with, after suffix) bool { return after.end <= end-t.long(with) }
	// Down to the first i with rest(i) <= end - long(i); after is what lies
	// right of node n.
	n, after := 1, suffix{end: never, longest: -1}
	for n < t.first {
		// The last leaf on the left is i; the right child and after are beyond.
		right := t.join(t.nodes[2*n+1], after)
		last := t.last(2 * n)
		if crossed(t.join(last, right), right) {
			n, after = 2*n, right
		} else {
			n = 2*n + 1
		}
	}
	with := t.join(t.nodes[n], after)
	if i := n - t.first; i > 0 && with.end < end-t.long(with) {
		return i - 1 // before the crossing rest counts, and it is the smaller one
	}
	return with.longest
}

// last returns the last leaf under node n.
func (t *suffixes) last(n int) suffix {
	for n < t.first {
		n = 2*n + 1
	}
	return t.nodes[n]
}
