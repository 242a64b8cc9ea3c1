package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

func encode(t *testing.T, r *Result) []byte {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// One seed is one result, to the last bit of each histogram; another is another.
func TestSeed(t *testing.T) {
	for seed := range uint64(40) {
		one, two := arbitrary(rand.New(rand.NewPCG(seed, 1))), arbitrary(rand.New(rand.NewPCG(seed, 1)))
		a, b := encode(t, play(t, one, seed)), encode(t, play(t, two, seed))
		if !bytes.Equal(a, b) {
			t.Errorf("seed %d: two runs differ:\n%s\n%s", seed, a, b)
		}
	}
	s := plain(1.5, exponential50, time.Second, 5*time.Second)
	a, b := play(t, s, 1), play(t, s, 2)
	a.Seed = b.Seed
	if bytes.Equal(encode(t, a), encode(t, b)) {
		t.Error("seeds 1 and 2 give the same result")
	}
}

// All policies meet the same arrivals, with the same work: what one does with a
// request changes nothing for what comes.
func TestPoliciesMeetTheSame(t *testing.T) {
	s := plain(1.5, lognormal50, time.Second, 5*time.Second)
	s.Classes[0].Retry = Retry{Attempts: 3, Backoff: 10 * ms}
	s.Classes[0].Arrivals.Bursts = Bursts{Rate: 5000, On: 100 * ms, Off: time.Second}
	s.Classes = append(s.Classes, s.Classes[0])
	met := func(p Policy) []uint64 {
		s := s.With(p)
		w, err := newWorld(&s, 7)
		if err != nil {
			t.Fatal(err)
		}
		h := []uint64{14695981039346656037, 0}
		for {
			from, at := w.soonest()
			if at == never {
				break
			}
			if len(w.events.list) > 0 && w.events.list[0].at < at {
				e := w.events.pop()
				w.now = e.at
				w.happen(&e)
				continue
			}
			w.now = at
			c := w.draw(from)
			h[0] = (h[0] ^ uint64(c.service) ^ uint64(at)<<1) * 1099511628211
			h[1]++
			w.attempt(c)
		}
		return h
	}
	want := met(s.Tiers[0].Policy)
	for _, name := range Baselines {
		if got := met(named(t, name, 480, lognormal50)); got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s meets %v, our core %v", name, got, want)
		}
	}
	if want[1] < 5000 {
		t.Errorf("only %d arrivals", want[1])
	}
}

// Memory does not grow with the requests: twice as many take not one allocation
// more, beyond the few by which a queue or a heap doubles.
func TestConstantMemory(t *testing.T) {
	allocations := func(times float64, p Policy, requests float64) float64 {
		s := plain(times, exponential50, 2*time.Second, time.Duration(requests/times/capacity*1e9)).With(p)
		s.Classes[0].Retry = Retry{Attempts: 3, Backoff: 10 * ms}
		return testing.AllocsPerRun(1, func() { play(t, s, 3) })
	}
	for _, times := range []float64{0.9, 3} {
		for _, p := range []Policy{plain(1, fixed50, 0, 0).Tiers[0].Policy, named(t, "fifo", 480, exponential50), named(t, "lifo", 480, exponential50), named(t, "edf_expiry", 0, exponential50)} {
			few, many := allocations(times, p, 30_000), allocations(times, p, 60_000)
			t.Logf("%s at %v: %v allocations, then %v", p.Name, times, few, many)
			// The most that wait at once are a few more in a longer run: each is made
			// once, and the waiters of the core a second time. Not so with codel, which is
			// not here: newest first without a bound buries the oldest for ever.
			if more := many - few; more > 0.05*few+30 {
				t.Errorf("%s at %v: %v allocations for 30,000 requests, %v for 60,000", p.Name, times, few, many)
			}
		}
	}
}

// What is kept of a run is as large for a long one.
func TestResultSize(t *testing.T) {
	size := func(length time.Duration) uint64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := play(t, plain(1, exponential50, time.Second, length), 1)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(r)
		return max(after.HeapAlloc, before.HeapAlloc) - before.HeapAlloc
	}
	if long, short := size(100*time.Second), size(5*time.Second); long > short+64<<10 {
		t.Errorf("%d bytes after 105 s, %d after 10 s", long, short)
	}
}

// The heap hands out events by time, then in the order of scheduling.
func TestEventsInOrder(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		var h events
		var model []event
		for range 2000 {
			if r.IntN(5) < 3 || len(model) == 0 {
				e := event{at: time.Duration(r.IntN(50)), who: int32(r.IntN(1000))}
				h.push(e)
				e.seq = h.seq
				model = append(model, e)
				continue
			}
			least := 0
			for i := range model {
				if model[i].at < model[least].at || model[i].at == model[least].at && model[i].seq < model[least].seq {
					least = i
				}
			}
			if got := h.pop(); got != model[least] {
				t.Fatalf("seed %d: popped %+v, want %+v", seed, got, model[least])
			}
			model = append(model[:least], model[least+1:]...)
		}
		if len(h.list) != len(model) {
			t.Fatalf("seed %d: %d left, want %d", seed, len(h.list), len(model))
		}
	}
}

// A trace comes as it was recorded, and an end that is the instant of an arrival
// happens after it, if it was not there before.
func TestTrace(t *testing.T) {
	s := plain(0, fixed50, 0, 0)
	s.Warmup, s.Length = 0, time.Second
	s.Tiers[0].Policy = fifo(1, 0)
	s.Tiers[0].Slots = 1
	jobs := []Job{{At: 0, Service: 10 * ms}, {At: 5 * ms}, {At: 10 * ms}, {At: 11 * ms, Service: 3 * ms}, {At: 20 * ms, Deadline: 40 * ms}, {At: 2 * time.Second}}
	s.Trace = func(j *Job) bool {
		if len(jobs) == 0 {
			return false
		}
		*j, jobs = jobs[0], jobs[1:]
		return true
	}
	r := play(t, s, 1)
	// The second and the third find the slot taken, the fourth does not; the fifth
	// takes 50 ms and is late; the sixth comes after the end.
	if got := fmt.Sprint(r.Total.Requests, r.Total.InTime, r.Total.Late, r.Total.Refused); got != "5 2 1 2" || r.Ended < 60*ms {
		t.Errorf("requests, in time, late, refused: %s, want 5 2 1 2; ended %v", got, r.Ended)
	}
}

// The ratio is in time / min(offered, capacity), with the capacity of the mix that
// came, at the speed of the window.
func TestCapacity(t *testing.T) {
	near := func(what string, got, want, within float64) {
		t.Helper()
		if math.Abs(got-want) > within {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	s := plain(0.5, fixed50, 0, 20*time.Second)
	r := play(t, s, 1)
	near("60 slots of 50 ms", r.Capacity, 1200, 1e-9)
	near("ratio of half the load", r.Ratio(), 1, 1e-9)
	s.Tiers[0].Speed = Speed{Steps: []SpeedStep{{15 * time.Second, 0.5}}, Stalls: []Stall{{20 * time.Second, 2 * time.Second}}}
	// In [5, 25): 10 s at 1, 8 s at 0.5, 2 s at 0.
	near("half as fast, and a stall", play(t, s, 1).Capacity, 1200*14.0/20, 1e-6)
	s = plain(0.5, fixed50, 0, 20*time.Second)
	s.Tiers[0].Contention = Contention{Alpha: 0.1} // 60 / (1 + 5.9), and more is always faster
	near("contention", play(t, s, 1).Capacity, 1200/6.9, 1e-6)
	s.Tiers[0].Contention = Contention{Beta: 0.01} // best at 10: 10 / 1.9, or n/(1 + 0.01 n (n-1))
	near("a knee of concurrency", play(t, s, 1).Capacity, 20*10/1.9, 1e-6)
	s = plain(0.5, fixed50, 0, 20*time.Second)
	s.Classes[0].Sizes = []Size{{1, 1}, {3, 1}}
	near("sizes 1 and 3", play(t, s, 1).Capacity, 600, 1e-6)
	s = plain(0.5, fixed50, 0, 20*time.Second)
	s.Tiers[0].Next = &Fan{Tier: 1, N: 5}
	s.Tiers = append(s.Tiers, Tier{Slots: 10, Service: Dist{Kind: Fixed, Mean: 20 * ms}, Policy: fifo(10, Unbounded)})
	r = play(t, s, 1)
	near("five calls of 20 ms on 10 slots", r.Capacity, 100, 1e-6)
	near("the calls of that tier", r.Tiers[1].Capacity, 500, 1e-6)
}

func BenchmarkPlain(b *testing.B) {
	s := plain(0.9, exponential50, 2*time.Second, 0)
	s.Length = 5*time.Second + time.Duration(float64(b.N)/1080*1e9)
	b.ReportAllocs()
	b.ResetTimer()
	r, err := Run(s, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.Total.Requests)/b.Elapsed().Seconds(), "requests/s")
}

// Somebody who waits in our core is told at the alarm that it cannot work out any
// more; a baseline tells whoever it takes out of the queue.
func TestAlarm(t *testing.T) {
	s := Scenario{
		Length: 2 * time.Second,
		Tiers: []Tier{{
			Slots: 1, Service: Dist{Kind: Fixed, Mean: 10 * ms},
			Policy: Policy{Name: "core", Core: &admission.Config{Limit: limit.Fixed(1), Objective: time.Second, Service: 10 * ms, Depth: 10}},
		}},
		Classes: []Class{{Patience: Vanishes}},
	}
	for _, c := range []struct {
		policy Policy
		lo, hi time.Duration // when the second is told
	}{
		{s.Tiers[0].Policy, 50 * ms, 100 * ms},
		{named(t, "fifo_expiry", 0, fixed50), time.Second, time.Second},
	} {
		if b := c.policy.Baseline; b != nil {
			b.Limit = 1
		}
		// The first takes a second; the second has a deadline after 100 ms.
		jobs := []Job{{Service: time.Second}, {Service: 10 * ms, Deadline: 100 * ms}}
		s := s.With(c.policy)
		s.Trace = func(j *Job) bool {
			if len(jobs) == 0 {
				return false
			}
			*j, jobs = jobs[0], jobs[1:]
			return true
		}
		r := play(t, s, 1)
		if told := time.Duration(r.Total.Told.Sum*1e9 + 0.5); r.Total.Told.Count != 1 || told < c.lo || told > c.hi {
			t.Errorf("%s: %d told after %v, want one after %v to %v", c.policy.Name, r.Total.Told.Count, told, c.lo, c.hi)
		}
	}
}
