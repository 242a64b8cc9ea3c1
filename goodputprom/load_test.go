package goodputprom

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// send makes one request of some kind: some fail, some are too late, some leave before they have a slot
// or with it, some are too large, some are probes. It reports whether it is an arrival.
func send(t *testing.T, lim *goodput.Limiter, rng *rand.Rand) bool {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if rng.IntN(2) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(1+rng.IntN(40))*time.Millisecond)
		defer cancel()
	}
	switch rng.IntN(12) {
	case 0:
		cancel()
	case 1:
		defer time.AfterFunc(time.Duration(rng.IntN(20))*time.Millisecond, cancel).Stop()
	}
	w := goodput.Work{Cost: 1 + rng.IntN(3), Bytes: rng.Int64N(2000), Priority: goodput.Priority(rng.IntN(5)), Exempt: rng.IntN(30) == 0}
	slot, err := lim.AcquireWork(ctx, w)
	if err != nil {
		return true // whoever is refused has arrived
	}
	arrived := !slot.Exempt()
	time.Sleep(time.Duration(rng.IntN(8)) * time.Millisecond)
	switch rng.IntN(12) {
	case 0:
		slot.Fail(errors.New("failed"))
	case 1:
		slot.Dropped()
	case 2:
		slot.Abandon()
	case 3:
		slot.Detach()
	case 4:
		slot.Unsampled()
		slot.Release()
	default:
		slot.Release()
	}
	return arrived
}

// change makes one change that an operator or a reload may make while requests go on.
func change(t *testing.T, lim *goodput.Limiter, rng *rand.Rand) {
	var err error
	switch rng.IntN(3) {
	case 0:
		err = lim.SetObserve(rng.IntN(2) == 0)
	case 1:
		cfg := goodput.Config{
			Name: lim.Name(), Limit: limit.Fixed(1 + rng.IntN(8)), Objective: 50 * time.Millisecond, MaxBytes: 4000,
			Depth: rng.IntN(20), Observe: rng.IntN(3) == 0,
		}
		if rng.IntN(3) == 0 {
			cfg.Limit = limit.AIMD{Min: 1, Max: 9}
		}
		if rng.IntN(4) == 0 {
			cfg.Objective = 20 * time.Second // other buckets for a while
		}
		err = lim.Reconfigure(cfg)
	default:
		if err = lim.SetLimit(1 + rng.IntN(8)); err != nil {
			err = nil // its law moves it
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// C133, C135: 10,000 requests of all kinds, two classes whose limits, laws, depths, objectives and
// observe modes change meanwhile, and two who scrape all the time. At each scrape what was offered in a
// class is what has ended, by whatever outcome, waits or runs; and no counter falls, nor a bucket.
func TestEveryScrapeAddsUp_C133_C135(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		t.Logf("seed %d", seed)
		const workers, each = 20, 500
		classes := []string{"web", "batch"}
		var limiters []*goodput.Limiter
		var offered [2]atomic.Uint64
		for _, name := range classes {
			limiters = append(limiters, goodput.New(goodput.Config{Name: name, Limit: limit.Fixed(4), Objective: 50 * time.Millisecond, MaxBytes: 4000}))
		}
		c := New(limiters...)
		var load, rest sync.WaitGroup
		over := make(chan struct{})
		for i := range workers {
			load.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for range each {
					if send(t, limiters[i%2], rng) {
						offered[i%2].Add(1)
					}
				}
			})
		}
		until := func(every time.Duration, do func()) {
			rest.Go(func() {
				for {
					select {
					case <-over:
						return
					case <-time.After(every):
						do()
					}
				}
			})
		}
		rng := rand.New(rand.NewPCG(seed, 1000))
		until(3*time.Millisecond, func() { change(t, limiters[rng.IntN(2)], rng) })
		scrapes := 0
		for i := range 2 {
			before := map[string]float64{}
			until(time.Duration(4000+i)*time.Microsecond, func() { // each sees its own scrapes one after the other
				checkScrape(t, classes, values(gather(t, c)), before)
				if i == 0 {
					scrapes++
				}
			})
		}
		load.Wait()
		close(over)
		rest.Wait()
		last := values(gather(t, c))
		for i, class := range classes {
			if got, want := last[`goodput_arrivals_total{limiter="`+class+`"}`], float64(offered[i].Load()); got != want {
				t.Errorf("%v arrivals of %s, want %v", got, class, want)
			}
		}
		t.Logf("%d scrapes by each", scrapes)
		seen := map[string]bool{}
		for name, v := range last {
			if strings.HasPrefix(name, "goodput_requests_total") && v > 0 {
				_, outcome, _ := strings.Cut(name, `outcome="`)
				outcome, _, _ = strings.Cut(outcome, `"`)
				seen[outcome] = true
			}
		}
		if len(seen) != 7 || scrapes < 50 {
			t.Errorf("not the scene: %d scrapes, outcomes %v", scrapes, seen)
		}
	})
}

// checkScrape checks one scrape, which is after those of before, and adds it to those.
func checkScrape(t *testing.T, classes []string, now, before map[string]float64) {
	for _, class := range classes {
		of := func(name string) float64 { return now["goodput_"+name+`{limiter="`+class+`"}`] }
		sum := of("requests_waiting") + of("requests_running")
		for name, v := range now {
			if strings.HasPrefix(name, `goodput_requests_total{limiter="`+class+`"`) {
				sum += v
			}
		}
		if sum != of("arrivals_total") {
			t.Errorf("%s: %v offered, %v ended, waiting or running", class, of("arrivals_total"), sum)
		}
	}
	for name, v := range now {
		base, _, _ := strings.Cut(name, "{")
		for _, suffix := range []string{"_total", "_count", "_sum", "_bucket"} {
			if strings.HasSuffix(base, suffix) {
				if v < before[name] {
					t.Errorf("%s fell from %v to %v", name, before[name], v)
				}
				before[name] = v
			}
		}
	}
}
