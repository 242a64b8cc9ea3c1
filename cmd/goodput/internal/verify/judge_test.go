package verify

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

const ms = time.Millisecond

// good is a run of a service of 400/s that is as it should be: 2,000 get a slot at each load
// above that within 200 ms, everybody else is told no after 1 ms.
func good() *Report {
	r := &Report{
		Settings: Settings{Deadline: 300 * ms, Objective: 300 * ms, Length: 5 * time.Second, Calm: 5 * time.Second},
		Idle:     Idle{Requests: 50, Status: map[int]int{200: 50}, P50: 10 * ms, Max: 11 * ms},
		Capacity: Capacity{PerSecond: 400, Error: 8},
	}
	for _, l := range []float64{0.5, 1, 1.5, 3, 10} {
		s := Step{Load: l, Rate: 400 * l, Result: result(int64(l*2000), min(int64(l*2000), 1990))}
		if l > 1 {
			s.Calm, s.Recovery = result(1000, 998), 100*ms
		}
		r.Steps = append(r.Steps, s)
	}
	return r
}

// result is that of a load of 5 s: all that were not in time were refused.
func result(offered, inTime int64) *load.Result {
	r := &load.Result{
		Plan:    load.Plan{Rate: float64(offered) / 5, Duration: 5 * time.Second, Deadline: 300 * ms, Tolerance: 5 * ms},
		Offered: offered, Sent: offered, Completed: inTime, InTime: inTime, Refused: offered - inTime,
		Status:   map[int]int64{200: inTime, 503: offered - inTime},
		Refusals: map[load.Told]int64{{Status: 503, Marked: true}: offered - inTime},
		Late:     each(offered, ms),
		Refusal:  each(offered-inTime, ms),
		Latency:  each(inTime, 50*ms, 200*ms),
		Attempts: offered,
	}
	r.RetryAfter = load.RetryAfter{Min: time.Second, Max: 3 * time.Second, Values: map[time.Duration]int64{time.Second: r.Refused / 2, 3 * time.Second: r.Refused - r.Refused/2}}
	return r
}

// each is a histogram of n durations, one in twenty as long as the last. They are kept: each
// has 200 KB, and nobody writes to one.
func each(n int64, d ...time.Duration) *load.Histogram {
	key := fmt.Sprint(n, d)
	if h := kept[key]; h != nil {
		return h
	}
	last := d[len(d)-1]
	counts := map[time.Duration]int64{last: n / 20}
	counts[d[0]] += n - n/20
	kept[key] = load.HistogramOf(counts)
	return kept[key]
}

var kept = map[string]*load.Histogram{}

// at returns the load of a step.
func at(r *Report, l float64) *load.Result { return stepOf(r, l).Result }

func stepOf(r *Report, l float64) *Step {
	return &r.Steps[slices.IndexFunc(r.Steps, func(s Step) bool { return s.Load == l })]
}

// takes moves n of those in time to another fate.
func takes(r *load.Result, n int64, fate *int64) {
	r.InTime -= n
	r.Completed -= n
	r.Status[200] -= n
	*fate += n
}

// slow makes the p99 of r d: 2 % take as long.
func slow(r *load.Result, d time.Duration) {
	n := r.Completed + r.TimedOut
	r.Latency = load.HistogramOf(map[time.Duration]int64{50 * ms: n - n/50, d: n / 50})
}

// Who meets a body that changes is told of --any-body; who is told anything else is not.
func TestChangingBodies(t *testing.T) {
	for _, c := range []struct {
		status  int
		expect  []int
		anyBody bool
		want    bool
	}{{200, nil, false, true}, {404, nil, false, false}, {404, []int{200, 404}, false, true}, {200, []int{404}, false, false}, {200, nil, true, false}} {
		r := good()
		x := at(r, 3)
		x.Unlike, x.FirstUnlike = 1, load.Answer{Status: c.status}
		r.Settings.Expect, r.Settings.AnyBody = c.expect, c.anyBody
		if why := judgeStatuses(evidenceOf(r)).why; strings.Contains(why, "say --any-body") != c.want || !strings.Contains(why, "Refuse with 503") {
			t.Errorf("%+v: %s", c, why)
		}
	}
}

// TestEachCriterion: at its bound each is met, and just beyond it that one fails, and no
// other.
func TestEachCriterion(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		name string
		at   func(*Report) // is met
		past func(*Report) // is not
		why  string        // has that
	}{
		{
			Below, // 20 of 1,000
			func(r *Report) { x := at(r, 0.5); takes(x, 10, &x.Refused); takes(x, 10, &x.TimedOut) },
			func(r *Report) { x := at(r, 0.5); takes(x, 11, &x.Refused); takes(x, 10, &x.TimedOut) },
			"at 0.5x, where there is room for everybody, 21 of 1,000 were not answered in time: 11 were refused, 10 gave up after 300 ms",
		},
		{
			Below, // the objective
			func(r *Report) { slow(at(r, 0.5), 250*ms); r.Settings.Objective = 250 * ms },
			func(r *Report) { slow(at(r, 0.5), 251*ms); r.Settings.Objective = 250 * ms },
			"at 0.5x, where there is room for everybody, one in a hundred takes 251 ms or more, and the objective is 250 ms",
		},
		{
			Goodput, // 1,900 of 2,000
			func(r *Report) { takes(at(r, 3), 90, &at(r, 3).Refused) },
			func(r *Report) { takes(at(r, 3), 91, &at(r, 3).Refused) },
			"at 3x 380/s came in time, and the service can do 400/s",
		},
		{
			Flat, // 1.5 x 150 ms, and 1 ms that the generator was late
			func(r *Report) { slow(at(r, 1.5), 150*ms); slow(at(r, 10), 226*ms) },
			func(r *Report) { slow(at(r, 1.5), 150*ms); slow(at(r, 10), 227*ms) },
			"the p99 is 150 ms at 1.5x and 227 ms at 10x",
		},
		{
			Flat, // a p99 that falls is none that rises
			func(r *Report) { slow(at(r, 1.5), 250*ms); slow(at(r, 3), 200*ms); slow(at(r, 10), 150*ms) },
			func(r *Report) { slow(at(r, 1.5), 250*ms); slow(at(r, 3), 100*ms); slow(at(r, 10), 200*ms) },
			"the p99 is 100 ms at 3x and 200 ms at 10x",
		},
		{
			Flat, // the objective
			func(r *Report) { slow(at(r, 0.5), 100*ms); r.Settings.Objective = 200 * ms },
			func(r *Report) { slow(at(r, 0.5), 100*ms); r.Settings.Objective = 199 * ms },
			"waited 200 ms or more, and the objective is 199 ms",
		},
		{
			Flat, // who gave up counts as the deadline, which is no latency that was kept
			func(r *Report) { r.Settings.Objective = 200 * ms },
			func(r *Report) {
				for _, s := range r.Steps[1:] {
					slow(s.Result, 300*ms)
				}
			},
			"one in a hundred of 1,990 that were not refused had no answer after 300 ms",
		},
		{
			Refusals, // 68.1 % are two standard errors above the 66.8 % of 3x and less
			func(r *Report) { x := at(r, 1.5); x.Offered, x.Sent, x.Refused = 6240, 6240, 4250 },
			func(r *Report) { x := at(r, 1.5); x.Offered, x.Sent, x.Refused = 7000, 7000, 5010 },
			"71.6 % ± 0.5 were refused at 1.5x, and only 66.8 % ± 0.6 at 3x",
		},
		{
			Refusals, // 50 of 1,010: 30 that hang and 20 that are late are within their own bounds
			func(r *Report) { x := at(r, 1.5); x.Refused, x.TimedOut, x.Completed = 960, 30, 1990+20 },
			func(r *Report) {
				x := at(r, 1.5)
				x.Refused, x.TimedOut, x.Completed, x.Dropped, x.Sent = 959, 30, 1990+20, 1, 2999
			},
			"at 1.5x 1,010 of 3,000 were not served in time, and 959 of them were told no",
		},
		{
			Refusals, // 21 of 110 are 1 % of all
			func(r *Report) {
				x := at(r, 1.5)
				x.Offered, x.Sent, x.Refused, x.TimedOut = 2100, 2100, 89, 21
			},
			func(r *Report) {
				x := at(r, 1.5)
				x.Offered, x.Sent, x.Refused, x.TimedOut, x.Dropped = 2100, 2099, 88, 21, 1
			},
			"at 1.5x 110 of 2,100 were not served in time, and 88 of them were told no",
		},
		{
			Prompt,
			func(r *Report) {
				r.Settings.Objective = 250 * ms
				at(r, 3).Refusal = load.HistogramOf(map[time.Duration]int64{ms: 3900, 250 * ms: 100})
			},
			func(r *Report) {
				r.Settings.Objective = 249 * ms
				at(r, 3).Refusal = load.HistogramOf(map[time.Duration]int64{ms: 3900, 250 * ms: 100})
			},
			"at 3x one in a hundred of 4,000 refusals took 250 ms or more, and the objective is 249 ms",
		},
		{
			Hanging, // 10 of 1,000
			func(r *Report) { takes(at(r, 0.5), 10, &at(r, 0.5).TimedOut) },
			func(r *Report) { takes(at(r, 0.5), 11, &at(r, 0.5).TimedOut) },
			"at 0.5x 11 of 1,000 had neither an answer nor a no after 300 ms",
		},
		{
			Late, // 10 of 1,000
			func(r *Report) { at(r, 0.5).InTime -= 10 },
			func(r *Report) { at(r, 0.5).InTime -= 11 },
			"at 0.5x about 11 of 1,000 answers came after 300 ms",
		},
		{
			Late, // 4 were late, and of 10 that gave up 5 or 10 were served: 9 or 14 of 995 or 1,000
			func(r *Report) {
				x := at(r, 0.5)
				takes(x, 10, &x.TimedOut)
				x.InTime -= 4
				x.Followed = load.Followed{Asked: 2, Served: 1, Never: 1}
			},
			func(r *Report) {
				x := at(r, 0.5)
				takes(x, 10, &x.TimedOut)
				x.InTime -= 4
				x.Followed = load.Followed{Asked: 2, Served: 2}
			},
			"(of 2 that gave up and stayed on the line 2 were served all the same)",
		},
		{
			Statuses,
			func(r *Report) {},
			func(r *Report) { x := at(r, 1); takes(x, 1, &x.Failed); x.Status[500] = 1 },
			"at 1x 1 of 2,000 answers were neither those of the idle service nor a refusal that clients know: 1 with status 500",
		},
		{
			Statuses,
			func(r *Report) {
				at(r, 10).Refusals = map[load.Told]int64{{Status: 429}: 9000, {Status: 503}: 9000, {Status: 504, Marked: true}: 10}
			},
			func(r *Report) {
				at(r, 10).Refusals = map[load.Told]int64{{Status: 429}: 9000, {Status: 503}: 9000, {Status: 200, Marked: true}: 10}
			},
			"10 that say Goodput-Rejected with status 200",
		},
		{
			Statuses, // after a load, too
			func(r *Report) { r.Steps[2].Calm.Unlike = 0 },
			func(r *Report) { r.Steps[2].Calm.Unlike = 1; r.Steps[2].Calm.InTime-- },
			"after 1.5x 1 of 1,000 answers",
		},
		{
			RetryAfter,
			func(r *Report) { at(r, 3).RetryAfter.Values[time.Hour] = 1 },
			func(r *Report) { at(r, 3).RetryAfter.Values[time.Hour+36*time.Second] = 1 },
			"a Retry-After of 1.01 h is more than 1 h",
		},
		{
			RetryAfter, // an absent one is a matter of taste
			func(r *Report) { at(r, 3).RetryAfter.Absent = 4000 },
			func(r *Report) { at(r, 3).RetryAfter.Zero, at(r, 3).RetryAfter.FirstOdd = 1, "0" },
			`(the first: "0")`,
		},
		{
			RetryAfter,
			func(r *Report) { at(r, 3).RetryAfter.Absent = 4000 },
			func(r *Report) { at(r, 3).RetryAfter.Malformed, at(r, 3).RetryAfter.FirstOdd = 1, "soon" },
			`(the first: "soon")`,
		},
		{
			Connections, // 20 of 20,000
			func(r *Report) { x := at(r, 10); x.Refused -= 20; x.Errors += 20; x.FirstError = syscall.ECONNRESET },
			func(r *Report) { x := at(r, 10); x.Refused -= 21; x.Errors += 21; x.FirstError = syscall.ECONNRESET },
			"at 10x 21 of 20,000 requests got no connection, or it broke before the answer (the first: connection reset by peer)",
		},
		{
			Connections, // one of 500 is no share
			func(r *Report) { c := result(500, 500); takes(c, 1, &c.Errors); r.Steps[2].Calm = c },
			func(r *Report) { c := result(500, 500); takes(c, 2, &c.Errors); r.Steps[2].Calm = c },
			"after 1.5x 2 of 500 requests",
		},
		{
			Recovery,
			func(r *Report) { stepOf(r, 3).Recovery = 2 * time.Second },
			func(r *Report) { stepOf(r, 3).Recovery = 2100 * ms },
			"after 3x it took 2.1 s until callers were in time again",
		},
		{
			Recovery, // in the last place, and not within the calm
			func(r *Report) { stepOf(r, 10).Recovery = 0 },
			func(r *Report) { stepOf(r, 10).Recovery = -1; stepOf(r, 10).Calm = result(1000, 700) },
			"after 10x half of the capacity was offered for 5 s, and callers were not in time again: 300 of 1,000 were not, 300 were refused",
		},
	} {
		seen[c.name] = true
		r := good()
		c.at(r)
		Judge(r)
		if r.Void != "" || !notMet(r) {
			t.Errorf("%s at its bound: %s %v", c.name, r.Void, failures(r))
		}
		r = good()
		c.past(r)
		Judge(r)
		if r.Void != "" || !notMet(r, c.name) {
			t.Errorf("%s beyond its bound: %s %v", c.name, r.Void, failures(r))
		}
		for _, x := range r.failed() {
			if x.Name == c.name && !strings.Contains(x.Why, c.why) {
				t.Errorf("%s: says %q\nwant %q", c.name, x.Why, c.why)
			}
		}
		if r.Certified() {
			t.Errorf("%s beyond its bound is certified", c.name)
		}
	}
	for _, name := range Names {
		if !seen[name] {
			t.Errorf("%s is not shown to fail alone", name)
		}
	}
}

// notMet reports whether all criteria are there, in their order, and just those with the names
// are not met.
func notMet(r *Report, names ...string) bool {
	var all, failed []string
	for _, c := range r.Criteria {
		all = append(all, c.Name)
		if !c.Met {
			failed = append(failed, c.Name)
		}
		if c.Text == "" || c.Measured == "" || (c.Why == "") != c.Met {
			return false
		}
	}
	return slices.Equal(all, Names) && slices.Equal(failed, names)
}

// failures are what a test says of a verdict that it did not expect.
func failures(r *Report) (all []string) {
	for _, c := range r.failed() {
		all = append(all, "\n\t"+c.Name+": "+c.Measured+". "+c.Why)
	}
	return all
}
