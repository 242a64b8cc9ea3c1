package admission

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// A steady is a stream of ends, without a core: at a rate, in windows of 50 ms, or longer ones where
// less than one request ends in that, before slots that are enough.
type steady struct {
	rng     *rand.Rand
	rate    float64 // requests per second
	service func(*rand.Rand) float64
	slower  float64 // the factor
	slots   float64
	size    int
	failed  float64 // this part of them
	gaveUp  float64 // seconds after which it fails; 0: when it would have ended
	retries float64 // offered, for each that ends
	slow    slowed
	batch   Batch
}

// run lets time pass and returns how often it has become slowed, and when first.
func (r *steady) run(d time.Duration) (alarms int, first time.Duration) {
	first = Never
	window := max(0.05, 1/r.rate)
	for at := 0.0; at < d.Seconds(); at += window {
		n := 0
		if mean := window * r.rate; mean > 50 { // normal
			n = max(int(mean+math.Sqrt(mean)*r.rng.NormFloat64()), 0)
		} else {
			for t := r.rng.ExpFloat64(); t < mean; t += r.rng.ExpFloat64() {
				n++
			}
		}
		r.batch.Reset()
		of := max(1, n/500) // as a driver samples
		for range n / of {
			h := seconds(0.05 * r.service(r.rng) * r.slower)
			s := Sample{Service: h, Hold: h, Cost: 1, Of: of, Size: r.size}
			if r.rng.Float64() < r.failed {
				if s.Service = 0; r.gaveUp > 0 {
					s.Hold = seconds(r.gaveUp)
				}
			}
			r.batch.AddSample(s)
		}
		was := r.slow.is
		r.slow.add(&r.batch, window, r.rate*(1+r.retries), r.slots)
		if r.slow.block.ended.n >= blockEnds && r.slow.block.seconds >= blockTime.Seconds() {
			r.slow.close(true)
		}
		if r.slow.is && !was {
			alarms++
			first = min(first, seconds(at))
		}
	}
	return alarms, first
}

func newSteady(seed uint64, rate float64, service func(*rand.Rand) float64) *steady {
	return &steady{rng: rand.New(rand.NewPCG(seed, 0)), rate: rate, service: service, slower: 1, slots: 60}
}

var cv2 = lognormal(2)

// A service time with a CV of 2 that does not change is not called slow: see enough for what
// a month of it shows, with -slowed.days.
func TestSlowedFalseAlarms(t *testing.T) {
	const seed = 35
	day := time.Duration(*slowedDays * float64(24*time.Hour))
	for _, c := range []struct {
		rate float64
		days float64 // 10 million requests: 4 s
	}{{1, 100}, {10, 10}, {100, 1}, {1000, 0.1}} {
		r := newSteady(seed, c.rate, cv2)
		d := time.Duration(c.days * float64(day))
		alarms, _ := r.run(d)
		t.Logf("seed %d: %d alarms in %v of %v/s, a block mean spreads by %.2f", seed, alarms, d, c.rate, r.slow.base.spread())
		if alarms > 0 && *slowedDays < 1 {
			t.Errorf("seed %d: %d alarms in %v of %v/s", seed, alarms, d, c.rate)
		}
	}
}

var slowedDays = flag.Float64("slowed.days", 0.05, "how long TestSlowedFalseAlarms looks, as a part of 100 days at 1/s")

// How soon a service is called slow that has become so, and how soon it is over: at a request
// a second with a CV of 2 a threefold one within two minutes, from 100 a second on in 3 blocks, 3 s. The
// bounds are twice what five seeds took at the most.
func TestSlowedTells(t *testing.T) {
	for _, c := range []struct {
		shape  shape
		rate   float64
		slower float64
		within time.Duration
	}{
		{fixed, 1, 3, 120 * time.Second},
		{fixed, 100_000, 2, 4 * time.Second},
		{exponential, 1, 10, 120 * time.Second},
		{exponential, 10, 3, 30 * time.Second},
		{exponential, 1000, 1.7, 20 * time.Second},
		{shape{"lognormal CV 2", cv2}, 10, 10, 20 * time.Second},
		{shape{"lognormal CV 2", cv2}, 100, 3, 12 * time.Second},
		{shape{"lognormal CV 2", cv2}, 1000, 2, 12 * time.Second},
	} {
		for _, seed := range []uint64{1, 2} {
			r := newSteady(seed, c.rate, c.shape.draw)
			if alarms, at := r.run(max(150*time.Second, seconds(600/c.rate))); alarms > 0 {
				t.Errorf("seed %d, %s at %v/s: slow after %v, before anything was", seed, c.shape.name, c.rate, at)
			}
			var s Stats
			r.slow.tell(&s, false)
			if off := s.Baseline.Seconds()/0.05 - 1; math.Abs(off) > 5*2/math.Sqrt(150*c.rate) { // 5 standard errors at a CV of 2
				t.Errorf("seed %d, %s at %v/s: the baseline is %v", seed, c.shape.name, c.rate, s.Baseline)
			}
			r.slower = c.slower
			if _, at := r.run(c.within); at == Never {
				t.Errorf("seed %d, %s at %v/s: not slow after %v of %v times as long: %+v", seed, c.shape.name, c.rate, c.within, c.slower, r.slow)
			}
			if r.slow.tell(&s, false); s.Slowed && s.SlowedBy < slowedUntil {
				t.Errorf("seed %d, %s at %v/s: slowed by %.2f", seed, c.shape.name, c.rate, s.SlowedBy)
			}
			r.slower = 1
			if r.run(3 * c.within); r.slow.is {
				t.Errorf("seed %d, %s at %v/s: still slow %v after it was over: %+v", seed, c.shape.name, c.rate, 3*c.within, r.slow)
			}
		}
	}
}

// What makes units be held longer and is no slow dependency.
func TestSlowedIsNot(t *testing.T) {
	for name, change := range map[string]func(*steady){
		"nothing":                  func(*steady) {},
		"a third more":             func(r *steady) { r.slower = 1.35 },
		"three times as much load": func(r *steady) { r.rate, r.slower = 3*r.rate, 2.5 },
		"a higher limit":           func(r *steady) { r.slots, r.slower = 3*r.slots, 3 },
		"a queue inside":           func(r *steady) { r.rate, r.slower = 1.5*r.rate, 7 }, // the resource does less at once than the limit
		"larger requests":          func(r *steady) { r.size, r.slower = 4*r.size, 4 },
		"failures at once":         func(r *steady) { r.failed, r.gaveUp = 0.9, 0.001 },
		"failures for a while": func(r *steady) {
			r.failed, r.gaveUp = 1, 0.001
			r.run(20 * time.Minute)
			r.failed = 0
		},
		"shorter": func(r *steady) { r.slower = 0.3 },
		"a standstill of a second": func(r *steady) {
			r.slower = 30
			r.run(time.Second)
			r.slower = 1
		},
	} {
		for _, rate := range []float64{2, 200} {
			const seed = 36
			r := newSteady(seed, rate, exponential.draw)
			r.size = 10
			r.run(10 * time.Minute)
			change(r)
			if r.slow.is {
				t.Errorf("seed %d, %s at %v/s: slow at once", seed, name, rate)
			}
			if alarms, at := r.run(5 * time.Minute); alarms > 0 {
				t.Errorf("seed %d, %s at %v/s: slow after %v: %+v", seed, name, rate, at, r.slow)
			}
		}
	}
}

// What is slow although something else has changed as well.
func TestSlowedAllTheSame(t *testing.T) {
	for name, change := range map[string]func(*steady){
		"hangs until a timeout": func(r *steady) { r.failed, r.gaveUp = 1, 1 },
		"or fails at once":      func(r *steady) { r.failed, r.gaveUp, r.slower = 0.7, 0.001, 3 },
		"after failures for a while": func(r *steady) {
			r.failed, r.gaveUp = 1, 0.001
			r.run(20 * time.Minute)
			r.failed, r.slower = 0, 1.8
		},
		"and clients retry":              func(r *steady) { r.rate, r.slower, r.retries = r.rate/3, 3, 8 },
		"and less load":                  func(r *steady) { r.rate, r.slower = r.rate/2, 3 },
		"and the limit made up for some": func(r *steady) { r.slots, r.slower = 1.5*r.slots, 6 },
		"and larger requests":            func(r *steady) { r.size, r.slower = 2*r.size, 6 },
	} {
		const seed = 37
		r := newSteady(seed, 200, exponential.draw)
		r.size = 10
		r.run(10 * time.Minute)
		change(r)
		if alarms, _ := r.run(12 * time.Second); alarms != 1 {
			t.Errorf("seed %d, %s: %d alarms: %+v", seed, name, alarms, r.slow)
		}
	}
}

// An outage of an hour is slow until its end, and a release that is slower for good is the new
// normal after the 70 minutes that slowLearning says, with what 16 s a block cost.
func TestSlowedForGood(t *testing.T) {
	r := newSteady(38, 20, fixed.draw)
	r.run(10 * time.Minute)
	r.slower = 3
	if r.run(time.Hour); !r.slow.is {
		t.Error("no longer slow within an hour")
	}
	if r.run(20 * time.Minute); r.slow.is {
		t.Errorf("still slow after 80 minutes: %+v", r.slow)
	}
	// Nothing for a night, and there is nothing to compare with: not an alarm, and no number.
	r.rate = 0.001
	r.run(8 * time.Hour)
	var s Stats
	if r.slow.tell(&s, false); s.Baseline != 0 || s.SlowedBy != 0 || s.Slowed {
		t.Errorf("after a night: %v, %v, %v", s.Baseline, s.SlowedBy, s.Slowed)
	}
}

// A core in front of a dependency that takes three times as long for half a minute: no more
// is offered, the queue grows, and it says so within seconds and until the end. Three times the
// load before it was no such thing. The limit is twice what is needed at first.
func TestSlowedInACore(t *testing.T) {
	const seed, begins, over = 39, 150 * time.Second, 180 * time.Second
	l := load{slots: 20, mean: 50 * ms, shape: exponential, times: 3, length: 200 * time.Second, seed: seed}
	l.rate = func(at time.Duration) float64 {
		if at > 80*time.Second && at < 100*time.Second {
			return 3
		}
		return 0.6
	}
	var from, until time.Duration
	var during Stats
	l.tune = func(w *world) {
		w.ends = func(start, service time.Duration) time.Duration {
			if start > begins && start < over {
				service *= 3
			}
			return start + service
		}
		each := w.each
		w.each = func() {
			each()
			switch is := w.core.noticed.slow.is; {
			case is && from == 0:
				from = w.now
			case is:
				until = w.now
			}
			if during.Limit == 0 && w.now > over-time.Second {
				during = w.core.Stats(w.now)
			}
		}
	}
	r := l.run(t)
	// Four blocks of a second, and one that has begun before, from when the first of them end.
	if from < begins+3*time.Second || from > begins+7*time.Second {
		t.Errorf("seed %d: slow at %v since %v", seed, begins, from)
	}
	if until < over || until > over+7*time.Second {
		t.Errorf("seed %d: slow up to %v until %v", seed, over, until)
	}
	if d := during; !d.Slowed || d.SlowedBy < 2.5 || d.SlowedBy > 3.5 || d.Baseline < 45*ms || d.Baseline > 55*ms || !d.Overload {
		t.Errorf("seed %d: slowed %v by %.2f from %v", seed, d.Slowed, d.SlowedBy, d.Baseline)
	}
	if s := r.core.Stats(r.core.now); s.Refusals[QueueFull]+s.Refusals[NoBudget] == 0 {
		t.Errorf("seed %d: it was no overload: %+v", seed, s)
	}
}

// A thousand run at once where 20 may, because a driver only watches: units are held for 25 times as
// long, for longer than it takes to call something slow, and to learn it. Neither happens while the
// law is held, a fixed one too, and afterwards the base is what it was.
func TestNothingIsSlowWhileHeld(t *testing.T) {
	c, err := New(Config{Limit: limit.Fixed(20), Objective: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	run := func(d, hold time.Duration) Stats {
		var b Batch
		for end := now + d; now < end; {
			now += 50 * time.Millisecond
			b.Reset()
			for range 24 { // 480 a second
				c.Offer(now, Request{Deadline: Never})
				c.Release(now, End{Cost: 1, Outcome: Completed})
				b.Add(hold, hold, 1, 1)
			}
			c.Observe(now, &b)
		}
		return c.Stats(now)
	}
	const usual, crowded = 40 * time.Millisecond, time.Second
	if s := run(2*time.Minute, usual); s.Slowed || s.Baseline != usual {
		t.Fatalf("before: slowed %v, base %v", s.Slowed, s.Baseline)
	}
	if s := run(10*time.Second, crowded); !s.Slowed {
		t.Fatal("what is 25 times as slow with nothing held is not called slow: this shows nothing")
	}
	c.Hold(now, true)
	if s := c.Stats(now); s.Slowed || s.SlowedBy != 0 || s.Baseline != 0 {
		t.Errorf("at once: slowed %v, %.1fx of %v", s.Slowed, s.SlowedBy, s.Baseline)
	}
	if s := run(time.Minute, crowded); s.Slowed || s.SlowedBy != 0 || s.Baseline != 0 {
		t.Errorf("held: slowed %v, %.1fx of %v", s.Slowed, s.SlowedBy, s.Baseline)
	}
	c.Hold(now, false)
	if s := c.Stats(now); s.Slowed || s.Baseline > 50*time.Millisecond { // of the 10 s before a twelfth counts: 40 ms + 960 ms x 10/12 of 120 blocks = 47 ms
		t.Errorf("afterwards: slowed %v, base %v", s.Slowed, s.Baseline)
	}
	if s := run(10*time.Second, usual); s.Slowed {
		t.Error("slowed, by what was measured while held")
	}
	if s := run(10*time.Second, crowded); !s.Slowed {
		t.Error("not slowed, although it is")
	}
}

// Callers who try again once it is slow do not end it, although as much is completed.
func TestSlowedStaysWithRetries(t *testing.T) {
	const seed = 40
	r := newSteady(seed, 200, exponential.draw)
	r.run(10 * time.Minute)
	r.slower = 3
	if alarms, _ := r.run(12 * time.Second); alarms != 1 {
		t.Fatalf("seed %d: not slow: this shows nothing", seed)
	}
	r.retries = 1
	if r.run(5 * time.Minute); !r.slow.is {
		t.Errorf("seed %d: no longer slow: %+v", seed, r.slow)
	}
}

// What has been slow is that until quietFor after the last end, unless something still runs: that may be
// what hangs. Afterwards it has to be shown again, except by what was held all the time.
func TestNothingIsSlowWhenQuiet(t *testing.T) {
	const usual, slow, step = 40 * time.Millisecond, time.Second, 50 * time.Millisecond
	var c *Core
	var now time.Duration
	run := func(d, hold time.Duration) Stats {
		var b Batch
		for end := now + d; now < end; {
			now += step
			b.Reset()
			for range 24 { // 480 a second
				c.Offer(now, Request{Deadline: Never})
				c.Release(now, End{Cost: 1, Outcome: Completed})
				b.Add(hold, hold, 1, 1)
			}
			c.Observe(now, &b)
		}
		return c.Stats(now)
	}
	begin := func() {
		var err error
		if c, err = New(Config{Limit: limit.Fixed(20), Objective: 300 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		now = 0
		run(2*time.Minute, usual)
		if s := run(10*time.Second, slow); !s.Slowed || s.SlowedBy < 10 || s.OfferedBefore < 450 || s.OfferedBefore > 500 || s.CompletedBefore < 475 || s.CompletedBefore > 485 || s.CompletedNow < 475 || s.CompletedNow > 485 {
			t.Fatalf("slowed %v by %.1f; offered %.0f/s, completed %.0f/s, now %.0f/s", s.Slowed, s.SlowedBy, s.OfferedBefore, s.CompletedBefore, s.CompletedNow)
		}
	}
	begin()
	if s := c.Stats(now + quietFor); !s.Slowed || s.SlowedBy < 10 {
		t.Errorf("within a minute: slowed %v by %.1f", s.Slowed, s.SlowedBy)
	}
	now += time.Hour
	if s := c.Stats(now); s.Slowed || s.SlowedBy != 0 || s.CompletedNow != 0 || s.Baseline == 0 {
		t.Errorf("after an hour: slowed %v by %.1f, %.0f/s completed, base %v", s.Slowed, s.SlowedBy, s.CompletedNow, s.Baseline)
	}
	if s := run(step, slow); s.Slowed {
		t.Error("slowed with the next window")
	}
	if s := run(10*time.Second, slow); !s.Slowed {
		t.Error("not slowed again, although it is")
	}

	begin()
	c.Offer(now, Request{Deadline: Never})
	now += time.Hour
	if s := c.Stats(now); !s.Slowed {
		t.Error("one has run for an hour, and nothing is slow")
	}
	c.Release(now, End{Cost: 1, Outcome: Completed})
	var b Batch
	b.Add(time.Hour, time.Hour, 1, 1)
	c.Observe(now, &b)
	if s := c.Stats(now); !s.Slowed {
		t.Error("one has run for an hour, and with its end nothing is slow")
	}
}
