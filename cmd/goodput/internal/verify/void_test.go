package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

func TestGoodIsCertified(t *testing.T) {
	r := good()
	Judge(r)
	if !r.Certified() || !notMet(r) || len(r.Notes) != 0 {
		t.Errorf("void %q, notes %q%v", r.Void, r.Notes, failures(r))
	}
}

// lost makes n of r connections that broke.
func lost(r *load.Result, n int64, err error) {
	takes(r, min(n, r.InTime), &r.Errors)
	r.Refused -= n - r.Errors
	r.Errors, r.FirstError = n, err
}

// fewer shortens a step to that many slots at its capacity.
func fewer(r *load.Result, length time.Duration, slots int64) {
	r.Plan.Duration = length
	r.Latency = load.HistogramOf(map[time.Duration]int64{50 * ms: slots})
}

func TestVoidRuns(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Report)
		want string // "": there is an answer
	}{
		{"as it was", func(*Report) {}, ""},
		{"interrupted", func(r *Report) { r.Void = "interrupted before its end" }, "interrupted before its end"},
		{"no steps", func(r *Report) { r.Steps = nil }, "no load was run"},
		{"none above", func(r *Report) { r.Steps = r.Steps[:2] }, "--steps needs one above 1"},
		{"none below", func(r *Report) { r.Steps = r.Steps[1:] }, "--steps needs one of at most 0.5"},
		{"no result", func(r *Report) { r.Steps[1].Result = nil }, "a load has no result"},
		{"nothing measured", func(r *Report) { *at(r, 3) = load.Result{} }, "at 3x nothing was measured"},
		{"no capacity", func(r *Report) { r.Capacity.PerSecond = math.NaN() }, "the capacity is NaN"},
		{"late at its tolerance", func(r *Report) { at(r, 3).Late = load.HistogramOf(map[time.Duration]int64{5 * ms: 6000}) }, ""},
		{"late", func(r *Report) { at(r, 3).Late = load.HistogramOf(map[time.Duration]int64{6 * ms: 6000}) }, "at 3x the load was not offered in time"},
		{"late at 1x", func(r *Report) { at(r, 1).Late = load.HistogramOf(map[time.Duration]int64{6 * ms: 2000}) }, "at 1x the load was not offered in time"},
		{"late after", func(r *Report) { r.Steps[3].Calm.Late = load.HistogramOf(map[time.Duration]int64{6 * ms: 2000}) }, "after 3x the load was not offered in time"},
		{"dropped", func(r *Report) { at(r, 10).Dropped = 201 }, "at 10x the load was not offered: 201 of 20000"},
		{"cut", func(r *Report) { at(r, 10).Interrupted = true }, "at 10x interrupted"},
		{"no calm", func(r *Report) { r.Steps[4].Calm = nil }, "the load after 10x is missing"},
		{"calm too short", func(r *Report) { s := &r.Steps[4]; s.Recovery, s.Calm.Plan.Duration = -1, 2900*ms }, "half of the capacity was offered for 2.9 s only"},
		{"calm long enough", func(r *Report) { s := &r.Steps[4]; s.Recovery, s.Calm.Plan.Duration = -1, 3*time.Second }, ""},
		{"short calm that shows it", func(r *Report) { r.Steps[4].Calm.Plan.Duration = 1500 * ms }, ""},

		// 400/s x 1.31 s x 0.95 = 498
		{"too few", func(r *Report) { fewer(at(r, 3), 1310*ms, 499) }, "at 3x only 499 got a slot, and a p99 takes 500: at a capacity of 400/s that needs --duration 2s"},
		{"just enough", func(r *Report) { fewer(at(r, 3), 1310*ms, 500); at(r, 3).InTime = 500 }, ""},
		{"few, by its own doing", func(r *Report) { fewer(at(r, 3), 5*time.Second, 3); at(r, 3).InTime = 3 }, ""},
		{"few below", func(r *Report) { fewer(at(r, 0.5), 5*time.Second, 3) }, ""},

		{"more than its capacity", func(r *Report) { r.Capacity.PerSecond = 360 }, "at 1.5x 398/s were in time, more than the capacity that was found, 360/s"},
		{"a wrong one was given", func(r *Report) { r.Capacity = Capacity{PerSecond: 100, Given: true} }, "more than the capacity that was given, 100/s"},
		{"a tenth more", func(r *Report) { r.Capacity.PerSecond = 362 }, ""},

		// (1.05 - 1) x 5 s are 250 ms of queue, and callers stay for 300 ms.
		{"hardly above", func(r *Report) { r.Steps = r.Steps[:3]; r.Steps[2].Load = 1.05 }, "at 1.05x for 5 s a queue without a bound would be 250 ms long"},
		{"above for long enough", func(r *Report) { r.Steps = r.Steps[:3]; r.Steps[2].Load = 1.06 }, ""},

		{"gone", func(r *Report) {
			s := &r.Steps[4]
			lost(s.Result, 20000, syscall.ECONNREFUSED)
			lost(s.Calm, 1000, syscall.ECONNREFUSED)
		}, "at 10x the target answered nothing, nor after it: connection refused"},
		{"gone at half", func(r *Report) { lost(at(r, 0.5), 1000, syscall.ECONNREFUSED) }, "at 0.5x the target answered nothing"},
		{"there again", func(r *Report) { lost(at(r, 10), 20000, syscall.ECONNREFUSED) }, ""}, // it lets nobody in: no answer is an answer
		{"our own", func(r *Report) { lost(at(r, 10), 21, fmt.Errorf("dial: %w", syscall.EMFILE)) }, "at 10x the load was not offered: this machine has no more connections"},
		{"a few of our own", func(r *Report) { lost(at(r, 10), 20, fmt.Errorf("dial: %w", syscall.EADDRNOTAVAIL)) }, ""},

		{"refused when idle", func(r *Report) { r.Capacity, r.Steps = Capacity{Why: "each of 50 was refused"}, nil }, ""},
		{"never asked", func(r *Report) { r.Capacity, r.Steps, r.Idle = Capacity{}, nil, Idle{} }, "the target was asked nothing"},
		{"never there", func(r *Report) {
			p := result(100, 100)
			lost(p, 100, syscall.ECONNREFUSED)
			r.Capacity, r.Steps, r.Idle = Capacity{Probes: []Probe{{20, p}}}, nil, Idle{Requests: 50}
		}, "the target answered nothing: connection refused"},
		{"late search", func(r *Report) {
			p := result(100, 0)
			p.Late = load.HistogramOf(map[time.Duration]int64{6 * ms: 100})
			r.Capacity, r.Steps = Capacity{Probes: []Probe{{20, p}}}, nil
		}, "at 20.0/s the load was not offered in time"},
	} {
		r := good()
		c.edit(r)
		Judge(r)
		if (r.Void == "") != (c.want == "") || !strings.Contains(r.Void, c.want) {
			t.Errorf("%s: void %q, want %q", c.name, r.Void, c.want)
		}
		if r.Void != "" && (len(r.Criteria) > 0 || r.Certified()) {
			t.Errorf("%s: a run that is no answer has one: %v", c.name, failures(r))
		}
		if r.Void == "" && len(r.Criteria) != len(Names) {
			t.Errorf("%s: %d criteria", c.name, len(r.Criteria))
		}
		for _, o := range r.Unjudged {
			if o.Why != r.Void {
				t.Errorf("%s: %s is not judged, since %q, and there is no answer, since %q", c.name, o.Name, o.Why, r.Void)
			}
		}
		eachOfNames(t, c.name, r)
	}
}

// A load that was late is left out: the others decide if one of them is not as it should be, and
// so does what was on the wire, at whatever load. If nothing is wrong, nothing is certified.
func TestALoadIsLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Report)
		no   []string // criteria that are not met; none: no answer
	}{
		"nothing is wrong":      {func(*Report) {}, nil},
		"at that load":          {func(r *Report) { takes(at(r, 3), 1990, &at(r, 3).TimedOut); slow(at(r, 3), 300*ms) }, nil}, // may be the generator
		"its recovery":          {func(r *Report) { stepOf(r, 3).Recovery = -1 }, nil},
		"on the wire":           {func(r *Report) { at(r, 3).RetryAfter.Zero = 1 }, []string{RetryAfter}},
		"on the wire elsewhere": {func(r *Report) { at(r, 3).Unlike = 1; at(r, 10).RetryAfter.Malformed = 1 }, []string{Statuses, RetryAfter}},
		"another load": {
			func(r *Report) { takes(at(r, 10), 1990, &at(r, 10).TimedOut); slow(at(r, 10), 300*ms) },
			[]string{Goodput, Flat, Refusals, Hanging},
		},
		"another recovery": {func(r *Report) { stepOf(r, 10).Recovery = -1 }, []string{Recovery}},
	} {
		r := good()
		c.edit(r)
		at(r, 3).Late = load.HistogramOf(map[time.Duration]int64{6 * ms: 6000})
		Judge(r)
		var got []string
		for _, f := range r.failed() {
			got = append(got, f.Name)
		}
		said := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "Left out of the verdict: at 3x") })
		if r.Certified() || !slices.Equal(got, c.no) || (r.Void == "") != (c.no != nil) || said != (c.no != nil) {
			t.Errorf("%s: void %q, not met %q, want %q; notes %q", name, r.Void, got, c.no, r.Notes)
		}
		for _, f := range r.Criteria {
			if f.Name == Goodput && strings.Contains(f.Measured, "3x") {
				t.Errorf("%s: the load that was left out is in %q", name, f.Measured)
			}
		}
	}
}

// If no load says anything, what was on the wire is all that is judged.
func TestWhatStandsAlthoughEachLoadWasLate(t *testing.T) {
	r := good()
	at(r, 3).RetryAfter.Zero = 1
	for _, s := range r.Steps {
		s.Result.Late = load.HistogramOf(map[time.Duration]int64{6 * ms: 6000})
	}
	Judge(r)
	if r.Void != "" || len(r.failed()) != 1 || r.failed()[0].Name != RetryAfter || len(r.Criteria) != 2 {
		t.Errorf("void %q, criteria %v", r.Void, r.Criteria)
	}

	// Lost connections of the search say nothing in their place.
	r = good()
	for _, s := range r.Steps {
		s.Result.Late = load.HistogramOf(map[time.Duration]int64{6 * ms: 6000})
	}
	p := result(1000, 900)
	lost(p, 50, syscall.ECONNRESET)
	r.Capacity.Probes = []Probe{{200, p}}
	if Judge(r); r.Void == "" || len(r.Criteria) != 0 {
		t.Errorf("void %q, criteria %v", r.Void, r.Criteria)
	}
}

// A service that serves nobody has its answer, which is no: nothing is met that was not seen.
func TestNobodyServed(t *testing.T) {
	p := result(100, 0)
	p.RetryAfter.Zero = 3
	for name, c := range map[string]struct {
		capacity Capacity
		met      []string
		why      string
	}{
		"refused when idle": {Capacity{Why: "each of 50 requests was refused"}, nil, "Each of 50 requests was refused. A service that serves nobody"},
		"refused in probes": {Capacity{Probes: []Probe{{40, result(200, 0)}, {20, p}}}, []string{Statuses, Connections}, "at 20.0/s 0 of 100 came in time, and of the others 100 were refused"},
	} {
		r := good()
		r.Capacity, r.Steps = c.capacity, nil
		Judge(r)
		var met []string
		for _, x := range r.Criteria {
			if x.Met {
				met = append(met, x.Name)
			}
		}
		if r.Void != "" || len(r.Criteria) != len(Names) || !slices.Equal(met, c.met) {
			t.Errorf("%s: void %q, met %q, want %q", name, r.Void, met, c.met)
		}
		for _, x := range r.Criteria {
			if (x.Name == Below || x.Name == Goodput) && !strings.Contains(x.Why, c.why) {
				t.Errorf("%s: %s: %q, want %q", name, x.Name, x.Why, c.why)
			}
		}
	}
}

// A service that lets in a few although it could serve more has its answer, and no p99: what a
// few had is not what many would have.
func TestFewServed(t *testing.T) {
	r := good()
	x := at(r, 10)
	takes(x, 1987, &x.Refused)
	x.Latency = each(3, ms)
	Judge(r)
	if r.Void != "" || !notMet(r, Goodput, Flat) {
		t.Errorf("void %q%v", r.Void, failures(r))
	}
}

func TestNotesOfAVerdict(t *testing.T) {
	for _, c := range []struct {
		edit func(*load.RetryAfter, int64)
		want string
	}{
		{func(*load.RetryAfter, int64) {}, ""},
		{func(a *load.RetryAfter, n int64) { *a = load.RetryAfter{Absent: n} }, "No refusal has a Retry-After"},
		{func(a *load.RetryAfter, n int64) {
			*a = load.RetryAfter{Min: time.Second, Max: time.Second, Values: map[time.Duration]int64{time.Second: n}}
		}, "say the same Retry-After, 1 s"},
	} {
		r := good()
		for _, s := range r.Steps {
			c.edit(&s.Result.RetryAfter, s.Result.Refused)
			if s.Calm != nil {
				c.edit(&s.Calm.RetryAfter, s.Calm.Refused)
			}
		}
		Judge(r)
		if got := strings.Join(r.Notes, " "); !r.Certified() || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("notes %q, want %q%v", got, c.want, failures(r))
		}
	}
}

// TestNarrowly: a miss that noise may explain is one all the same, and is said to be narrow.
func TestNarrowly(t *testing.T) {
	for lost, narrow := range map[int64]bool{21: true, 28: true, 31: false, 100: false} { // 2 % ± 0.44 of 1,000: 3.1 % ± 0.55 is two away
		r := good()
		takes(at(r, 0.5), lost, &at(r, 0.5).Refused)
		Judge(r)
		c := r.Criteria[0]
		if c.Met || strings.Contains(c.Why, "within two standard errors") != narrow {
			t.Errorf("%d of 1,000 lost: %+v", lost, c)
		}
	}
}

// TestRandomReports: whatever a report says, Judge does not panic, is either void or judges
// all or says no, and its yes is one that a plain reading of the numbers agrees with.
func TestRandomReports(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	yes := 0
	for i := range 5_000 {
		r := good()
		for range rng.IntN(4) {
			spoil(r, rng)
		}
		Judge(r)
		// Fewer of them are a no, with loads that were left out.
		if r.Void == "" && len(r.Criteria) != len(Names) && len(r.failed()) == 0 || r.Void != "" && r.Certified() {
			t.Fatalf("seed %d, run %d: void %q with %d criteria", seed, i, r.Void, len(r.Criteria))
		}
		eachOfNames(t, fmt.Sprintf("seed %d, run %d", seed, i), r)
		for _, c := range r.Criteria {
			if c.Text == "" || c.Measured == "" || (c.Why == "") != c.Met {
				t.Fatalf("seed %d, run %d: %+v", seed, i, c)
			}
		}
		if r.Certified() {
			yes++
			if why := plainly(r); why != "" {
				t.Fatalf("seed %d, run %d: certified, and %s", seed, i, why)
			}
		}
	}
	if yes < 500 { // about 1/4 are not spoiled, and some are not spoiled by much
		t.Errorf("seed %d: %d of 5,000 certified", seed, yes)
	}
}

// odd are numbers that nobody expects.
var odd = []float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 0.5, 400}

// spoil makes one thing wrong.
func spoil(r *Report, rng *rand.Rand) {
	x := odd[rng.IntN(len(odd))]
	if len(r.Steps) == 0 {
		return
	}
	s := &r.Steps[rng.IntN(len(r.Steps))]
	l := s.Result
	if s.Calm != nil && rng.IntN(4) == 0 {
		l = s.Calm
	}
	n := rng.Int64N(2500)
	if l != nil && l.Status == nil {
		l.Status = map[int]int64{}
	}
	switch rng.IntN(16) {
	case 0:
		r.Capacity.PerSecond = x
	case 1:
		r.Capacity.Error = x
	case 2:
		s.Load = x
	case 3:
		s.Recovery = time.Duration(rng.Int64N(int64(5*time.Second))) - time.Second
	case 4:
		s.Calm = nil
	case 5:
		s.Result = &load.Result{}
	case 6:
		r.Steps = r.Steps[:rng.IntN(len(r.Steps)+1)]
	case 7:
		r.Settings.Objective = time.Duration(rng.Int64N(int64(time.Second)))
	}
	if l == nil {
		return
	}
	fates := []*int64{&l.Refused, &l.TimedOut, &l.Errors, &l.Failed, &l.Dropped, &l.Unlike, &l.Offered, &l.Sent, &l.RetryAfter.Zero}
	switch rng.IntN(8) {
	case 0:
		takes(l, n, fates[rng.IntN(len(fates))])
	case 1:
		*fates[rng.IntN(len(fates))] = n - 10
	case 2:
		l.Latency, l.Refusal = load.HistogramOf(nil), nil
	case 3:
		l.Latency = load.HistogramOf(map[time.Duration]int64{time.Duration(n) * ms / 4: n + 1})
	case 4:
		l.Plan = load.Plan{}
	case 5:
		l.Status, l.Refusals, l.Reasons, l.RetryAfter.Values = nil, nil, nil, nil
	case 6:
		l.Followed = load.Followed{Asked: n % 3, Served: n % 5}
	case 7:
		l.InTime = n
	}
}

// plainly says what is wrong with a yes, by the shortest reading of the criteria that there is.
func plainly(r *Report) string {
	above, below := false, false
	for _, s := range r.Steps {
		l := s.Result
		if l.Unlike > 0 || l.Failed > 0 || l.RetryAfter.Zero > 0 || l.Errors > 1 && l.Errors*1000 > l.Offered {
			return "something foreign was seen"
		}
		if s.Load <= 0.5 {
			below = true
			if (l.Offered-l.InTime)*50 > l.Offered {
				return "more than 2 % lost at half"
			}
		}
		if s.Load > 1 {
			above = true
			p99, ok := l.Latency.Quantile(0.99)
			switch {
			case float64(l.InTime) < 0.95*min(float64(l.Offered), r.Capacity.PerSecond*l.Plan.Duration.Seconds()):
				return "too few in time"
			case !ok || p99 > r.Settings.Objective || p99 >= l.Plan.Deadline:
				return "a p99 beyond its bound"
			case l.TimedOut*100 > l.Offered:
				return "too many hang"
			case s.Recovery < 0 || s.Recovery > 2*time.Second:
				return "no recovery"
			}
		}
	}
	if !above || !below {
		return "a load is missing"
	}
	return ""
}
