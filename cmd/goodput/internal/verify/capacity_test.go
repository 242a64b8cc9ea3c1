package verify

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// A service is one in virtual time: slots, a queue in the order of arrival, and what it does
// with more than fits.
type service struct {
	n      int
	took   func() time.Duration
	places int  // in the queue; more are refused. -1: no bound
	deaf   bool // works on when its caller has left

	mu      sync.Mutex
	slots   chan struct{} // of the bubble in which the first request comes
	waiting int           // and running
	seen    int
}

// slotted returns one of n slots that take so long each.
func slotted(n, places int, took time.Duration) *service {
	return &service{n: n, places: places, took: func() time.Duration { return took }}
}

// random makes service times exponential.
func (s *service) random(seed uint64) *service {
	rng, mean := rand.New(rand.NewPCG(seed, 1)), float64(s.took())
	s.took = func() time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		return time.Duration(rng.ExpFloat64() * mean)
	}
	return s
}

var refusal = load.Answer{Status: 503, Reason: "queue_full", Marked: true, RetryAfter: "1"}

func (s *service) send(ctx context.Context) load.Answer {
	s.mu.Lock()
	if s.seen++; s.slots == nil {
		s.slots = make(chan struct{}, s.n)
	}
	if s.places >= 0 && s.waiting >= s.places+s.n {
		s.mu.Unlock()
		return refusal
	}
	s.waiting++
	s.mu.Unlock()
	done := make(chan load.Answer, 1)
	work := func() {
		leaves := ctx.Done()
		if s.deaf {
			leaves = nil
		}
		a := load.Answer{Err: context.Canceled}
		select {
		case s.slots <- struct{}{}:
			time.Sleep(s.took())
			<-s.slots
			a = load.Answer{Status: 200, Content: load.Content{Type: "text/plain", Size: 2, Sum: 7}}
		case <-leaves:
		}
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
		done <- a
	}
	go work()
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
		return load.Answer{Err: ctx.Err()}
	}
}

// settings are the defaults of the command, with two caps that no test reaches by chance.
func settings() Settings {
	return Settings{
		Method: "GET", Deadline: 2 * time.Second, Objective: 2 * time.Second, Loads: []float64{0.5, 1, 1.5, 3, 10},
		Length: 10 * time.Second, Calm: DefaultCalm, Arrivals: "poisson", Attempts: 1, Seed: 1,
		MaxRate: 20_000, MaxRequests: 2_000_000,
	}
}

// measured runs cfg against send in virtual time, without a network.
func measured(t *testing.T, cfg Config, send load.Send) (r *Report) {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg.Target = &Target{URL: &url.URL{Scheme: "http", Host: "service"}, Local: true}
	synctest.Test(t, func(t *testing.T) {
		one := &run{cfg: cfg, send: send, report: newReport(cfg)}
		one.measure(t.Context())
		r = one.report
	})
	return r
}

// searched is the report of a search alone: no step fits.
func searched(t *testing.T, send load.Send, change func(*Settings)) *Report {
	t.Helper()
	s := settings()
	s.Loads, s.Length = []float64{0.1}, time.Second // the least that can follow
	if change != nil {
		change(&s)
	}
	return measured(t, Config{Settings: s}, send)
}

// The capacity that is found is that of the slots, whatever the service does above it. The
// tolerance: four standard errors, as the report has it, of the answers that were counted, and
// the slots themselves, since a window of fixed services may hold one more of each of them or
// not: slots / window.
func TestCapacity(t *testing.T) {
	for name, tc := range map[string]struct {
		service  *service
		want     float64
		deadline time.Duration
	}{
		"1 slot":                                 {slotted(1, 4, 50*time.Millisecond), 20, 0},
		"1 slot, 400 ms":                         {slotted(1, -1, 50*time.Millisecond), 20, 400 * time.Millisecond},
		"1 slot without a bound":                 {slotted(1, -1, 50*time.Millisecond), 20, 0},
		"10 slots":                               {slotted(10, 20, 20*time.Millisecond), 500, 0},
		"10 slots without a queue":               {slotted(10, 0, 20*time.Millisecond), 500, 0},
		"10 slots without a bound":               {slotted(10, -1, 20*time.Millisecond), 500, 0},
		"3 slow slots that notice nobody, 1.5 s": {&service{n: 3, places: -1, deaf: true, took: func() time.Duration { return 100 * time.Millisecond }}, 30, 1500 * time.Millisecond},
		"10 slots, 400 ms":                       {slotted(10, -1, 20*time.Millisecond), 500, 400 * time.Millisecond},
		"10 slots that notice nobody":            {&service{n: 10, places: -1, deaf: true, took: func() time.Duration { return 20 * time.Millisecond }}, 500, 0},
		"60 slots":                               {slotted(60, 100, 50*time.Millisecond), 1200, 0},
		"60 slots without a bound":               {slotted(60, -1, 50*time.Millisecond), 1200, 0},
		"8 random slots, 1":                      {slotted(8, 16, 40*time.Millisecond).random(1), 200, 0},
		"8 random slots, 2":                      {slotted(8, 16, 40*time.Millisecond).random(2), 200, 0},
		"8 random slots, 3":                      {slotted(8, -1, 40*time.Millisecond).random(3), 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := searched(t, tc.service.send, func(s *Settings) {
				if tc.deadline > 0 {
					s.Deadline, s.Objective = tc.deadline, tc.deadline
				}
			})
			c := r.Capacity
			tolerance := 4*c.Error + float64(tc.service.n)/3 // three windows of a second
			t.Logf("%.1f +- %.1f with %d loads, %d requests, in %v: %s", c.PerSecond, c.Error, len(c.Probes), tc.service.seen, r.Took, c.Why)
			if r.Void != "" || math.Abs(c.PerSecond-tc.want) > tolerance || c.Given || c.Error <= 0 {
				t.Errorf("capacity %.1f, want %v +- %.1f; void %q, notes %q", c.PerSecond, tc.want, tolerance, r.Void, r.Notes)
			}
		})
	}
}

// A service that is quick and allows a rate: the first load, from its latency, is far too much.
func TestCapacityIsSearchedDownwards(t *testing.T) {
	var mu sync.Mutex
	var next time.Time
	send := func(context.Context) load.Answer {
		time.Sleep(time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Before(next) {
			return load.Answer{Status: 429, Reason: "status_429"}
		}
		next = now.Add(25 * time.Millisecond) // 40/s
		return load.Answer{Status: 200}
	}
	r := searched(t, send, nil)
	// Evenly spaced at a rate of 44/s and more, every second or third request meets an open
	// door: from 40/s down to two thirds of it, however the gaps fall together.
	if c := r.Capacity; r.Void != "" || c.PerSecond < 20 || c.PerSecond > 41 {
		t.Errorf("%.1f/s; %s; void %q", c.PerSecond, c.Why, r.Void)
	}
}

// One that refuses everybody as soon as more come than it can do, and for 5 s after it, has a
// capacity below that, if one waits until it is well again.
func TestCapacityOfOneThatRefusesAllAboveIt(t *testing.T) {
	in := slotted(10, -1, 20*time.Millisecond)
	var closed time.Time
	send := func(ctx context.Context) load.Answer {
		in.mu.Lock()
		if in.waiting > 30 {
			closed = time.Now().Add(5 * time.Second)
		}
		shut := time.Now().Before(closed)
		in.mu.Unlock()
		if shut {
			return refusal
		}
		return in.send(ctx)
	}
	r := searched(t, send, nil)
	// It is carried up to 500/s. What is found is at least the last load that was, on the way up
	// by tenths, and a little of that may be lost to the standard error: 500 / 1.1 - 4 x 10.
	if c := r.Capacity; r.Void != "" || c.PerSecond < 415 || c.PerSecond > 510 {
		t.Errorf("%.1f/s; %s; void %q", c.PerSecond, c.Why, r.Void)
	}
}

func TestNoCapacity(t *testing.T) {
	sleepy := func(context.Context) load.Answer { time.Sleep(time.Millisecond); return load.Answer{Status: 200} }
	ends := errors.New("connection refused")
	calls := 0
	for name, tc := range map[string]struct {
		send   load.Send
		change func(*Settings)
		want   string // in Void; "": capacity 0
		why    string
	}{
		"no bound":           {sleepy, func(s *Settings) { s.MaxRate = 3000 }, "the capacity was not reached: of 3,000/s", ""},
		"few are allowed":    {sleepy, func(s *Settings) { s.MaxRequests = 1000 }, "--max-requests 1,000", ""},
		"ten times too much": {sleepy, func(s *Settings) { s.Loads = []float64{0.5, 10} }, "10x of that is more than --max-rate 20,000/s", ""},
		"refuses all":        {func(context.Context) load.Answer { return refusal }, nil, "", "each of 50 requests"},
		"5xx":                {func(context.Context) load.Answer { return load.Answer{Status: 500} }, nil, "fails while it is idle: 50 of 50 requests, one after another, had the answer 500", ""},
		"gone":               {func(context.Context) load.Answer { return load.Answer{Err: ends} }, nil, "had no answer: connection refused", ""},
		"not expected":       {sleepy, func(s *Settings) { s.Expect = []int{204, 404} }, "answers 200, which is none of --expect 204,404", ""},
		"serves one at a time": {func(ctx context.Context) load.Answer {
			if calls++; calls > idleRequests {
				return refusal
			}
			return sleepy(ctx)
		}, nil, "", "of every load down to"},
	} {
		t.Run(name, func(t *testing.T) {
			r := searched(t, tc.send, tc.change)
			if (tc.want == "") != (r.Void == "") || !strings.Contains(r.Void, tc.want) {
				t.Errorf("void %q, want %q", r.Void, tc.want)
			}
			if c := r.Capacity; c.PerSecond != 0 || !strings.Contains(c.Why, tc.why) || tc.want == "" && len(c.Probes) == 0 {
				t.Errorf("capacity %v with %d loads, %q", c.PerSecond, len(c.Probes), c.Why)
			}
		})
	}
}

// After a load that was too much the service is left alone until it is calm, however long its
// queue is or it refuses, but not for ever.
func TestSettle(t *testing.T) {
	for name, tc := range map[string]struct {
		queue   int           // of 20 ms each, in one slot
		refuses time.Duration // from the beginning on
		lo, hi  time.Duration
		notes   int
	}{
		"calm":                     {0, 0, 120 * time.Millisecond, 120 * time.Millisecond, 0}, // three requests and the pauses after them
		"a queue":                  {100, 0, 2 * time.Second, 2*time.Second + 200*time.Millisecond, 0},
		"a queue that is too long": {1000, 0, calmWithin, calmWithin, 1},
		"refuses for 3 s":          {0, 3 * time.Second, 3 * time.Second, 3*time.Second + 200*time.Millisecond, 0},
		"refuses for ever":         {0, time.Hour, calmWithin, calmWithin, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := slotted(1, -1, 20*time.Millisecond)
			s.deaf = true
			began := time.Now()
			r := &run{cfg: Config{Settings: settings()}, report: &Report{Idle: Idle{P50: 20 * time.Millisecond, Max: 20 * time.Millisecond}}}
			r.send = func(ctx context.Context) load.Answer {
				if time.Since(began) < tc.refuses {
					return refusal
				}
				return s.send(ctx)
			}
			for range tc.queue {
				go s.send(t.Context())
			}
			synctest.Wait()
			r.settle(t.Context(), 100)
			if took := time.Since(began); took < tc.lo || took > tc.hi || len(r.report.Notes) != tc.notes {
				t.Errorf("%s: %v, want %v to %v; notes %q", name, took, tc.lo, tc.hi, r.report.Notes)
			}
			time.Sleep(time.Minute) // the service ends what it has
		})
	}
}
