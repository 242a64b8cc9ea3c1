package sim

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// A benchmark of the real limiters in virtual time, 60 slots of 50 ms, deadline
// 2 s: 20 s from an idle start, medians of three runs. What ends within the 20 s
// counts, of min(offered, capacity); latencies are those of all that got a slot,
// to their end. So that the queue that is left is served in peace: newest first
// and 480 deep, 2 % of the requests and those that waited longest, which is why the
// 99th percentile of that row is 349 ms and not 230.
func TestBenchmarkOfOthers(t *testing.T) {
	loads := []float64{0.5, 1, 1.5, 3, 10}
	for _, c := range []struct {
		rival, policy string
		shape         Dist
		ratios        [5]float64
		done, refused float64 // per second at 3x; 0: not compared
		p50, p99      float64 // seconds at 3x
		told          float64 // seconds, 99th percentile at 3x
	}{
		{"chan/wait", "unbounded_fifo", exponential50, [5]float64{1, .99, .30, .15, .11}, 0, 0, 0, 0, 0},
		{"bounded-fifo/480", "fifo", exponential50, [5]float64{1, .99, 1, 1, 1}, 1201, 2375, .436, .633, 0},
		{"chan/try", "reject", exponential50, [5]float64{1, .90, .97, .99, 1}, 1187, 2414, .035, .231, 0},
		// A context with a deadline leaves the queue at the deadline.
		{"xsync/acquire-ctx", "fifo_expiry", exponential50, [5]float64{1, .99, .32, .16, .11}, 0, 0, 0, 0, 0},
		{"jobqueue/lifo-480-2s", "lifo", exponential50, [5]float64{1, .99, 1, 1, 1}, 1201, 2370, .036, .349, .231},
		{"chan/wait", "unbounded_fifo", fixed50, [5]float64{1, 1, .30, .15, .11}, 0, 0, 0, 0, 0},
		{"bounded-fifo/480", "fifo", fixed50, [5]float64{1, 1, 1, 1, 1}, 1197, 2373, 0, 0, 0},
		{"chan/try", "reject", fixed50, [5]float64{1, .91, .97, .99, 1}, 1187, 2406, 0, 0, 0},
		{"xsync/acquire-ctx", "fifo_expiry", fixed50, [5]float64{1, 1, .30, .15, .11}, 0, 0, 0, 0, 0},
		{"jobqueue/lifo-480-2s", "lifo", fixed50, [5]float64{1, .99, 1, 1, 1}, 1197, 2373, 0, 0, .231},
	} {
		for i, load := range loads {
			if load == 10 && c.shape.Kind == Fixed {
				continue // as with exponential service: a second of the suite
			}
			s := plain(load, c.shape, 2*time.Second, 0).With(named(t, c.policy, 480, c.shape))
			s.Length, s.Warmup, s.Bins = 20*time.Second, 0, 20
			s.Classes[0].Patience = Leaves
			runs := 6
			if load == 10 {
				runs = 2 // a tenth of the noise: the slots are always busy
			}
			ended := func(r *Result) float64 {
				n := uint64(0)
				for _, b := range r.Series {
					n += b.InTime
				}
				return float64(n) / 20
			}
			refused := func(r *Result) float64 { return float64(r.Total.Refused) / 20 }
			of := []func(*Result) float64{ended, refused, quantile(latency, .5), quantile(latency, .99), quantile(told, .99)}
			e := over(t, s, runs, of...)
			what := fmt.Sprintf("%s, %s at %v: ", c.rival, c.shape.name(), load)
			e[0].published(runs).near(t, what+"in time a second", c.ratios[i]*min(load, 1)*capacity, 0.005*min(load, 1)*capacity)
			if load != 3 || c.done == 0 {
				continue
			}
			e[0].published(runs).near(t, what+"done a second", c.done, 0.5)
			e[1].published(runs).near(t, what+"refused a second", c.refused, 0.5)
			if c.p50 > 0 {
				e[2].published(runs).near(t, what+"p50, s", c.p50, 0.0005+0.01*c.p50)
				e[3].published(runs).near(t, what+"p99, s", c.p99, 0.0005+0.01*c.p99)
			}
			if c.told > 0 {
				e[4].published(runs).near(t, what+"p99 of refusals, s", c.told, 0.0005+0.01*c.told)
			}
		}
	}
}

// published adds the error of a median of three such runs, 0.67 of the deviation
// of one: the published figure has it.
func (e estimate) published(runs int) estimate {
	e.se = math.Hypot(e.se, 0.67*e.se*math.Sqrt(float64(runs)))
	return e
}
