package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// Each knob of a scenario does something, and in the direction that it says.
func TestKnobs(t *testing.T) {
	// 10 slots of 10 ms, 1,000/s; a queue of 50.
	base := func() Scenario {
		return Scenario{
			Length: 8 * time.Second,
			Tiers: []Tier{{
				Policy:  Policy{Name: "core", Core: &admission.Config{Limit: limit.Fixed(10), Objective: 100 * ms, Service: 10 * ms}},
				Service: Dist{Kind: Exponential, Mean: 10 * ms},
			}},
			Classes: []Class{{Arrivals: Arrivals{Rate: 900}, Bytes: 1000, Deadlines: []Deadline{{100 * ms, 1}}}},
		}
	}
	over := func(s *Scenario) { s.Classes[0].Arrivals.Rate = 2000 }
	behind := func(s *Scenario) { s.Tiers[0].Policy = fifo(30, 50); s.Tiers[0].Slots = 10 }
	fan := func(s *Scenario) {
		s.Tiers[0].Next = &Fan{Tier: 1, N: 4}
		s.Tiers = append(s.Tiers, Tier{Policy: fifo(40, 100), Service: Dist{Kind: Exponential, Mean: 5 * ms}})
		s.Classes[0].Arrivals.Rate = 300
	}
	count := func(f func(*Result) uint64) func(*Result) float64 {
		return func(r *Result) float64 { return float64(f(r)) }
	}
	inTime := count(func(r *Result) uint64 { return r.Total.InTime })
	requests := count(func(r *Result) uint64 { return r.Total.Requests })
	attempts := count(func(r *Result) uint64 { return r.Total.Attempts })
	refused := count(func(r *Result) uint64 { return r.Total.Refused })
	failed := count(func(r *Result) uint64 { return r.Total.Failed })
	late := count(func(r *Result) uint64 { return r.Total.Late })
	kept := count(func(r *Result) uint64 { return r.Total.Kept })
	response := mean(latency)
	reason := func(why admission.Reason) func(*Result) float64 {
		return count(func(r *Result) uint64 { return r.Total.Reasons[why] })
	}
	for _, c := range []struct {
		name        string
		first, then func(*Scenario) // without and with the knob, after first
		measure     func(*Result) float64
		up          bool
	}{
		{"length", nil, func(s *Scenario) { s.Length *= 2 }, requests, true},
		{"warmup", nil, func(s *Scenario) { s.Warmup = 5 * time.Second }, requests, false},
		{"bins", nil, func(s *Scenario) { s.Bins = 7 }, func(r *Result) float64 { return float64(len(r.Series)) }, false},

		{"rate", nil, func(s *Scenario) { s.Classes[0].Arrivals.Rate = 1000 }, requests, true},
		{"constant arrivals", nil, func(s *Scenario) { s.Classes[0].Arrivals.Process = Constant }, mean(waited), false},
		{"a step", nil, func(s *Scenario) { s.Classes[0].Arrivals.Changes = []Change{{5 * time.Second, 2000, 0}} }, requests, true},
		{"a ramp, slower than a step", func(s *Scenario) { s.Classes[0].Arrivals.Changes = []Change{{2 * time.Second, 2000, 0}} }, func(s *Scenario) { s.Classes[0].Arrivals.Changes[0].Over = 6 * time.Second }, requests, false},
		{"a wave", nil, func(s *Scenario) { s.Classes[0].Arrivals.Sine = Sine{1, time.Second} }, mean(waited), true},
		{"bursts", nil, func(s *Scenario) {
			s.Classes[0].Arrivals.Bursts = Bursts{Rate: 3000, On: 200 * ms, Off: time.Second}
		}, mean(waited), true},

		{"instances", over, func(s *Scenario) { s.Tiers[0].Instances = 2 }, inTime, true},
		{"slots of the resource", behind, func(s *Scenario) { s.Tiers[0].Slots = 20 }, response, false},
		{"limit", over, func(s *Scenario) { s.Tiers[0].Policy.Core.Limit = limit.Fixed(20) }, inTime, true},
		{"longer service", nil, func(s *Scenario) { s.Tiers[0].Service.Mean = 20 * ms }, inTime, false},
		{"objective without a deadline", func(s *Scenario) { s.Classes[0].Deadlines = nil; s.Tiers[0].Objective = time.Second }, func(s *Scenario) { s.Tiers[0].Objective = 10 * ms }, late, true},
		{"half the speed", nil, func(s *Scenario) { s.Tiers[0].Speed.Steps = []SpeedStep{{0, 0.5}} }, inTime, false},
		{"a stall", nil, func(s *Scenario) { s.Tiers[0].Speed.Stalls = []Stall{{time.Second, time.Second}} }, inTime, false},
		{"pauses", nil, func(s *Scenario) { s.Tiers[0].Speed.Pauses = Pauses{Every: 100 * ms, For: 50 * ms} }, response, true},
		{"contention", nil, func(s *Scenario) { s.Tiers[0].Contention.Alpha = 0.1 }, response, true},
		{"coherence", nil, func(s *Scenario) { s.Tiers[0].Contention.Beta = 0.01 }, response, true},
		{"the knee of the queue", over, func(s *Scenario) { s.Tiers[0].Contention = Contention{Knee: 5, Slope: 0.1} }, inTime, false},
		{"a later knee", func(s *Scenario) { over(s); s.Tiers[0].Contention = Contention{Knee: 2, Slope: 0.1} }, func(s *Scenario) { s.Tiers[0].Contention.Knee = 40 }, inTime, true},

		{"fan-out", nil, fan, response, true},
		{"more sub-requests", fan, func(s *Scenario) { s.Tiers[0].Next.N = 8 }, response, true},
		{"half of the answers do", fan, func(s *Scenario) { s.Tiers[0].Next.Need = 2 }, response, false},
		{"partial results in time", fan, func(s *Scenario) { s.Tiers[0].Next.Wait = 4 * ms }, func(r *Result) float64 { return r.Total.Parts / float64(r.Total.InTime) }, false},
		{"faults", nil, func(s *Scenario) { s.Tiers[0].Faults = []Fault{{time.Second, time.Second, 0.5}} }, failed, true},
		{"a longer fault", func(s *Scenario) { s.Tiers[0].Faults = []Fault{{time.Second, time.Second, 0.5}} }, func(s *Scenario) { s.Tiers[0].Faults[0].For *= 2 }, failed, true},
		{"sub-requests are sent again", func(s *Scenario) { fan(s); s.Tiers[1].Faults = []Fault{{0, time.Hour, 0.2}} }, func(s *Scenario) { s.Tiers[0].Next.Retry.Attempts = 3 }, inTime, true},
		{"within a budget", func(s *Scenario) {
			fan(s)
			s.Tiers[1].Faults, s.Tiers[0].Next.Retry.Attempts = []Fault{{0, time.Hour, 0.2}}, 3
		}, func(s *Scenario) { s.Tiers[0].Next.Retry.Budget.Ratio = 0.05 }, inTime, false},
		{"a throttle of sub-requests", func(s *Scenario) { fan(s); s.Tiers[1].Policy = fifo(2, 0) }, func(s *Scenario) { s.Tiers[0].Next.Retry.Throttle.K = 1.1 }, func(r *Result) float64 { return float64(r.Tiers[1].Kept) }, true},
		{"a slow second tier", fan, func(s *Scenario) { s.Tiers[1].Service.Mean = 20 * ms }, response, true},

		{"a restart", nil, func(s *Scenario) { s.Tiers[0].Restarts = []Restart{{At: time.Second}} }, failed, true},
		{"down for a while", func(s *Scenario) { s.Tiers[0].Restarts = []Restart{{At: time.Second}} }, func(s *Scenario) { s.Tiers[0].Restarts[0].Down = time.Second }, reason(admission.Unavailable), true},
		{"a cold start", func(s *Scenario) { s.Tiers[0].Restarts = []Restart{{At: time.Second, Warm: 4 * time.Second}} }, func(s *Scenario) { s.Tiers[0].Restarts[0].Cold = 5 }, response, true},
		{"a longer warming", func(s *Scenario) { s.Tiers[0].Restarts = []Restart{{At: time.Second, Cold: 3, Warm: 500 * ms}} }, func(s *Scenario) { s.Tiers[0].Restarts[0].Warm = 5 * time.Second }, response, true},
		{"little memory", over, func(s *Scenario) { s.Tiers[0].Memory = 20_000 }, failed, true},
		{"how it comes back", func(s *Scenario) { over(s); s.Tiers[0].Memory = 20_000 }, func(s *Scenario) { s.Tiers[0].Killed.Down = 500 * ms }, reason(admission.Unavailable), true},

		{"its own work", nil, func(s *Scenario) { s.Classes[0].Service = Dist{Kind: Exponential, Mean: 5 * ms} }, response, false},
		{"sizes", nil, func(s *Scenario) { s.Classes[0].Sizes = []Size{{1, 1}, {4, 1}} }, response, true},
		{"cost", nil, func(s *Scenario) { s.Classes[0].Cost = 3 }, inTime, false},
		{"bytes", nil, func(s *Scenario) { s.Classes[0].Bytes = 2000 }, func(r *Result) float64 { return float64(r.Tiers[0].PeakBytes) }, true},
		{"a longer deadline", over, func(s *Scenario) { s.Classes[0].Deadlines = []Deadline{{time.Second, 1}} }, late, false},
		{"untold", func(s *Scenario) { s.Classes[0].Deadlines = []Deadline{{40 * ms, 1}}; over(s) }, func(s *Scenario) { s.Classes[0].Untold = true }, late, true},
		{"vanishes", func(s *Scenario) { s.Tiers[0].Policy = fifo(10, Unbounded); over(s) }, func(s *Scenario) { s.Classes[0].Patience = Vanishes }, inTime, false},
		{"stays", func(s *Scenario) {
			s.Tiers[0].Policy = fifo(10, 500)
			over(s)
			s.Classes[0].Patience = Vanishes
			s.Classes[0].Retry.Attempts = 2
		}, func(s *Scenario) { s.Classes[0].Patience = Stays }, attempts, false},
		{"attempts", over, func(s *Scenario) { s.Classes[0].Retry.Attempts = 3 }, attempts, true},
		{"backoff", func(s *Scenario) { over(s); s.Classes[0].Retry.Attempts = 3 }, func(s *Scenario) { s.Classes[0].Retry.Backoff = 500 * ms }, mean(inTimes), true},
		{"the most backoff", func(s *Scenario) { over(s); s.Classes[0].Retry = Retry{Attempts: 3, Backoff: 500 * ms} }, func(s *Scenario) { s.Classes[0].Retry.Max = 10 * ms }, mean(inTimes), false},
		{"no jitter", func(s *Scenario) { over(s); s.Classes[0].Retry = Retry{Attempts: 3, Backoff: 500 * ms} }, func(s *Scenario) { s.Classes[0].Retry.NoJitter = true }, mean(inTimes), true},
		{"a budget of retries", func(s *Scenario) { over(s); s.Classes[0].Retry.Attempts = 3 }, func(s *Scenario) { s.Classes[0].Retry.Budget.Ratio = 0.1 }, attempts, false},
		{"a larger reserve", func(s *Scenario) { over(s); s.Classes[0].Retry = Retry{Attempts: 3, Budget: Budget{Ratio: 0.01}} }, func(s *Scenario) { s.Classes[0].Retry.Budget.Reserve = 1000 }, attempts, true},
		{"a shorter window", func(s *Scenario) {
			over(s)
			s.Classes[0].Retry = Retry{Attempts: 3, Budget: Budget{Ratio: 0.001, Reserve: 100}}
		}, func(s *Scenario) { s.Classes[0].Retry.Budget.Window = time.Second }, attempts, true},
		{"a throttle", func(s *Scenario) { s.Classes[0].Arrivals.Rate = 4000 }, func(s *Scenario) { s.Classes[0].Retry.Throttle.K = 1.5 }, attempts, false},
		{"a wider throttle", func(s *Scenario) { s.Classes[0].Arrivals.Rate = 4000; s.Classes[0].Retry.Throttle.K = 1.1 }, func(s *Scenario) { s.Classes[0].Retry.Throttle.K = 3 }, attempts, true},
		{"what a throttle remembers", func(s *Scenario) {
			s.Classes[0].Arrivals = Arrivals{Rate: 500, Changes: []Change{{4 * time.Second, 4000, 0}}}
			s.Classes[0].Retry.Throttle.K = 2
		}, func(s *Scenario) { s.Classes[0].Retry.Throttle.Window = time.Second }, kept, true},
		{"obeying", func(s *Scenario) { over(s); s.Classes[0].Retry = Retry{Attempts: 3, Backoff: ms} }, func(s *Scenario) { s.Classes[0].Retry.Obey = true }, attempts, false},
		{"within", func(s *Scenario) { over(s); s.Classes[0].Retry = Retry{Attempts: 5, Backoff: 100 * ms} }, func(s *Scenario) { s.Classes[0].Retry.Within = 100 * ms }, attempts, false},
		{"priority", func(s *Scenario) {
			s.Classes[0].Arrivals.Rate = 700
			s.Classes = append(s.Classes, s.Classes[0])
			s.Classes[1].Name = "other"
		}, func(s *Scenario) { s.Classes[0].Priority = admission.Sheddable }, func(r *Result) float64 { return float64(r.Classes[0].InTime) }, false},
		{"tier", fan, func(s *Scenario) { s.Classes[0].Tier = 1 }, response, false},
		{"depth", func(s *Scenario) { s.Tiers[0].Policy = fifo(10, 0) }, func(s *Scenario) { s.Tiers[0].Policy = fifo(10, 50) }, refused, false},
	} {
		s := base()
		if c.first != nil {
			c.first(&s)
		}
		before := c.measure(play(t, s, 11))
		// A copy of what is a pointer, then the knob.
		s = base()
		if c.first != nil {
			c.first(&s)
		}
		c.then(&s)
		after := c.measure(play(t, s, 11))
		if after == before || (after > before) != c.up {
			t.Errorf("%s: from %v to %v, want more: %v", c.name, before, after, c.up)
		}
	}
}

// A client that tries again does so as often as it says, with the backoff that it
// says: nobody listens, so that each attempt is refused at once.
func TestRetrySchedule(t *testing.T) {
	for _, c := range []struct {
		retry    Retry
		attempts uint64
		ended    time.Duration // of the last request
	}{
		{Retry{}, 1, 0},
		{Retry{Attempts: 1, Backoff: time.Second}, 1, 0},
		{Retry{Attempts: 4, Backoff: 10 * ms, NoJitter: true}, 4, 70 * ms},                                                          // 10 + 20 + 40
		{Retry{Attempts: 4, Backoff: 10 * ms, NoJitter: true, Max: 15 * ms}, 4, 40 * ms},                                            // 10 + 15 + 15
		{Retry{Attempts: 4, Backoff: 10 * ms, NoJitter: true, Within: 30 * ms}, 2, 10 * ms},                                         // not at 30
		{Retry{Attempts: 4, Backoff: 10 * ms, NoJitter: true, Within: 31 * ms}, 3, 30 * ms},                                         // not at 70
		{Retry{Attempts: 3, NoJitter: true}, 3, 0},                                                                                  // at once
		{Retry{Attempts: 20, Backoff: 10 * ms, NoJitter: true, Budget: Budget{Ratio: 1, Window: 10 * time.Minute}}, 11, 10230 * ms}, // ten in reserve: 10 x (2^10 - 1)
		{Retry{Attempts: 4, Backoff: 10 * ms, NoJitter: true, Obey: true}, 4, 70 * ms},                                              // nothing is said
	} {
		s := Scenario{
			Length:  time.Minute,
			Tiers:   []Tier{{Policy: fifo(1, 0), Service: fixed50, Restarts: []Restart{{At: 0, Down: time.Hour}}}},
			Classes: []Class{{Retry: c.retry}},
		}
		sent := false
		s.Trace = func(j *Job) bool {
			if sent {
				return false
			}
			sent = true
			*j = Job{At: ms}
			return true
		}
		r := play(t, s, 1)
		if r.Total.Attempts != c.attempts || r.Total.Refused != 1 || r.Total.Told.Count != c.attempts {
			t.Errorf("%+v: %d attempts, %d refused, %d told; want %d attempts of one request", c.retry, r.Total.Attempts, r.Total.Refused, r.Total.Told.Count, c.attempts)
		}
		if got := r.Ended - ms; got != c.ended {
			t.Errorf("%+v: ended after %v, want %v", c.retry, got, c.ended)
		}
	}
}

// A fan-out is answered when what it needs has come, or fails when it cannot; with
// a wait, by what has come then.
func TestFanOut(t *testing.T) {
	at := func(slots, n, need int, wait time.Duration) *Result {
		s := Scenario{
			Length: time.Second,
			Tiers: []Tier{
				{Policy: fifo(1, 0), Service: Dist{Kind: Fixed, Mean: 10 * ms}, Next: &Fan{Tier: 1, N: n, Need: need, Wait: wait}},
				{Policy: fifo(slots, 0), Service: Dist{Kind: Fixed, Mean: 20 * ms}},
			},
			Classes: []Class{{}},
		}
		sent := false
		s.Trace = func(j *Job) bool {
			*j, sent = Job{}, !sent
			return sent
		}
		return play(t, s, 1)
	}
	for _, c := range []struct {
		name            string
		slots, n, need  int
		wait            time.Duration
		inTime, failed  uint64
		parts           float64
		latency         time.Duration
		served, refused uint64
	}{
		{"all of four", 4, 4, 0, 0, 1, 0, 1, 30 * ms, 4, 0},
		{"one of four is refused", 3, 4, 0, 0, 0, 1, 0, 10 * ms, 3, 1},
		{"three of four do", 3, 4, 3, 0, 1, 0, 0.75, 30 * ms, 3, 1},
		{"what has come by 50 ms", 3, 4, 0, 50 * ms, 1, 0, 0.75, 30 * ms, 3, 1}, // all have answered or refused
		{"nothing has come by 5 ms", 4, 4, 0, 5 * ms, 0, 1, 0, 15 * ms, 4, 0},
		{"nobody takes any", 1, 3, 2, 0, 0, 1, 0, 10 * ms, 1, 2},
	} {
		r := at(c.slots, c.n, c.need, c.wait)
		second := r.Tiers[1]
		if r.Total.InTime != c.inTime || r.Total.Failed != c.failed || r.Total.Parts != c.parts || second.Served != c.served || second.Refused != c.refused {
			t.Errorf("%s: %d in time, %d failed, parts %v, %d served and %d refused below; want %+v", c.name, r.Total.InTime, r.Total.Failed, r.Total.Parts, second.Served, second.Refused, c)
		}
		if got := time.Duration(r.Total.Latency.Sum * 1e9).Round(time.Microsecond); got != c.latency {
			t.Errorf("%s: after %v, want %v", c.name, got, c.latency)
		}
	}
}
