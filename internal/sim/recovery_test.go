package sim

import (
	"testing"
	"time"
)

// The clients of these tests try three times. The one that helps has what the others
// lack: a deadline for all of its attempts, a budget, a throttle, and it waits for
// Retry-After, all with the defaults of package retry.
var (
	naive   = Retry{Attempts: 3, Backoff: 100 * ms, Max: 100 * ms, NoJitter: true}
	helpful = Retry{Attempts: 3, Backoff: 50 * ms, Max: 10 * time.Second, Budget: Budget{Ratio: 0.1}, Throttle: Throttle{K: 2, Window: 10 * time.Second}, Obey: true}
)

// stalled is a load of 0.9 on 60 slots that stand still from 10 s to 15 s.
func stalled(deadline time.Duration, client Retry) Scenario {
	s := plain(0.9, exponential50, deadline, 0)
	s.Length, s.Warmup, s.Bins = 45*time.Second, 0, 450
	s.Tiers[0].Speed.Stalls = []Stall{{10 * time.Second, 5 * time.Second}}
	if s.Classes[0].Retry = client; client.Obey {
		s.Classes[0].Retry.Within = deadline
	}
	return s
}

// recovery returns how long after at the goodput is back for good: from where on each
// second has answers in time for 0.95 of its arrivals, less what the two may differ by
// because requests are under way. Those in the system are 54 +- 7 (M/M/60 at 0.9 has
// few that wait), so the difference of its two ends has a standard deviation of 11, 1 %
// of 1,080: four of them are 0.04.
func recovery(r *Result, at time.Duration) (after time.Duration, back bool) {
	bin := r.Series[0].End
	n := int(time.Second / bin)
	for i := len(r.Series) - n; i >= int(at/bin); i-- {
		var inTime, arrivals uint64
		for _, b := range r.Series[i : i+n] {
			inTime += b.InTime
			arrivals += b.Arrivals
		}
		if float64(inTime) < (0.95-0.04)*float64(arrivals) {
			return time.Duration(i+1)*bin - at, i < len(r.Series)-n
		}
	}
	return 0, true
}

// amplified returns the attempts per request, of all of the run, and of the window of
// that length which has most.
func amplified(r *Result, window time.Duration) (all, worst float64) {
	n := int(window / r.Series[0].End)
	for i := 0; i+n <= len(r.Series); i++ {
		var attempts, arrivals uint64
		for _, b := range r.Series[i : i+n] {
			attempts += b.Attempts
			arrivals += b.Arrivals
		}
		worst = max(worst, float64(attempts)/float64(arrivals))
	}
	return float64(r.Total.Attempts) / float64(r.Total.Requests), worst
}

// After a stall the overload goes with its cause, whoever the clients are, if the server
// serves nobody who has gone: a naive client too. In an unbounded queue it feeds itself
// for ever. What the client that helps saves is the calls: its budget bounds the retries
// of 10 s at a tenth of the first attempts of the 10 s before, which differ from those
// of the window by chance: 10,800 +- 1 %, four times of both, 0.006.
func TestRecovery(t *testing.T) {
	unbounded := named(t, "unbounded_fifo", 0, exponential50)
	ours := plain(0.9, exponential50, 0, 0).Tiers[0].Policy
	for _, c := range []struct {
		name   string
		client Retry
		server Policy
		back   bool // within a second; or never
	}{
		{"who helps, our server", helpful, ours, true},
		{"a budget alone, our server", Retry{Attempts: 3, Backoff: 100 * ms, Max: 100 * ms, NoJitter: true, Budget: Budget{Ratio: 0.1}}, ours, true},
		{"naive, our server", naive, ours, true},
		{"naive, unbounded", naive, unbounded, false},
	} {
		for _, deadline := range []time.Duration{2 * time.Second, 400 * ms} {
			for seed := range uint64(3) {
				r := play(t, stalled(deadline, c.client).With(c.server), seed)
				after, back := recovery(r, 15*time.Second)
				all, worst := amplified(r, 10*time.Second)
				t.Logf("%s, %v, seed %d: back %v after %v; %.4f attempts per request, %.4f in the worst 10 s; %d kept, %d refused, %d late", c.name, deadline, seed, back, after, all, worst, r.Total.Kept, r.Total.Refused, r.Total.Late)
				if back != c.back || back && after > time.Second {
					t.Errorf("%s, %v, seed %d: back %v after %v, want %v within 1 s", c.name, deadline, seed, back, after, c.back)
				}
				switch budget := c.client.Budget.Ratio > 0; {
				case budget && (all > 1.1 || worst > 1.106):
					t.Errorf("%s, %v, seed %d: %.4f attempts per request, %.4f in the worst 10 s; want 1.1 at most", c.name, deadline, seed, all, worst)
				case !budget && worst < 2:
					t.Errorf("%s, %v, seed %d: %.4f attempts per request in the worst 10 s: nobody tries again", c.name, deadline, seed, worst)
				}
			}
		}
	}
}

// C044: a pause of one second at 0.7 of the capacity, with clients that try again. The
// retries stay under the budget, and a second later it is as if nothing had been; the
// 0.35 % are 9 of the 840 +- 29 requests of a second, four times, over 10 s.
func TestPauseOfASecond_C044(t *testing.T) {
	for seed := range uint64(3) {
		s := stalled(2*time.Second, helpful)
		s.Classes[0].Arrivals.Rate = 0.7 * capacity
		s.Tiers[0].Speed.Stalls[0].For = time.Second
		r := play(t, s, seed)
		after, back := recovery(r, 11*time.Second)
		all, worst := amplified(r, 10*time.Second)
		t.Logf("seed %d: back %v after %v; %.4f attempts per request, %.4f in the worst 10 s; %d of %d not in time", seed, back, after, all, worst, r.Total.Requests-r.Total.InTime, r.Total.Requests)
		if !back || after > time.Second || worst > 1.107 {
			t.Errorf("seed %d: back %v after %v, %.4f attempts per request in the worst 10 s", seed, back, after, worst)
		}
	}
}

// What a throttle costs after a stall of 5 s, in which it learns that the server refuses.
// Half of a window of accepts is what K = 2 forgives, so that one of 10 s is at its edge,
// and a longer one keeps nothing. A shorter one keeps calls of a server that would take
// them, until 1.65 times two buckets after the stall at most, as package attempts derives;
// a second is what recovery looks at, and a tenth what a bucket is.
func TestThrottleAfterAStall(t *testing.T) {
	for _, window := range []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 2 * time.Minute} {
		for seed := range uint64(3) {
			client := helpful
			client.Throttle.Window = window
			r := play(t, stalled(2*time.Second, client), seed)
			after, back := recovery(r, 15*time.Second)
			t.Logf("window %v, seed %d: back %v after %v; %d of %d kept at home", window, seed, back, after, r.Total.Kept, r.Total.Requests)
			most := time.Duration(1.65*0.2*1.1*float64(window)) + time.Second
			if window > 10*time.Second {
				most = time.Second
			}
			if kept := r.Total.Kept > 0; !back || after > most || kept != (window <= 10*time.Second) {
				t.Errorf("window %v, seed %d: back %v after %v, %d kept; want it within %v", window, seed, back, after, r.Total.Kept, most)
			}
		}
	}
}

// A throttle sends K calls for each that the server takes, whatever is offered: at ten
// times the capacity with K = 2, 2 x 1,200 of 12,000/s. The rest is told no at home. The
// window of 10 s has 12,000 accepts, +- 0.9 %; the chance is that of a tenth of a window
// ago. Without it the server sees all that is offered, and serves no more.
func TestThrottleAtHome(t *testing.T) {
	for seed := range uint64(3) {
		s := plain(10, exponential50, 2*time.Second, 20*time.Second)
		s.Warmup, s.Length = 20*time.Second, 40*time.Second
		without := play(t, s, seed)
		s.Classes[0].Retry.Throttle = Throttle{K: 2, Window: 10 * time.Second}
		r := play(t, s, seed)
		sent := float64(r.Total.Attempts) / 20
		t.Logf("seed %d: %.0f of 12,000/s are sent, %d kept at home; goodput ratio %.4f, without %.4f", seed, sent, r.Total.Kept, r.Ratio(), without.Ratio())
		if sent < 2*capacity*0.95 || sent > 2*capacity*1.05 || r.Total.Kept+r.Total.Attempts != r.Total.Requests {
			t.Errorf("seed %d: %.0f/s are sent, want 2,400; %d kept and %d sent of %d", seed, sent, r.Total.Kept, r.Total.Attempts, r.Total.Requests)
		}
		// Both 0.99 or more; each has 24,000 services, 0.65 %.
		if r.Ratio() < 0.99-0.026 || without.Ratio() < 0.99-0.026 || without.Total.Kept != 0 {
			t.Errorf("seed %d: goodput ratio %.4f, without %.4f", seed, r.Ratio(), without.Ratio())
		}
	}
}
