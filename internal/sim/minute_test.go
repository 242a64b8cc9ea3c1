package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/theory"
)

// A minute at one and a half times the capacity, and at twice: what was published
// as arithmetic, played event by event.

// minute is a minute of arrivals at rate before so many slots of mean service,
// with a deadline of 2 s that nobody is told. even means even arrivals.
func minute(rate float64, n int, service Dist, even bool, p Policy) Scenario {
	s := Scenario{
		Length: time.Minute, Bins: 60,
		Tiers:   []Tier{{Policy: p, Slots: n, Service: service}},
		Classes: []Class{{Arrivals: Arrivals{Rate: rate}, Deadlines: []Deadline{{2 * time.Second, 1}}, Patience: Vanishes, Bytes: 100_000}},
	}
	if even {
		s.Classes[0].Arrivals.Process = Constant
	}
	return s
}

func count(of func(*Tally) uint64) func(*Result) float64 {
	return func(r *Result) float64 { return float64(of(&r.Total)) }
}

// byTheMinute is what was answered in time before the minute was over.
func byTheMinute(r *Result) float64 {
	n := uint64(0)
	for _, b := range r.Series {
		n += b.InTime
	}
	return float64(n)
}

func completed(r *Result) float64 {
	n := uint64(0)
	for _, b := range r.Series {
		n += b.InTime + b.Late
	}
	return float64(n)
}

func peakQueue(r *Result) float64 { return float64(r.Tiers[0].PeakQueue) }
func peakAge(r *Result) float64   { return r.Tiers[0].PeakAge.Seconds() }
func megabytes(r *Result) float64 { return float64(r.Tiers[0].PeakBytes) / 1e6 }

// 100/s, offered 150/s, no bound: 3,000 are queued at the end, who wait 30 s and
// hold 300 MB. In time are those of the first four seconds: the wait at time x is
// x/3 of what came, and 150/s x 4 s = 600. Published as 568 to 598, which are single
// runs: one has a standard deviation of 51 with fixed service, 88 with exponential.
func TestUnboundedMinute(t *testing.T) {
	for _, c := range []struct {
		service Dist
		even    bool
		n       int
	}{{Dist{Kind: Fixed, Mean: 10 * ms}, true, 2}, {Dist{Kind: Fixed, Mean: 10 * ms}, false, 100}, {Dist{Kind: Exponential, Mean: 10 * ms}, false, 100}} {
		s := minute(150, 1, c.service, c.even, fifo(1, Unbounded))
		e := over(t, s, c.n, count(good), peakQueue, peakAge, megabytes)
		what := fmt.Sprintf("%s, even %v: ", c.service.name(), c.even)
		t.Logf("%s%v in time", what, e[0])
		e[0].near(t, what+"in time", 600, 2) // and 2 of the four seconds are the service of the last
		// The backlog ends at 3,000 and has its peak then, or shortly before.
		e[1].near(t, what+"queued", 3000, 32)
		e[2].near(t, what+"longest wait, s", 30, 0.32)
		e[3].near(t, what+"memory, MB", 300, 3.2)
	}
}

// The same with 200 inside at most, 2 s of work: it is full after four seconds, and
// then everybody waits almost 2 s. 160 is right.
func TestLimitTwoHundred(t *testing.T) {
	exponential := Dist{Kind: Exponential, Mean: 10 * ms}
	full := func(depth int) float64 {
		return 1 - theory.MMcK{Servers: 1, Depth: depth, Rate: 150, Mean: 0.01}.ResponseTail(2)
	}
	if got := full(199); math.Abs(got-0.564) > 0.0005 {
		t.Errorf("exactly %v of those admitted are in time at 200, want 0.564", got)
	}
	steady := func(r *Result) float64 { return inside(r) }
	for _, c := range []struct {
		service Dist
		even    bool
		inside  int
		share   float64 // of those admitted, in the steady state; 0: see below
	}{
		{Dist{Kind: Fixed, Mean: 10 * ms}, true, 200, 1},
		{exponential, false, 200, full(199)},
		{exponential, false, 167, full(166)},
		{exponential, false, 160, full(159)},
	} {
		what := fmt.Sprintf("%s, %d inside: ", c.service.name(), c.inside)
		s := minute(150, 1, c.service, c.even, fifo(1, c.inside-1))
		s.Length, s.Warmup = 610*time.Second, 10*time.Second
		compare(t, s, 10, measure{what: what + "in time of those admitted", of: steady, want: c.share, rounding: 0.0005, most: 0.01})

		s = minute(150, 1, c.service, c.even, fifo(1, c.inside-1))
		e := over(t, s, 50, byTheMinute, count(refusals), quantile(latency, 0.5), megabytes)
		t.Logf("%s%v in time by the minute, %v refused, p50 %v", what, e[0], e[1], e[2])
		if c.inside != 200 {
			continue
		}
		lo, hi := 3400.0, 3800.0
		if c.even {
			lo, hi = 5998, 5999 // and all of it in time
		}
		if e[0].mean < lo-4*e[0].se || e[0].mean > hi+4*e[0].se {
			t.Errorf("%s%v in time by the minute, want %v to %v", what, e[0], lo, hi)
		}
		if e[1].mean < 2801-4*e[1].se || e[1].mean > 2863+4*e[1].se {
			t.Errorf("%s%v refused, want 2801 to 2863", what, e[1])
		}
		// 200 inside / 100 a second, less what it takes to fill: the histogram is
		// within a bucket of 9 % where all waits lie in one.
		e[2].near(t, what+"p50, s", 1.97, 0.09*1.97)
		e[3].near(t, what+"memory, MB", 20, 0.11) // the body of who is refused is there, too
	}
}

// A published table of 150/s offered 300/s for a minute was made by a model that
// ticks once a second. It is this one, to the unit.
func TestTickTable(t *testing.T) {
	tick := func(bound int) (served, good, refused int, wait float64) {
		q := 0
		for range 60 {
			if q += 300; bound > 0 && q > bound {
				refused += q - bound
				q = bound
			}
			w := float64(q) / 150
			wait = max(wait, w)
			n := min(q, 150)
			if served += n; w <= 2 {
				good += n
			}
			q -= n
		}
		return served, good, refused, wait
	}
	for _, c := range []struct {
		bound, served, good, refused int
	}{{0, 9000, 150, 0}, {400, 9000, 150, 8750}, {6, 360, 360, 17640}, {150, 9000, 9000, 9000}} {
		if served, good, refused, _ := tick(c.bound); served != c.served || good != c.good || refused != c.refused {
			t.Errorf("bound %d: %d served, %d good, %d refused, published %d, %d, %d", c.bound, served, good, refused, c.served, c.good, c.refused)
		}
	}

	// Event by event a plain limit of 6 completes 88 to 100 % of 9,000, not 360.
	one := func(k Kind) Dist { return Dist{Kind: k, Mean: time.Second / 150} }
	six := func(k Kind) Dist { return Dist{Kind: k, Mean: time.Second / 25} } // 6 slots of 40 ms
	mm := func(c, depth int, mean float64) float64 {
		return 60 * theory.MMcK{Servers: c, Depth: depth, Rate: 300, Mean: mean}.Throughput()
	}
	for _, c := range []struct {
		what  string
		s     Scenario
		want  float64
		slack float64 // the first seconds of an empty system, and the last of a full one
	}{
		{"M/M/1/6", minute(300, 1, one(Exponential), false, fifo(1, 5)), mm(1, 5, 1.0/150), 6},
		{"M/M/6/6", minute(300, 6, six(Exponential), false, fifo(6, 0)), mm(6, 0, 0.04), 6},
		{"D/D/1/6", minute(300, 1, one(Fixed), true, fifo(1, 5)), 9000, 6},
	} {
		completed := over(t, c.s, 40, completed)[0]
		completed.near(t, c.what+": completed", c.want, c.slack)
	}
	if m := mm(6, 0, 0.04); math.Abs(m-7990) > 1 || math.Abs(mm(1, 5, 1.0/150)-8929) > 1 {
		t.Errorf("exactly %.0f and %.0f, want 7990 and 8929", m, mm(1, 5, 1.0/150))
	}
}

// 150/s offered 300/s, deadline 2 s: 400 deep is 2.66 s of wait, and only what came
// while it filled is in time; 150 deep is one second, and everything is.
func TestBoundedQueue(t *testing.T) {
	for _, c := range []struct {
		what     string
		n        int
		service  Dist
		even     bool
		depth    int
		lo, hi   float64 // in time
		refuseLo float64
		refuseHi float64
		waitLo   float64 // mean, once it is full
		waitHi   float64
	}{
		{"D/D 400", 1, Dist{Kind: Fixed, Mean: time.Second / 150}, true, 400, 585, 600, 8590, 8712, 2.5, 2.67},
		{"M/M/6 400", 6, Dist{Kind: Exponential, Mean: 40 * ms}, false, 400, 560, 600, 8590, 8712, 2.5, 2.67},
		{"D/D 150", 1, Dist{Kind: Fixed, Mean: time.Second / 150}, true, 150, 9063, 9151, 8849, 9004, 0.95, 1},
		{"M/M/6 150", 6, Dist{Kind: Exponential, Mean: 40 * ms}, false, 150, 9063, 9160, 8849, 9004, 0.95, 1},
	} {
		s := minute(300, c.n, c.service, c.even, fifo(c.n, c.depth))
		e := over(t, s, 30, count(good), count(refusals), mean(waited), quantile(waited, 0.5))
		t.Logf("%s: %v in time, %v refused, wait %v, median %v", c.what, e[0], e[1], e[2], e[3])
		for i, b := range [][2]float64{{c.lo, c.hi}, {c.refuseLo, c.refuseHi}, {c.waitLo, c.waitHi}} {
			if e[i].mean < b[0]-4*e[i].se || e[i].mean > b[1]+4*e[i].se {
				t.Errorf("%s: %v, want %v to %v", c.what, e[i], b[0], b[1])
			}
		}
	}
}

// 500/s offered 700/s: 6,000 are behind after 30 s. 100 deep = 500 x 0.2 s is at
// most 200 ms of wait only if service is fixed; 80 is right for a p99.
func TestFiveHundred(t *testing.T) {
	for _, c := range []struct {
		what    string
		n       int
		service Dist
		even    bool
	}{
		{"D/D/1", 1, Dist{Kind: Fixed, Mean: 2 * ms}, true},
		{"M/D/8", 8, Dist{Kind: Fixed, Mean: 16 * ms}, false},
		{"M/M/8", 8, Dist{Kind: Exponential, Mean: 16 * ms}, false},
	} {
		s := minute(700, c.n, c.service, c.even, fifo(c.n, Unbounded))
		s.Length = 30 * time.Second
		backlog := func(r *Result) float64 { b := r.Series[len(r.Series)-1]; return float64(b.Waiting + b.InUse) }
		n := 60
		if c.even {
			n = 2
		}
		over(t, s, n, backlog)[0].near(t, c.what+": backlog", 6000, 2)
	}

	depth := func(n int) theory.MMcK { return theory.MMcK{Servers: 8, Depth: n, Rate: 700, Mean: 0.016} }
	for _, c := range []struct {
		depth int
		want  float64
	}{{100, 0.245}, {80, 0.2}} {
		if got := depth(c.depth).WaitQuantile(0.99); math.Abs(got-c.want) > 0.001 {
			t.Errorf("depth %d: exactly %v s, want %v", c.depth, got, c.want)
		}
	}
	for _, c := range []struct {
		what    string
		n       int
		service Dist
		even    bool
		depth   int
		within  time.Duration // of the wait
		least   float64
		most    float64
	}{
		{"D/D/1", 1, Dist{Kind: Fixed, Mean: 2 * ms}, true, 100, 200 * ms, 1, 1},
		{"M/D/8", 8, Dist{Kind: Fixed, Mean: 16 * ms}, false, 100, 205 * ms, 0.99, 1},
		{"M/D/8", 8, Dist{Kind: Fixed, Mean: 16 * ms}, false, 100, 203 * ms, 0, 0.99},
	} {
		// With fixed service a wait is a response less the service, and a deadline that
		// nobody is told counts those exactly.
		s := minute(700, c.n, c.service, c.even, fifo(c.n, c.depth))
		s.Length, s.Warmup = 70*time.Second, 10*time.Second
		s.Classes[0].Deadlines[0].After = c.within + c.service.Mean
		e := over(t, s, 8, inside)[0]
		t.Logf("%s, depth %d: %v wait at most %v", c.what, c.depth, e, c.within)
		if e.mean+4*e.se < c.least || e.mean-4*e.se > c.most || c.least > 0 && e.se > points {
			t.Errorf("%s, depth %d: %v wait at most %v, want %v to %v", c.what, c.depth, e, c.within, c.least, c.most)
		}
	}
	for _, c := range []struct {
		depth int
		want  float64
	}{{100, 0.245}, {80, 0.2006}} {
		s := minute(700, 8, Dist{Kind: Exponential, Mean: 16 * ms}, false, fifo(8, c.depth))
		s.Length, s.Warmup = 70*time.Second, 10*time.Second
		compare(t, s, 8, measure{what: fmt.Sprintf("M/M/8, depth %d: p99 of the wait, s", c.depth), of: quantile(waited, 0.99), want: c.want, rounding: 0.01 * c.want, most: 0.002})
	}
}

// 900 ms waited and 500 ms of work do not fit into a second: the doomed test.
func TestDoomedArithmetic(t *testing.T) {
	// One slot, busy for 900 ms with the first; the second has come with it.
	s := Scenario{
		Length: time.Second,
		Tiers: []Tier{{
			Service: Dist{Kind: Fixed, Mean: 500 * ms}, Slots: 1,
			Policy: Policy{Name: "doomed", Baseline: &Baseline{Limit: 1, Depth: Unbounded, Expire: true, Margin: 500 * ms}},
		}},
		Classes: []Class{{Deadlines: []Deadline{{time.Second, 1}}, Patience: Vanishes}},
	}
	for _, c := range []struct {
		first time.Duration // work of the first
		want  admission.Reason
	}{{900 * ms, admission.Doomed}, {501 * ms, admission.Doomed}, {500 * ms, admission.None}} {
		jobs := []Job{{Service: c.first}, {Service: 500 * ms}}
		s.Trace = func(j *Job) bool {
			if len(jobs) == 0 {
				return false
			}
			*j, jobs = jobs[0], jobs[1:]
			return true
		}
		r := play(t, s, 1)
		if doomed := r.Total.Reasons[admission.Doomed]; (doomed == 1) != (c.want == admission.Doomed) || r.Total.InTime != 2-doomed {
			t.Errorf("%v, then 500 ms: %d doomed, %d in time", c.first, doomed, r.Total.InTime)
		}
	}
}
