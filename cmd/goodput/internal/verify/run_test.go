package verify

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// given is a short run with a capacity that is known: 4 slots of 20 ms are 200/s.
func given(change func(*Config)) Config {
	cfg := Config{Settings: settings(), Capacity: 200}
	cfg.Loads, cfg.Length, cfg.Arrivals = []float64{0.5, 1.5, 3}, 2*time.Second, "constant"
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// Each step offers its multiple, the half load begins at the instant at which the step ends,
// and all of it is counted.
func TestSteps(t *testing.T) {
	var sent []time.Time
	var mu sync.Mutex
	s := slotted(4, 8, 20*time.Millisecond)
	r := measured(t, given(nil), func(ctx context.Context) load.Answer {
		mu.Lock()
		sent = append(sent, time.Now())
		mu.Unlock()
		return s.send(ctx)
	})
	if r.Void != "" || len(r.Steps) != 3 {
		t.Fatalf("%d steps, void %q", len(r.Steps), r.Void)
	}
	for i, want := range []struct {
		load, rate float64
		offered    int64
	}{{0.5, 100, 200}, {1.5, 300, 600}, {3, 600, 1200}} {
		s := r.Steps[i]
		if s.Load != want.load || s.Rate != want.rate || s.Result.Offered != want.offered {
			t.Errorf("step %d: %vx, %v/s, %d offered, want %+v", i, s.Load, s.Rate, s.Result.Offered, want)
		}
		if (s.Calm != nil) != (s.Load > 1) || s.Calm != nil && s.Calm.Offered != 500 {
			t.Errorf("%vx: the half load is %+v", s.Load, s.Calm)
		}
		if s.Load > 1 && s.Recovery != 0 { // 8 places are 40 ms of work
			t.Errorf("%vx: recovered after %v", s.Load, s.Recovery)
		}
	}
	// 50 idle ones, three before each step to see that the service is calm, the steps and their calm.
	if want := 50 + 3*3 + 200 + 600 + 1200 + 2*500; len(sent) != want {
		t.Errorf("%d requests in all, want %d", len(sent), want)
	}
	// 3x for 2 s ends with its last arrival 1/600 s before the half load begins, with its first.
	last := sent[len(sent)-500-2 : len(sent)-500+2]
	for i, want := range []time.Duration{time.Second / 600, time.Second / 600, 10 * time.Millisecond} {
		if got := last[i+1].Sub(last[i]); (got - want).Abs() > time.Microsecond {
			t.Errorf("around the end of a step: gap %d is %v, want %v", i, got, want)
		}
	}
}

// The queue of a service without a bound is there when the step is over. Half of the capacity
// is left for it: 600/s for 2 s leave 800 requests of which those of the last 2 s still wait,
// and a service that works on for those who left has 4 s to go at 200/s, of which half the load
// takes its part: it is not over within the half load of 5 s.
func TestRecoveryIsSlowWithoutABound(t *testing.T) {
	s := slotted(4, -1, 20*time.Millisecond)
	s.deaf = true
	r := measured(t, given(func(c *Config) { c.Loads = []float64{0.5, 3} }), s.send)
	if got := r.Steps[1].Recovery; got != -1 && got < 2*time.Second {
		t.Errorf("recovered after %v", got)
	}
}

func TestRecovery(t *testing.T) {
	bins := func(n int, offered, inTime int64) []load.Bin {
		return slices.Repeat([]load.Bin{{Offered: offered, InTime: inTime}}, n)
	}
	for name, tc := range map[string]struct {
		bins []load.Bin
		want time.Duration
	}{
		"at once":              {bins(50, 10, 10), 0},
		"95 of 100":            {append(append(bins(9, 10, 10), bins(1, 10, 5)...), bins(40, 10, 10)...), 0},
		"94 of 100":            {append(append(bins(1, 10, 4), bins(9, 10, 10)...), bins(40, 10, 10)...), 100 * time.Millisecond},
		"a relapse":            {append(bins(10, 10, 10), bins(40, 10, 0)...), -1},
		"well again after it":  {append(append(bins(10, 10, 10), bins(10, 10, 0)...), bins(30, 10, 10)...), 2 * time.Second},
		"475 of 500":           {append(append(bins(10, 10, 10), bins(35, 10, 10)...), bins(5, 10, 5)...), 0},
		"474 of 500":           {append(append(bins(10, 10, 10), bins(35, 10, 10)...), append(bins(4, 10, 5), bins(1, 10, 4)...)...), -1},
		"after 700 ms":         {append(bins(7, 10, 0), bins(43, 10, 10)...), 700 * time.Millisecond},
		"never":                {bins(50, 10, 9), -1},
		"in the last second":   {append(bins(40, 10, 0), bins(10, 10, 10)...), 4 * time.Second},
		"too late to say":      {append(bins(41, 10, 0), bins(9, 10, 10)...), -1},
		"few arrivals: longer": {append(bins(10, 1, 0), bins(40, 1, 1)...), 900 * time.Millisecond}, // 19 of 20
		"too few in all":       {bins(19, 1, 1), -1},
		"nothing":              {nil, -1},
	} {
		if got := recovery(tc.bins); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A load at which the generator was late is offered once more, unless what could not be sent
// cannot be sent, or the caps have no room for it.
func TestALateLoadIsOfferedTwice(t *testing.T) {
	late := func(p99, tolerance time.Duration) *load.Result {
		return &load.Result{Plan: load.Plan{Tolerance: tolerance}, Late: load.HistogramOf(map[time.Duration]int64{p99: 1000})}
	}
	good, bad := late(5*time.Millisecond, 5*time.Millisecond), late(6*time.Millisecond, 5*time.Millisecond)
	dropped := late(time.Second, 5*time.Millisecond)
	dropped.Dropped = 1
	for name, tc := range map[string]struct {
		first Step
		max   int64
		want  int
	}{
		"on time":         {Step{Result: good, Calm: good}, 1e6, 1},
		"late":            {Step{Result: bad, Calm: good}, 1e6, 2},
		"late afterwards": {Step{Result: good, Calm: bad}, 1e6, 2},
		"nothing after":   {Step{Result: bad}, 1e6, 2},
		"not sent":        {Step{Result: dropped, Calm: good}, 1e6, 1},
		"no room":         {Step{Result: bad, Calm: good}, 10, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := given(func(c *Config) { c.MaxRequests = tc.max })
			r := &run{cfg: c, report: &Report{Capacity: Capacity{PerSecond: c.Capacity}}}
			n := 0
			got := r.twice(t.Context(), 3, func() Step {
				n++
				if n > 1 {
					return Step{Result: good}
				}
				return tc.first
			})
			if n != tc.want || (n == 2) != (len(r.report.Notes) == 1) || n == 2 && got.Result != good {
				t.Errorf("%s: offered %d times, want %d; notes %q", name, n, tc.want, r.report.Notes)
			}
		})
	}
}

// Each setting changes what is done. Once it is loaded the service refuses everybody and says
// when to come back, so that attempts have something to do and nothing is left to chance; or
// it answers with a status that the idle one did not have.
func TestEachSettingMatters(t *testing.T) {
	foreign := load.Answer{Status: 204}
	base, other := do(t, refusal, nil), do(t, foreign, nil)
	if again := do(t, refusal, nil); again != base {
		t.Fatalf("not the same twice:\n%s\n%s", base, again)
	}
	for name, change := range map[string]func(*Config){
		"Loads":     func(c *Config) { c.Loads = []float64{0.5, 1.5} },
		"Length":    func(c *Config) { c.Length = time.Second },
		"Calm":      func(c *Config) { c.Calm = time.Second },
		"Deadline":  func(c *Config) { c.Deadline, c.Objective = 15*time.Millisecond, 15*time.Millisecond },
		"Objective": func(c *Config) { c.Objective = time.Second },
		"Capacity":  func(c *Config) { c.Capacity = 100 },
		"Arrivals":  func(c *Config) { c.Arrivals = "poisson" },
		"Trace": func(c *Config) {
			c.Arrivals, c.Trace = "log", []time.Duration{0, time.Second, time.Second, 5 * time.Second}
		},
		"Attempts":    func(c *Config) { c.Attempts = 2 },
		"MaxRate":     func(c *Config) { c.MaxRate = 99 },
		"MaxRequests": func(c *Config) { c.MaxRequests = 100 },
	} {
		if got := do(t, refusal, change); got == base {
			t.Errorf("%s changes nothing:\n%s", name, got)
		}
	}
	if got := do(t, foreign, func(c *Config) { c.Expect = []int{200, 204} }); got == other {
		t.Errorf("Expect changes nothing:\n%s", got)
	}
	trace := func(at ...time.Duration) string {
		return do(t, refusal, func(c *Config) { c.Arrivals, c.Trace = "log", at })
	}
	if trace(0, time.Second, time.Second, 5*time.Second) == trace(0, 3*time.Second, 4*time.Second, 5*time.Second) {
		t.Error("which trace it is changes nothing")
	}
	poisson := func(seed uint64) string {
		return do(t, refusal, func(c *Config) { c.Arrivals, c.Seed = "poisson", seed })
	}
	if poisson(1) == poisson(2) {
		t.Error("the seed changes nothing")
	}
	// Told to come back in 1 s, a caller with 2 s asks twice; one that does not listen asks
	// four times within 75 + 150 + 300 ms.
	for obey, want := range map[bool]string{false: "452 attempts of 113", true: "226 attempts of 113"} {
		if got := do(t, refusal, func(c *Config) { c.Attempts, c.Obey = 4, obey }); !strings.Contains(got, want) {
			t.Errorf("obey %v: no %q in\n%s", obey, want, got)
		}
	}
}

// do returns what a run comes to, of a service that is idle at first and then answers a.
func do(t *testing.T, a load.Answer, change func(*Config)) string {
	var seen atomic.Int64
	r := measured(t, given(func(c *Config) {
		c.Loads, c.Length, c.Capacity = []float64{0.5, 1.5, 2}, 1500*time.Millisecond, 50
		if change != nil {
			change(c)
		}
	}), func(ctx context.Context) load.Answer {
		if pause(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return load.Answer{Err: ctx.Err()}
		}
		if seen.Add(1) <= idleRequests {
			return load.Answer{Status: 200}
		}
		return a
	})
	text := r.Void
	for _, s := range r.Steps {
		x := s.Result
		text += fmt.Sprintf("%vx %v/s, %d attempts of %d: %d in time, %d refused, %d gave up; bins %v, tolerance %v; calm %v\n",
			s.Load, s.Rate, x.Attempts, x.Sent, x.InTime, x.Refused, x.TimedOut, x.Bins, x.Plan.Tolerance, s.Calm != nil && s.Calm.Offered > 100)
	}
	return text
}

// Who tries again waits a little and not always as long; who obeys waits as long as it is told
// and a little.
func TestBackoff(t *testing.T) {
	said := load.Answer{Status: 503, Reason: "x", RetryAfter: "2"}
	for _, tc := range []struct {
		obey   bool
		n      int
		before load.Answer
		lo, hi time.Duration
	}{
		{false, 2, said, 25 * time.Millisecond, 75 * time.Millisecond},
		{false, 4, said, 100 * time.Millisecond, 300 * time.Millisecond},
		{true, 2, said, 2025 * time.Millisecond, 2075 * time.Millisecond},
		{true, 2, load.Answer{Status: 503, Reason: "x"}, 25 * time.Millisecond, 75 * time.Millisecond},
		{true, 10, load.Answer{Err: context.Canceled}, 25 * 256 * time.Millisecond, 75 * 256 * time.Millisecond},
	} {
		r := &run{cfg: Config{Settings: Settings{Obey: tc.obey}}}
		seen := map[time.Duration]bool{}
		for range 100 {
			d := r.backoff(tc.n, tc.before)
			if seen[d] = true; d < tc.lo || d >= tc.hi {
				t.Fatalf("attempt %d, obey %v: %v, want %v to %v", tc.n, tc.obey, d, tc.lo, tc.hi)
			}
		}
		if len(seen) < 50 { // of 50 million nanoseconds
			t.Errorf("attempt %d: %d different waits of 100", tc.n, len(seen))
		}
	}
}

// Interrupted at any time, a run ends at once and leaves nothing behind: the bubble waits for
// its goroutines.
func TestInterrupted(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 4 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second} {
		s := slotted(4, -1, 20*time.Millisecond)
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			cfg := Config{Settings: settings(), Target: &Target{}}
			r := &run{cfg: cfg, send: s.send, report: &Report{}}
			began := time.Now()
			r.measure(ctx)
			if took := time.Since(began); took > after+20*time.Millisecond { // a service that has begun
				t.Errorf("interrupted after %v, ended after %v", after, took)
			}
			if r.report.Void != "" {
				t.Errorf("after %v: void %q before it is said that it was interrupted", after, r.report.Void)
			}
			time.Sleep(time.Second) // the service ends what it had begun
		})
	}
}

// What does not fit into the caps is known before it is sent.
func TestCaps(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"rate":     {func(c *Config) { c.MaxRate = 599 }, "3x of 200/s are 600/s, more than --max-rate 599/s allows"},
		"attempts": {func(c *Config) { c.MaxRate, c.Attempts = 1000, 2 }, "3x of 200/s with 2 attempts each are 1,200/s"},
		// 5x for 2 s of 200/s are 2,000, two half loads of 5 s are 1,000, 50 are idle, and each
		// step has 3 before it.
		"requests": {func(c *Config) { c.MaxRequests = 3058 }, "are 3,059 requests in all, more than --max-requests 3,058"},
		"fits":     {func(c *Config) { c.MaxRate, c.MaxRequests = 600, 3059 }, ""},
	} {
		cfg := given(tc.change)
		if got := cfg.fits(cfg.Capacity, idleRequests); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		s := slotted(4, 8, 20*time.Millisecond)
		r := measured(t, cfg, s.send)
		if (r.Void == "") != (tc.want == "") || tc.want != "" && (s.seen != idleRequests || len(r.Steps) > 0) {
			t.Errorf("%s: void %q after %d requests", name, r.Void, s.seen)
		}
		if int64(s.seen) > cfg.MaxRequests {
			t.Errorf("%s: %d requests of at most %d", name, s.seen, cfg.MaxRequests)
		}
	}
}

// What chance adds to the mean is not sent beyond the cap, and the run is no answer.
func TestNotOneMoreThanTheCap(t *testing.T) {
	over := 0
	for seed := range uint64(8) {
		s := slotted(4, 8, 20*time.Millisecond)
		r := measured(t, given(func(c *Config) { c.MaxRequests, c.Arrivals, c.Seed = 3059, "poisson", seed }), s.send)
		if s.seen > 3059 || (s.seen == 3059) != strings.Contains(r.Void, "--max-requests 3,059 were sent") {
			t.Errorf("seed %d: %d requests, void %q", seed, s.seen, r.Void)
		}
		if r.Void != "" {
			over++
		}
	}
	// The mean of a Poisson number is exceeded by half of them: none or all of 8 are one in 128.
	if over == 0 || over == 8 {
		t.Errorf("%d of 8 seeds went over the mean", over)
	}
}

func TestLike(t *testing.T) {
	answer := func(status int, kind string, size int64, sum uint64) load.Answer {
		return load.Answer{Status: status, Content: load.Content{Type: kind, Size: size, Sum: sum}}
	}
	ok := answer(200, "text/html", 100, 1)
	same := slices.Repeat([]load.Answer{ok}, leastAlike)
	varied := []load.Answer{ok, answer(200, "text/html", 300, 2), answer(404, "text/plain", 200, 3)}
	for name, tc := range map[string]struct {
		idle    []load.Answer
		expect  []int
		a       load.Answer
		want    bool
		words   string
		anyBody bool
	}{
		"the same":              {same, nil, ok, true, "200, 100 bytes of text/html, always the same", false},
		"another sum":           {same, nil, answer(200, "text/html", 100, 2), false, "", false},
		"another status":        {same, nil, answer(201, "text/html", 100, 1), false, "", false},
		"a status that is fine": {same, []int{200, 201}, answer(201, "text/html", 100, 1), true, "", false},
		"one less says nothing": {same[1:], nil, answer(200, "text/html", 100, 2), true, "200, 100 bytes of text/html", false},
		"tenth of the smallest": {varied, nil, answer(200, "text/html", 10, 9), true, "200 or 404, 100 to 300 bytes of text/html and 1 more media types", false},
		"less than that":        {varied, nil, answer(200, "text/html", 9, 9), false, "", false},
		"ten times the largest": {varied, nil, answer(404, "text/plain", 3000, 9), true, "", false},
		"more than that":        {varied, nil, answer(404, "text/plain", 3001, 9), false, "", false},
		"another type":          {varied, nil, answer(200, "application/json", 100, 9), false, "", false},
		"all were refused":      {nil, nil, ok, true, "", false},
		"refused, and not fine": {nil, []int{204}, ok, false, "", false},
		"any body":              {same, nil, answer(200, "text/html", 100_000, 2), true, "", true},
		"any body, other type":  {same, nil, answer(200, "text/plain", 100, 1), false, "", true},
		"any body, status":      {same, nil, answer(201, "text/html", 100, 1), false, "", true},
		"any body, all refused": {nil, nil, ok, true, "", true},
	} {
		s := &sample{answers: tc.idle}
		if got := s.like(tc.expect, tc.anyBody)(tc.a); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := s.words(); tc.words != "" && got != tc.words {
			t.Errorf("%s: %q, want %q", name, got, tc.words)
		}
	}
}

// A service that refuses with status 200 and a body of its own has no endless capacity.
func TestRefusingWith200IsNoAnswer(t *testing.T) {
	s := slotted(4, 8, 20*time.Millisecond)
	r := searched(t, func(ctx context.Context) load.Answer {
		a := s.send(ctx)
		if a.Refused() {
			return load.Answer{Status: 200, Content: load.Content{Type: "text/plain", Size: 4, Sum: 8}}
		}
		return a
	}, nil)
	// As in TestCapacity: fixed services of 4 slots.
	if c := r.Capacity; r.Void != "" || c.PerSecond < 200-4*c.Error-4 || c.PerSecond > 200+4*c.Error+4 {
		t.Errorf("%.1f/s, void %q", c.PerSecond, r.Void)
	}
}

// Whatever is set is in the report.
func TestReportHasTheSettings(t *testing.T) {
	cfg := given(nil)
	if r := measured(t, cfg, slotted(4, 8, 20*time.Millisecond).send); !reflect.DeepEqual(r.Settings, cfg.Settings) || r.Target != "http://service" {
		t.Errorf("%+v of %+v", r.Settings, cfg.Settings)
	}
}
