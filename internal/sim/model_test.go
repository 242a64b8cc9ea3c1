package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// arbitrary draws a small scenario that may use every feature at once.
func arbitrary(r *rand.Rand) Scenario {
	some := func(p float64) bool { return r.Float64() < p }
	between := func(lo, hi time.Duration) time.Duration { return lo + time.Duration(r.Int64N(int64(hi-lo)+1)) }
	s := Scenario{Name: "arbitrary", Length: between(200*ms, 2*time.Second), Bins: r.IntN(20)}
	s.Warmup = time.Duration(r.Int64N(int64(s.Length)))
	n := 1 + r.IntN(3)
	for i := range n {
		t := Tier{
			Instances: r.IntN(4), Policy: arbitraryPolicy(r), Slots: r.IntN(3) * r.IntN(8),
			Service: arbitraryDist(r, 10*ms), Objective: between(0, 200*ms),
		}
		if some(0.3) {
			t.Contention = Contention{Alpha: r.Float64() / 10, Beta: r.Float64() / 100, Knee: r.IntN(10), Slope: r.Float64() / 10}
		}
		if some(0.3) {
			t.Speed.Steps = []SpeedStep{{between(0, time.Second), 0.25 + 2*r.Float64()}}
		}
		if some(0.3) {
			t.Speed.Stalls = []Stall{{between(0, time.Second), between(1, 200*ms)}}
		}
		if some(0.2) {
			t.Speed.Pauses = Pauses{between(50*ms, 200*ms), between(1, 20*ms)}
		}
		if some(0.3) {
			t.Faults = []Fault{{between(0, 500*ms), between(1, 500*ms), 1 - r.Float64()}, {time.Second, time.Second, 1}}
		}
		if i+1 < n && some(0.8) {
			f := Fan{Tier: i + 1 + r.IntN(n-i-1), N: r.IntN(6)}
			f.Need = r.IntN(max(f.N, 1) + 1)
			if some(0.5) {
				f.Wait = between(1, 100*ms)
			}
			if some(0.5) {
				f.Retry = arbitraryRetry(r)
			}
			t.Next = &f
		}
		if some(0.3) {
			t.Restarts = []Restart{{At: between(0, time.Second), Down: between(0, 200*ms), Cold: 3 * r.Float64(), Warm: between(0, 200*ms)}}
		}
		if some(0.3) {
			t.Memory, t.Killed = 1000+r.Int64N(20_000), Restart{Down: between(0, 100*ms)}
		}
		s.Tiers = append(s.Tiers, t)
	}
	for range 1 + r.IntN(3) {
		s.Classes = append(s.Classes, arbitraryClass(r, n))
	}
	if some(0.3) {
		at := time.Duration(0)
		s.Trace = func(j *Job) bool {
			at += between(0, 20*ms)
			*j = Job{At: at, Class: r.IntN(len(s.Classes)), Service: between(0, 30*ms), Cost: r.IntN(3), Size: r.IntN(3), Deadline: between(0, 100*ms)}
			return true
		}
	}
	return s
}

func arbitraryPolicy(r *rand.Rand) Policy {
	if r.IntN(2) == 0 {
		p := Policy{Name: "core", Core: &admission.Config{
			Limit: limit.Fixed(1 + r.IntN(8)), Objective: time.Duration(20+r.IntN(400)) * ms,
			Depth: []int{0, 0, admission.NoQueue, 1 + r.IntN(20)}[r.IntN(4)], MaxBytes: 1000 + r.Int64N(10_000),
			Overflow: []admission.Overflow{admission.Displace, admission.RefuseNewest, admission.EvictOldest, admission.LatestOnly}[r.IntN(4)],
			Order:    admission.Order(r.IntN(4)),
		}}
		if r.IntN(2) == 0 {
			p.Core.Tenants = &admission.Tenants{
				Rows:   []admission.Tenant{{ID: "a", Weight: 3}, {ID: "b", MaxInUse: 1 + r.IntN(4), MaxQueue: 0.5}, {ID: "a-1", Quota: admission.Quota{Rate: 50, Burst: 3}}},
				Others: admission.Tenant{Highest: admission.Priority(r.IntN(5))}, Buckets: 1 + r.IntN(8),
			}
		}
		if r.IntN(3) == 0 {
			p.Core.Reserve = admission.Reserve{Critical: 0.2, Default: 0.3, Background: 0.1}
		}
		return p
	}
	b := Baseline{
		Limit: 1 + r.IntN(8), Depth: []int{Unbounded, 0, 1 + r.IntN(20)}[r.IntN(3)], Order: Discipline(r.IntN(4)),
		PushOut: r.IntN(2) == 0, Expire: r.IntN(2) == 0, Margin: time.Duration(r.IntN(20)) * ms,
	}
	if r.IntN(8) == 0 {
		b.Limit = Unbounded
	}
	if b.Order == Adaptive || r.IntN(3) == 0 {
		b.CoDel = CoDel{time.Duration(r.IntN(10)) * ms, 20 * ms}
	}
	return Policy{Name: "baseline", Baseline: &b}
}

func arbitraryDist(r *rand.Rand, mean time.Duration) Dist {
	switch Kind(r.IntN(6)) {
	case Exponential:
		return Dist{Kind: Exponential, Mean: mean}
	case Lognormal:
		return Dist{Kind: Lognormal, Mean: mean, CV: 0.1 + 3*r.Float64()}
	case Pareto:
		return Dist{Kind: Pareto, Mean: mean, Alpha: 1.5 + r.Float64()}
	case Modal:
		return Dist{Kind: Modal, Modes: []Mode{{0, 1}, {mean, 3}, {5 * mean, 1}}}
	case Empirical:
		return Dist{Kind: Empirical, Samples: []time.Duration{0, mean / 2, mean, 3 * mean}}
	}
	return Dist{Kind: Fixed, Mean: mean}
}

func arbitraryClass(r *rand.Rand, tiers int) Class {
	some := func(p float64) bool { return r.Float64() < p }
	c := Class{
		Tier: r.IntN(tiers), Priority: admission.Priority(r.IntN(5)), Cost: r.IntN(4), Bytes: r.Int64N(1000),
		Untold: some(0.3), Patience: Patience(r.IntN(3)),
		Arrivals: Arrivals{Process: Process(r.IntN(2)), Rate: 500 * r.Float64()},
	}
	if some(0.3) {
		c.Arrivals.Changes = []Change{{300 * ms, 1000 * r.Float64(), 0}, {400 * ms, 500 * r.Float64(), 300 * ms}}
	}
	if some(0.3) {
		c.Arrivals.Sine = Sine{r.Float64() + 1e-9, 100 * ms}
	}
	if some(0.3) {
		c.Arrivals.Bursts = Bursts{1500 * r.Float64(), 50 * ms, 200 * ms}
	}
	if some(0.3) {
		c.Service = arbitraryDist(r, 5*ms)
	}
	if some(0.3) {
		c.Sizes = []Size{{1, 3}, {4, 1}}
	}
	if some(0.5) {
		c.Tenant = string(rune('a' + r.IntN(4)))
		c.Tenants = []Ids{{}, {N: 3}, {N: 30, Zipf: 1}, {Fresh: true}}[r.IntN(4)]
		c.Users = []Ids{{}, {N: 200}, {Fresh: true}}[r.IntN(3)]
		c.Keys = []Ids{{}, {N: 5}, {Fresh: true}}[r.IntN(3)]
	}
	if some(0.2) {
		c.Told = Hearsay{Cost: 3 * r.Float64() * float64(r.IntN(2)), Size: 0.1 + 3*r.Float64(), CV: float64(r.IntN(2)), Uncorrected: some(0.5)}
		c.Told.Cost = max(c.Told.Cost, 0.001)
	}
	if some(0.7) {
		c.Deadlines = []Deadline{{time.Duration(1+r.IntN(100)) * ms, 1}, {time.Duration(1+r.IntN(500)) * ms, r.Float64()}}
	}
	if some(0.6) {
		c.Retry = arbitraryRetry(r)
	}
	return c
}

func arbitraryRetry(r *rand.Rand) Retry {
	some := func(p float64) bool { return r.Float64() < p }
	t := Retry{
		Attempts: r.IntN(5), Backoff: time.Duration(r.IntN(30)) * ms, Max: time.Duration(r.IntN(50)) * ms,
		NoJitter: some(0.5), Obey: some(0.3), Within: time.Duration(r.IntN(2)*r.IntN(500)) * ms,
	}
	if some(0.5) {
		t.Budget = Budget{Ratio: 0.2, Reserve: r.IntN(3), Window: time.Duration(r.IntN(2)) * time.Second}
	}
	if some(0.4) {
		t.Throttle = Throttle{K: 1.1 + r.Float64(), Window: time.Duration(r.IntN(2)) * time.Second}
	}
	return t
}

// follow plays s and looks at the world after each of its events. It returns what
// is wrong first.
func follow(s Scenario, seed uint64) (r *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	w, err := newWorld(&s, seed)
	if err != nil {
		return nil, err
	}
	for step := 0; ; step++ {
		before := w.now
		if !w.step() {
			break
		}
		if w.now < before {
			return nil, fmt.Errorf("step %d: time falls from %v to %v", step, before, w.now)
		}
		if err := w.check(); err != nil {
			return nil, fmt.Errorf("step %d, at %v: %w", step, w.now, err)
		}
	}
	w.finish()
	return w.result, w.over()
}

// check compares what the world counts with what is in it.
func (w *world) check() error {
	for _, t := range w.tiers {
		waits, behind := 0, 0
		for c := t.oldest; c != nil; c = c.next {
			behind++
		}
		for _, in := range t.instances {
			waits += in.waiting
			if in.core != nil {
				if err := in.core.Check(); err != nil {
					return err
				}
			} else if in.queue.waiting != in.waiting {
				return fmt.Errorf("tier %d: %d wait in the queue, %d in the instance", t.index, in.queue.waiting, in.waiting)
			}
			if in.bytes < 0 || t.Memory > 0 && in.bytes > t.Memory {
				return fmt.Errorf("tier %d: %d bytes of %d", t.index, in.bytes, t.Memory)
			}
		}
		switch {
		case waits != t.waiting || behind != t.behind:
			return fmt.Errorf("tier %d: %d wait and %d are behind, counted %d and %d", t.index, waits, behind, t.waiting, t.behind)
		case t.busy < 0 || t.busy+t.behind > t.inUse || t.Slots > 0 && t.busy > t.Slots:
			return fmt.Errorf("tier %d: %d busy and %d behind of %d that hold a slot, %d slots", t.index, t.busy, t.behind, t.inUse, t.Slots)
		case t.taken < t.busy && t.busy > 0 || t.Slots > 0 && t.taken > t.Slots:
			return fmt.Errorf("tier %d: %d are busy with %d of %d slots", t.index, t.busy, t.taken, t.Slots)
		case t.behind > 0 && t.fits(t.oldest):
			return fmt.Errorf("tier %d: %d are behind, the first of cost %d, with %d of %d slots taken", t.index, t.behind, t.oldest.cost, t.taken, t.Slots)
		}
	}
	return nil
}

// over says what is left when everything has ended, and whether each request has
// one end.
func (w *world) over() error {
	if w.open != 0 {
		return fmt.Errorf("%d calls are left", w.open)
	}
	for _, t := range w.tiers {
		if t.busy != 0 || t.inUse != 0 || t.waiting != 0 || t.behind != 0 || t.oldest != nil || t.newest != nil {
			return fmt.Errorf("tier %d: busy %d, in use %d, waiting %d, behind %d are left", t.index, t.busy, t.inUse, t.waiting, t.behind)
		}
		for _, in := range t.instances {
			if in.bytes != 0 || in.alive != nil || in.waiting != 0 || in.queue != nil && (in.queue.inUse != 0 || in.queue.oldest != nil || len(in.queue.edf) != 0) {
				return fmt.Errorf("tier %d: instance %d: %d bytes, %d waiting are left", t.index, in.index, in.bytes, in.waiting)
			}
			if in.core != nil {
				if s := in.core.Stats(w.now); s.InUse != 0 || s.Waiting != 0 {
					return fmt.Errorf("tier %d: instance %d: the core has %d in use, %d waiting", t.index, in.index, s.InUse, s.Waiting)
				}
			}
		}
	}
	if err := w.summed(); err != nil {
		return err
	}
	for i, t := range w.result.Tiers {
		if t.Again > t.Arrivals || t.Served+t.Refused > t.Arrivals {
			return fmt.Errorf("tier %d: %d of %d arrivals are not the first, %d served, %d refused", i, t.Again, t.Arrivals, t.Served, t.Refused)
		}
	}
	for i := range w.result.Tenants {
		if t := &w.result.Tenants[i]; t.Requests != t.InTime+t.Late+t.Refused+t.Failed+t.Kept || t.Entitled < 0 || t.Entitled > float64(t.Asked)+1e-6 {
			return fmt.Errorf("tenant %s: %d requests, %d in time, %d late, %d refused, %d failed, %d kept; entitled to %v of %d", t.Name, t.Requests, t.InTime, t.Late, t.Refused, t.Failed, t.Kept, t.Entitled, t.Asked)
		}
	}
	for i := range w.result.Classes {
		c := &w.result.Classes[i]
		refused := uint64(0)
		for _, n := range c.Reasons {
			refused += n
		}
		switch {
		case c.Requests != c.InTime+c.Late+c.Refused+c.Failed+c.Kept:
			return fmt.Errorf("class %d: %d requests, %d in time, %d late, %d refused, %d failed, %d kept", i, c.Requests, c.InTime, c.Late, c.Refused, c.Failed, c.Kept)
		case c.Attempts+c.Kept < c.Requests:
			return fmt.Errorf("class %d: %d requests, %d attempts, %d kept", i, c.Requests, c.Attempts, c.Kept)
		case c.Attempts < c.Served+refused:
			return fmt.Errorf("class %d: %d attempts, %d served, %d refused", i, c.Attempts, c.Served, refused)
		case c.Good.Count != c.InTime || c.Latency.Count > c.Served || c.Wait.Count != c.Served || c.Told.Count != refused:
			return fmt.Errorf("class %d: %d good, %d latencies, %d waits, %d told, but %d in time, %d served, %d refused", i, c.Good.Count, c.Latency.Count, c.Wait.Count, c.Told.Count, c.InTime, c.Served, refused)
		case c.Parts > float64(c.InTime)+1e-6 || c.Wasted > c.Work:
			return fmt.Errorf("class %d: parts %v of %d, wasted %v of %v", i, c.Parts, c.InTime, c.Wasted, c.Work)
		}
	}
	return nil
}

// summed compares the series with the sums: all of the run is in them.
func (w *world) summed() error {
	r := w.result
	if last := r.Series[len(r.Series)-1].End; last != w.Length || len(r.Series) > cap(r.Series) {
		return fmt.Errorf("%d bins of %d end at %v, the run at %v", len(r.Series), cap(r.Series), last, w.Length)
	}
	var all Bin
	for _, b := range append(r.Series, w.afterwards) {
		all.Arrivals += b.Arrivals
		all.InTime += b.InTime
		all.Late += b.Late
		all.Refused += b.Refused
		all.Failed += b.Failed
		all.Kept += b.Kept
		all.Attempts += b.Attempts
	}
	if t := &w.discard; all.InTime != r.Total.InTime+t.InTime || all.Late != r.Total.Late+t.Late || all.Refused != r.Total.Refused+t.Refused || all.Failed != r.Total.Failed+t.Failed || all.Kept != r.Total.Kept+t.Kept {
		return fmt.Errorf("the series have %+v, the total %+v and before it %+v", all, r.Total, *t)
	}
	if all.Arrivals != all.InTime+all.Late+all.Refused+all.Failed+all.Kept || all.Attempts+all.Kept < all.Arrivals {
		return fmt.Errorf("%d arrivals and %d attempts in the series, which end otherwise: %+v", all.Arrivals, all.Attempts, all)
	}
	return nil
}

// A request has one end, whatever happens to it; the world is empty when the last
// has ended; no core breaks an invariant.
func TestConservation(t *testing.T) {
	n := uint64(400)
	if testing.Short() {
		n = 100
	}
	requests := uint64(0)
	for seed := range n {
		s := arbitrary(rand.New(rand.NewPCG(seed, 1)))
		if err := s.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r, err := follow(s, seed)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		requests += r.Total.Requests
	}
	t.Logf("%d scenarios, %d requests", n, requests)
}

func FuzzConservation(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, seed, run uint64) {
		s := arbitrary(rand.New(rand.NewPCG(seed, 1)))
		if err := s.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, err := follow(s, run); err != nil {
			t.Errorf("seed %d, run %d: %v", seed, run, err)
		}
	})
}
