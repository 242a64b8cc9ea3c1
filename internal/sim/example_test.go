package sim_test

import (
	"fmt"
	"log"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/internal/sim"
	"github.com/goodput/goodput/limit"
)

// A service of 60 slots, 50 ms a request, can do 1,200/s. Three times as much comes,
// for five seconds, from clients who care for half a second.
func overload() sim.Scenario {
	return sim.Scenario{
		Warmup: time.Second, Length: 5 * time.Second,
		Tiers: []sim.Tier{{
			Name:    "service",
			Service: sim.Dist{Kind: sim.Exponential, Mean: 50 * time.Millisecond},
			Policy: sim.Policy{Name: "goodput", Core: &admission.Config{
				Limit: limit.Fixed(60), Objective: 400 * time.Millisecond,
			}},
		}},
		Classes: []sim.Class{{
			Name:      "callers",
			Arrivals:  sim.Arrivals{Rate: 3600},
			Deadlines: []sim.Deadline{{After: 500 * time.Millisecond, Share: 1}},
			Patience:  sim.Vanishes, // they stop caring and tell nobody
		}},
	}
}

// What most callers want: a scenario, played with a seed.
func ExampleRun() {
	r, err := sim.Run(overload(), 2)
	if err != nil {
		log.Fatal(err)
	}
	p99, _ := r.Total.Latency.Quantile(0.99)
	fmt.Printf("%.0f %% of the capacity of %.0f/s in time\n", 100*r.Ratio(), r.Capacity)
	fmt.Println("99 of 100 answers within 400ms:", p99 <= 400*time.Millisecond)
	// Output:
	// 99 % of the capacity of 1200/s in time
	// 99 of 100 answers within 400ms: true
}

// The disciplines of others meet the very same arrivals, with the same work. Whoever
// takes the last of 1,000 places waits 1000/1200 = 0.8 s, for nobody.
func ExampleScenario_With() {
	s := overload()
	for _, name := range []string{"fifo", "unbounded_fifo", "reject"} {
		p, err := sim.Named(name, 60, 1000, s.Tiers[0].Service)
		if err != nil {
			log.Fatal(err)
		}
		r, err := sim.Run(s.With(p), 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-15s %3.0f %%, %4d waited at once\n", name, 100*r.Ratio(), r.Tiers[0].PeakQueue)
	}
	// Output:
	// fifo              0 %, 1000 waited at once
	// unbounded_fifo    0 %, 11892 waited at once
	// reject           98 %,    0 waited at once
}

// Ceilings say what is possible with these arrivals. A limiter does not know how much
// work a request is; whoever does can serve twice as many, the short ones.
func ExampleScenario_Ceilings() {
	c, err := overload().Ceilings(1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("who refuses at once: %.0f %%\n", 100*c.NoQueue)
	fmt.Printf("who knows the size of each request: %.0f %%\n", 100*c.SizeAware)
	// Output:
	// who refuses at once: 99 %
	// who knows the size of each request: 208 %
}

// Requests that were recorded are played as they came: 100/s, each of which asks a
// second tier four times. Its four instances restart: two requests in 20 ms are under
// way there, and ten come in the 100 ms for which nobody listens.
func ExampleScenario_trace() {
	s := overload()
	s.Warmup = 0
	s.Classes[0].Arrivals = sim.Arrivals{}
	s.Tiers[0].Next = &sim.Fan{Tier: 1, N: 4}
	s.Tiers = append(s.Tiers, sim.Tier{
		Name: "shards", Instances: 4,
		Service:  sim.Dist{Kind: sim.Fixed, Mean: 10 * time.Millisecond},
		Policy:   sim.Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(8), Objective: 100 * time.Millisecond}},
		Restarts: []sim.Restart{{At: 2 * time.Second, Down: 100 * time.Millisecond}},
	})
	at := time.Duration(0)
	s.Trace = func(j *sim.Job) bool {
		at += 10 * time.Millisecond
		*j = sim.Job{At: at, Service: 20 * time.Millisecond}
		return at < s.Length
	}
	r, err := sim.Run(s, 1)
	if err != nil {
		log.Fatal(err)
	}
	t := &r.Total
	fmt.Printf("%d requests: %d in time, %d failed; %d restarts\n", t.Requests, t.InTime, t.Failed, r.Tiers[1].Restarts)
	// Output:
	// 499 requests: 488 in time, 11 failed; 4 restarts
}
