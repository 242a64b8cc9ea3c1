package sim

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// handed returns a trace of the given jobs.
func handed(jobs ...Job) func(*Job) bool {
	return func(j *Job) bool {
		if len(jobs) == 0 {
			return false
		}
		*j, jobs = jobs[0], jobs[1:]
		return true
	}
}

// A queue that displaces is never deeper than it may be, not even between the
// newcomer and its victim.
func TestPeakQueueOfWhoDisplaces(t *testing.T) {
	for _, p := range []Policy{
		{Name: "lifo", Baseline: &Baseline{Limit: 60, Depth: 7, Order: LIFO, PushOut: true}},
		{Name: "core", Core: &admission.Config{Limit: limit.Fixed(60), Objective: 400 * ms, Depth: 7, Overflow: admission.EvictOldest}},
	} {
		s := plain(3, exponential50, 2*time.Second, time.Second).With(p)
		if got := play(t, s, 1).Tiers[0].PeakQueue; got != 7 {
			t.Errorf("%s: %d waited at once, want the depth, 7", p.Name, got)
		}
	}
}

// A limiter that is not told the deadline cannot go by it, whoever it is by.
func TestUntoldBaseline(t *testing.T) {
	for _, p := range []Policy{
		{Name: "expiry", Baseline: &Baseline{Limit: slots, Depth: 480, Expire: true}},
		{Name: "doomed", Baseline: &Baseline{Limit: slots, Depth: 480, Expire: true, Margin: 100 * ms}},
		{Name: "edf", Baseline: &Baseline{Limit: slots, Depth: 480, Order: EDF}},
	} {
		s := plain(2, exponential50, 300*ms, time.Second)
		s.Classes[0].Deadlines = []Deadline{{300 * ms, 1}, {100 * ms, 1}}
		s.Classes[0].Untold = true
		got, want := play(t, s.With(p), 1), play(t, s.With(fifo(slots, 480)), 1)
		if got.Total.Served != want.Total.Served || got.Total.InTime != want.Total.InTime || got.Total.Wait != want.Total.Wait {
			t.Errorf("%s: serves %d, %d in time; a FIFO, which knows as much, %d, %d", p.Name, got.Total.Served, got.Total.InTime, want.Total.Served, want.Total.InTime)
		}
	}
}

// Where deadlines do not differ, who came first goes first.
func TestEqualDeadlinesInOrder(t *testing.T) {
	s := plain(2, exponential50, 0, time.Second)
	edf := Policy{Name: "edf", Baseline: &Baseline{Limit: slots, Depth: 480, Order: EDF}}
	got, want := play(t, s.With(edf), 1), play(t, s.With(fifo(slots, 480)), 1)
	if got.Total.Wait != want.Total.Wait {
		t.Errorf("EDF of nobody's deadlines waits %v in all, FIFO %v; the worst %v, %v", got.Total.Wait.Sum, want.Total.Wait.Sum, got.Tiers[0].PeakAge, want.Tiers[0].PeakAge)
	}
}

// Recorded requests count with the work, the cost and the size that they have.
func TestCapacityOfATrace(t *testing.T) {
	s := Scenario{
		Length:  10 * time.Second,
		Tiers:   []Tier{{Policy: fifo(10, 0), Service: Dist{Kind: Fixed, Mean: 100 * ms}}},
		Classes: []Class{{}},
	}
	for _, c := range []struct {
		name  string
		sizes []Size
		rate  float64 // of others in the class
		jobs  []Job
		want  float64
	}{
		{"their work", nil, 0, []Job{{Service: 200 * ms}, {Service: 600 * ms}}, 10 / 0.4},
		{"their cost", nil, 0, []Job{{Service: 200 * ms, Cost: 2}, {Service: 600 * ms}}, 10 / 0.5},
		{"what is drawn", nil, 0, []Job{{}, {Service: 500 * ms}}, 10 / 0.3},
		{"drawn, of units", []Size{{1, 1}}, 0, []Job{{Size: 5}, {Size: 1}}, 10 / 0.3},
		{"drawn, whatever the size", nil, 0, []Job{{Size: 5}, {Size: 1}}, 10 / 0.1},
		{"drawn, of a cost", nil, 0, []Job{{Cost: 5}, {Cost: 1}}, 10 / 0.3},
		{"two of 1.1 s beside eight of 0.1 s", nil, 0.85, []Job{{Service: 1100 * ms}, {Service: 1100 * ms}}, 10 / 0.3},
	} {
		s := s
		s.Classes = []Class{{Sizes: c.sizes, Arrivals: Arrivals{Rate: c.rate, Process: Constant}}} // 0.85/s: eight in 10 s
		s.Trace = handed(c.jobs...)
		r := play(t, s, 1)
		if math.Abs(r.Capacity-c.want) > 1e-6 {
			t.Errorf("%s: capacity %v of %d requests, want %v", c.name, r.Capacity, r.Total.Requests, c.want)
		}
	}
}

// A recorded size without a recorded work is that many units of drawn work where the
// work of the class is one of units.
func TestSizeOfATrace(t *testing.T) {
	for _, c := range []struct {
		sizes []Size
		want  time.Duration
	}{{nil, 50 * ms}, {[]Size{{1, 1}}, 200 * ms}} {
		s := plain(0, fixed50, 0, 0)
		s.Warmup, s.Length = 0, time.Second
		s.Classes[0].Sizes = c.sizes
		s.Trace = handed(Job{Size: 4})
		if r := play(t, s, 1); r.Ended != c.want {
			t.Errorf("4 units of 50 ms, classes of %v: ends after %v, want %v", c.sizes, r.Ended, c.want)
		}
	}
}

// The best of contention is about requests, of which a cost lets fewer in.
func TestCapacityOfCostUnderContention(t *testing.T) {
	s := plain(0.1, fixed50, 0, 5*time.Second)
	s.Classes[0].Cost = 4 // 15 at once, each 1 + 14/10 times as long
	s.Tiers[0].Contention = Contention{Alpha: 0.1}
	if got, want := play(t, s, 1).Capacity, 15/0.05/2.4; math.Abs(got-want) > 1e-6 {
		t.Errorf("capacity %v, want %v", got, want)
	}
}

// The ceilings are above what a policy reaches, in the corners too.
func TestCeilings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Scenario)
	}{
		{"plain", func(*Scenario) {}},
		{"half as fast, and stalls", func(s *Scenario) {
			s.Tiers[0].Speed = Speed{Steps: []SpeedStep{{5 * time.Second, 0.5}}, Stalls: []Stall{{6 * time.Second, 500 * ms}}, Pauses: Pauses{Every: 500 * ms, For: 20 * ms}}
		}},
		{"cheap and dear", func(s *Scenario) {
			s.Classes = append(s.Classes, s.Classes[0])
			s.Classes[1].Cost = 10
			s.Classes[1].Arrivals.Rate /= 10
		}},
		{"sizes", func(s *Scenario) { s.Classes[0].Sizes = []Size{{1, 9}, {10, 1}} }},
		{"deadlines that differ", func(s *Scenario) { s.Classes[0].Deadlines = []Deadline{{time.Second, 1}, {100 * ms, 1}} }},
		{"retries", func(s *Scenario) { s.Classes[0].Retry = Retry{Attempts: 4, Backoff: 50 * ms, Within: 3 * time.Second} }},
		{"a class that comes late", func(s *Scenario) {
			s.Classes[0].Arrivals.Changes = []Change{{At: 10 * time.Second}}
		}},
	} {
		s := plain(2, exponential50, 400*ms, 10*time.Second)
		c.change(&s)
		ceilings, err := s.Ceilings(1)
		if err != nil {
			t.Fatal(err)
		}
		edf := named(t, "edf_expiry", 0, exponential50)
		for _, p := range []Policy{s.Tiers[0].Policy, edf, named(t, "reject", 0, exponential50)} {
			r := play(t, s.With(p), 1)
			// A ratio is about the mean work, and 24,000 draws of it are 0.6 % off.
			got, most := r.Ratio(), 1+4/math.Sqrt(24_000)
			t.Logf("%s: %s %.4f of %.4f, %.4f", c.name, p.Name, got, ceilings.Clairvoyant, ceilings.SizeAware)
			if got > ceilings.Clairvoyant || got > ceilings.SizeAware*most {
				t.Errorf("%s: %s reaches %.4f, above the ceilings: %+v", c.name, p.Name, got, ceilings)
			}
			if p.Name == "reject" && ceilings.NoQueue > 0 && math.Abs(got-ceilings.NoQueue) > 4*math.Sqrt(2)/math.Sqrt(24_000)+0.01 {
				t.Errorf("%s: refusing at once reaches %.4f, said to be %.4f", c.name, got, ceilings.NoQueue)
			}
		}
	}
}

// Where a ceiling means nothing it is missing, with the reason.
func TestCeilingsMissing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Scenario)
		zero   func(c Ceilings) bool
	}{
		{"nothing comes", func(s *Scenario) { s.Classes[0].Arrivals.Rate = 0 }, func(c Ceilings) bool { return c.Jobs == 0 }},
		{"nothing moves", func(s *Scenario) { s.Tiers[0].Speed.Stalls = []Stall{{0, time.Hour}} }, func(c Ceilings) bool { return c.SizeAware == 0 && c.Clairvoyant == 0 }},
		{"each attempt has the whole deadline", func(s *Scenario) { s.Classes[0].Retry.Attempts = 3 }, func(c Ceilings) bool { return c.Clairvoyant == 0 && c.SizeAware > 0 }},
		{"no Poisson arrivals", func(s *Scenario) { s.Classes[0].Arrivals.Process = Constant }, func(c Ceilings) bool { return c.NoQueue == 0 && c.Clairvoyant > 0 }},
		{"work that fails", func(s *Scenario) { s.Tiers[0].Faults = []Fault{{0, time.Second, 0.5}} }, func(c Ceilings) bool { return c.NoQueue == 0 && c.Clairvoyant > 0 }},
		{"two tiers", func(s *Scenario) {
			s.Tiers[0].Next = &Fan{Tier: 1}
			s.Tiers = append(s.Tiers, Tier{Policy: fifo(60, 0), Service: fixed50})
		}, func(c Ceilings) bool { return c.SizeAware == 0 && c.Clairvoyant == 0 && c.NoQueue == 0 }},
		{"no bound", func(s *Scenario) { s.Tiers[0].Policy = named(t, "none", 0, fixed50) }, func(c Ceilings) bool { return c.SizeAware == 0 && c.Clairvoyant == 0 && c.NoQueue == 0 }},
	} {
		s := plain(2, exponential50, 400*ms, time.Second)
		c.change(&s)
		ceilings, err := s.Ceilings(1)
		if err != nil || !c.zero(ceilings) || len(ceilings.Missing) == 0 || !strings.Contains(ceilings.Missing[0], " missing: ") && !strings.Contains(ceilings.Missing[0], "nothing arrived") {
			t.Errorf("%s: %+v, %v", c.name, ceilings, err)
		}
	}
}

// Arrivals in a ramp from nothing, as dense as they may be: each is an instant.
func TestArrivalsOfEverySegment(t *testing.T) {
	a := Arrivals{Process: Constant, Rate: 8, Changes: []Change{{At: time.Second}, {At: time.Second, Rate: 8, Over: time.Second}}}
	for seed := range uint64(20) {
		s := newSource(a, rand.New(rand.NewPCG(seed, 1)), 3*time.Second)
		n, last := 0, time.Duration(0)
		for at, ok := s.next(); ok; at, ok = s.next() {
			if at < last || at >= 3*time.Second {
				t.Fatalf("seed %d: arrival at %v after %v", seed, at, last)
			}
			n, last = n+1, at
		}
		if n < 19 || n > 20 { // 8 + 4 + 8, less one at the very end
			t.Errorf("seed %d: %d arrivals", seed, n)
		}
	}
}

// What a bin says is about all instances of the first tier.
func TestSeriesOfAllInstances(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		want   int
	}{
		{fifo(20, 0), 60},
		{named(t, "none", 0, fixed50), Unbounded},
		{Policy{Name: "core", Core: &admission.Config{Limit: limit.Fixed(20), Objective: 400 * ms}}, 60},
	} {
		s := plain(0.5, fixed50, 0, time.Second).With(c.policy)
		s.Tiers[0].Instances = 3
		for _, b := range play(t, s, 1).Series {
			if b.Limit != c.want {
				t.Fatalf("%s: at %v the limit is %d, want %d", c.policy.Name, b.End, b.Limit, c.want)
			}
		}
	}
}

// What is out of range is said to be, and not to come before something.
func TestInstantsOutOfRange(t *testing.T) {
	const month = 720 * time.Hour
	for want, change := range map[string]func(*Scenario){
		`class 1: arrivals: change 1: at 721h0m0s is out of range: 0 to 720h0m0s`: func(s *Scenario) { s.Classes[0].Arrivals.Changes = []Change{{At: month + time.Hour}} },
		`class 1: arrivals: change 2: at 1s comes before the end of the one before it, 3s`: func(s *Scenario) {
			s.Classes[0].Arrivals.Changes = []Change{{At: time.Second, Over: 2 * time.Second}, {At: time.Second}}
		},
		`tier 1: speed: step 1: at -1s is out of range: 0 to 720h0m0s`: func(s *Scenario) { s.Tiers[0].Speed.Steps = []SpeedStep{{-time.Second, 1}} },
		`tier 1: speed: stall 2: at 1s comes before the end of the one before it, 2s`: func(s *Scenario) {
			s.Tiers[0].Speed.Stalls = []Stall{{time.Second, time.Second}, {time.Second, time.Second}}
		},
		`tier 1: restart 1: at 721h0m0s is out of range: 0 to 720h0m0s`: func(s *Scenario) { s.Tiers[0].Restarts = []Restart{{At: month + time.Hour}} },
		`tier 1: restarts are 100001: at most 100000`:                   func(s *Scenario) { s.Tiers[0].Restarts = make([]Restart, 100_001) },
	} {
		s := plain(1, fixed50, 0, time.Second)
		change(&s)
		if err := s.Validate(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Whatever the scenario is, its ceilings are numbers, or missing with a reason.
func TestCeilingsOfAnything(t *testing.T) {
	bounded := 0
	for seed := range uint64(300) {
		s := arbitrary(rand.New(rand.NewPCG(seed, 1)))
		c, err := s.Ceilings(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, v := range []float64{c.Offered, c.Capacity, c.NoQueue, c.SizeAware, c.Clairvoyant} {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				t.Errorf("seed %d: %+v", seed, c)
			}
		}
		if c.Clairvoyant > 0 {
			bounded++
		}
		if (c.NoQueue == 0 || c.SizeAware == 0 || c.Clairvoyant == 0) && len(c.Missing) == 0 && c.Offered > 0 {
			t.Errorf("seed %d: a ceiling is missing without a reason: %+v", seed, c)
		}
	}
	if bounded < 20 {
		t.Errorf("only %d of 300 scenarios have a clairvoyant bound", bounded)
	}
}

// What Validate accepts ends: not before the universe does, but before whoever waits
// for it goes home.
func TestSizeOfAScenario(t *testing.T) {
	for name, change := range map[string]func(*Scenario){
		"a rate of nanoseconds": func(s *Scenario) { s.Classes[0].Arrivals.Rate, s.Length = 1e9, time.Hour },
		"a hundred attempts": func(s *Scenario) {
			s.Classes[0].Arrivals.Rate, s.Length, s.Classes[0].Retry.Attempts = 1e6, time.Hour, 100
		},
		"bursts of a microsecond": func(s *Scenario) {
			s.Length, s.Classes[0].Arrivals.Bursts = maxTime, Bursts{Rate: 1, On: time.Microsecond, Off: time.Microsecond}
		},
		"waves of a millisecond": func(s *Scenario) {
			s.Length, s.Classes[0].Arrivals.Sine = maxTime, Sine{Amplitude: 1, Period: time.Millisecond}
		},
		"ten thousand instances for a month": func(s *Scenario) { s.Length, s.Tiers[0].Instances = maxTime, 10_000 },
		"fan-outs of fan-outs": func(s *Scenario) {
			for range 3 {
				s.Tiers[len(s.Tiers)-1].Next = &Fan{Tier: len(s.Tiers), N: 10_000}
				next := s.Tiers[0]
				next.Next = nil
				s.Tiers = append(s.Tiers, next)
			}
		},
		"attempts of attempts": func(s *Scenario) {
			for range 5 {
				s.Tiers[len(s.Tiers)-1].Next = &Fan{Tier: len(s.Tiers), Retry: Retry{Attempts: 100}}
				next := s.Tiers[0]
				next.Next = nil
				s.Tiers = append(s.Tiers, next)
			}
		},
	} {
		s := plain(1, exponential50, time.Second, 0)
		s.Warmup = 0
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "at most 1e+10 are played") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Sums of time stop at the horizon; they do not wrap.
func TestTimeDoesNotOverflow(t *testing.T) {
	s := plain(0, Dist{Kind: Fixed, Mean: maxTime}, time.Second, 0)
	s.Length, s.Warmup = 10*time.Second, 0
	s.Classes[0].Arrivals = Arrivals{Rate: 1000, Process: Constant}
	s.Classes[0].Patience = Stays
	p, err := Named("unbounded_fifo", 1, 0, s.Tiers[0].Service)
	if err != nil {
		t.Fatal(err)
	}
	r := play(t, s.With(p), 1)
	if r.Total.Requests != 10_000 || r.Total.InTime != 0 || r.Ended != horizon || r.Total.Work < 0 || r.Total.Work > horizon {
		t.Errorf("%d requests, %d in time, ended %v, work %v", r.Total.Requests, r.Total.InTime, r.Ended, r.Total.Work)
	}
}
