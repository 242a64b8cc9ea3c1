package simulated

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/goodput/goodput/internal/sim"
)

// A Speed is how many requests the simulator plays per second of processor time, of 60 slots of
// 50 ms, exponential.
type Speed struct {
	Policy string  `json:"policy"`
	Load   float64 `json:"load_x"`
	Rate   Spread  `json:"requests_per_cpu_s"`
}

// passes of each speed: a median of five.
const passes = 5

// speeds plays a million requests or so of each kind, in this goroutine.
func speeds(s Setup, r *Result) error {
	auto := finding()
	fifo, err := sim.Named("fifo", 60, 480, exponential.of(50*ms))
	if err != nil {
		return err
	}
	fifo.Name = "a bounded FIFO queue"
	for _, c := range []struct {
		policy sim.Policy
		load   float64
	}{{ours(60), 0.9}, {ours(60), 3}, {auto, 3}, {fifo, 3}} {
		one := Speed{Policy: c.policy.Name, Load: c.load}
		var rates []float64
		for pass := range passes {
			length := s.length(time.Duration(1e6 / (c.load * 1200) * 1e9))
			before := processor()
			res, err := scene{exponential, 60, 50 * ms, c.load, 2 * time.Second, length}.play(c.policy, uint64(pass)+1)
			if err != nil {
				return err
			}
			if took := processor() - before; took > 0 {
				rates = append(rates, float64(res.Total.Requests)/took.Seconds())
			}
		}
		one.Rate = spreadOf(rates)
		r.Speeds = append(r.Speeds, one)
	}
	return nil
}

// repeats plays one seed twice, with all that draws: a limit that finds itself, retries and a
// stall. And it plays ten times as many requests: what it allocates more is what it keeps of
// each.
func repeats(_ Setup, r *Result) error {
	once := func(length time.Duration) ([]byte, error) {
		s := scene{exponential, 60, 50 * ms, 1.5, 2 * time.Second, length}.scenario(finding())
		s.Classes[0].Retry = sim.Retry{Attempts: 3, Backoff: 100 * ms, Max: time.Second}
		s.Tiers[0].Speed.Stalls = []sim.Stall{{At: 4 * time.Second, For: time.Second}}
		res, err := sim.Run(s, 1)
		if err != nil {
			return nil, err
		}
		return json.Marshal(res)
	}
	one, err := once(8 * time.Second)
	if err != nil {
		return fmt.Errorf("a result is no JSON: %w", err)
	}
	two, err := once(8 * time.Second)
	if err != nil {
		return err
	}
	r.Same = bytes.Equal(one, two)

	for _, load := range []float64{0.9, 3} {
		told, err := further(ours(60), load)
		if err != nil {
			return err
		}
		finds, err := further(finding(), load)
		if err != nil {
			return err
		}
		r.PerRequest, r.Garbage = max(r.PerRequest, told), max(r.Garbage, finds)
	}
	return nil
}

// further returns the bytes that a further request allocates, of ten times as many.
func further(p sim.Policy, load float64) (float64, error) {
	var stats [2]struct{ bytes, requests float64 }
	for i, length := range []time.Duration{30 * time.Second, 300 * time.Second} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		res, err := scene{exponential, 60, 50 * ms, load, 2 * time.Second, length}.play(p, 1)
		if err != nil {
			return 0, err
		}
		runtime.ReadMemStats(&after)
		stats[i].bytes, stats[i].requests = float64(after.TotalAlloc-before.TotalAlloc), float64(res.Total.Requests)
	}
	return (stats[1].bytes - stats[0].bytes) / (stats[1].requests - stats[0].requests), nil
}
