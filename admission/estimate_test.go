package admission

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/hist"
	"github.com/goodput/goodput/limit"
)

const ms = time.Millisecond

func batch(n int, service time.Duration) *Batch {
	b := &Batch{}
	for range n {
		b.Add(service, service, 1, 0)
	}
	return b
}

func fresh() *estimate {
	e := &estimate{}
	e.setPrior(50*ms, 2*time.Second, 400*ms)
	return e
}

// Before samples the service is taken as exponential with the prior's mean.
func TestPriorIsExponential(t *testing.T) {
	e := fresh()
	mean, cv2 := e.moments()
	near(t, "mean", mean, 0.05, 0.005)
	near(t, "cv2", cv2, 1, 0.01)
	near(t, "hold", e.hold(), 0.05, 1e-12)
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		near(t, "quantile", e.quantile(q), -0.05*math.Log(1-q), 0.01)
	}
}

// Each sample replaces one of the hundred that the prior is worth.
func TestPriorGivesWay(t *testing.T) {
	for _, c := range []struct {
		n    int
		want float64 // mean, ms
	}{{0, 50}, {25, 62.5}, {50, 75}, {100, 100}, {1000, 100}} {
		e := fresh()
		e.observe(0, batch(c.n, 100*ms))
		e.observe(400*ms, &Batch{}) // the first objective is over
		mean, _ := e.moments()
		near(t, "mean", 1000*mean, c.want, 0.005)
		near(t, "hold", 1000*e.hold(), c.want, 1e-9)
	}
}

// For the first objective the prior weighs as much as the samples: what has
// taken longer than that is not among them yet.
func TestPriorCountsForOneObjective(t *testing.T) {
	e := fresh()
	e.observe(10*time.Second, batch(10_000, 10*ms))
	if got := e.priorWeight(); got != 10_000 {
		t.Errorf("the prior is worth %v samples beside 10000", got)
	}
	e.observe(10*time.Second+399*ms, batch(1, 10*ms))
	near(t, "mean", e.hold(), 0.030, 1e-4)
	e.observe(10*time.Second+400*ms, &Batch{})
	near(t, "mean", e.hold(), 0.010, 1e-4)
}

// Half of the samples are forgotten in a half-life, and 500 are kept however
// rare they are.
func TestForgetting(t *testing.T) {
	e := fresh()
	e.observe(0, batch(8000, 50*ms))
	e.observe(2*time.Second, batch(4000, 100*ms))
	near(t, "samples", e.samples, 8000, 1e-9) // 4000 of each
	near(t, "hold", e.hold(), 0.075, 1e-9)
	e.observe(6*time.Second, &Batch{})
	near(t, "samples after two half-lives", e.samples, 2000, 1e-9)
	e.observe(time.Hour, &Batch{})
	near(t, "samples after an hour", e.samples, 500, 1e-9)
	near(t, "hold", e.hold(), 0.075, 1e-6)
	e.observe(2*time.Hour, batch(1, 50*ms))
	near(t, "samples after another", e.samples, 501, 1e-9)

	few := fresh()
	few.observe(0, batch(200, 50*ms))
	few.observe(time.Hour, &Batch{})
	near(t, "fewer than are kept", few.samples, 200, 1e-9)
}

func TestBatchMergeIsAdding(t *testing.T) {
	var a, b, both Batch
	add := func(to *Batch, service, hold time.Duration, cost, size int) {
		to.Add(service, hold, cost, size)
		both.Add(service, hold, cost, size)
	}
	add(&a, 3*ms, 5*ms, 1, 0)
	add(&a, 900*ms, 900*ms, 4, 8)
	add(&b, 0, 70*ms, 2, 0)
	add(&b, time.Microsecond, ms, 1, 1)
	add(&b, 20*time.Hour, 20*time.Hour, 1, 1)
	var empty, sum Batch
	sum.Merge(&a)
	sum.Merge(&b)
	sum.Merge(&empty)
	if sum != both {
		t.Error("merging is not adding")
	}
	if sum.Samples() != 4 || sum.Empty() {
		t.Errorf("%d samples, empty %v", sum.Samples(), sum.Empty())
	}
	sum.Reset()
	if sum != empty || !sum.Empty() {
		t.Error("a batch that was reset is not the zero value")
	}
}

// Work that failed is no sample, but it held its slot. A slot is held at least
// as long as the service takes.
func TestWhatIsASample(t *testing.T) {
	var b Batch
	b.Add(0, 30*ms, 1, 0)
	b.Add(-ms, 30*ms, 1, 0)
	if b.Samples() != 0 || b.Empty() || b.ended.cost != 2 {
		t.Errorf("failed work: %d samples, cost %v held", b.Samples(), b.ended.cost)
	}
	b.Reset()
	b.Add(0, 0, 1, 0)
	if !b.Empty() {
		t.Error("neither service nor hold is nothing")
	}
	b.Add(50*ms, 0, 1, 0)
	if b.ended.costSeconds != 0.05 {
		t.Errorf("held for %v s, served for 0.05 s", b.ended.costSeconds)
	}
}

// The service time is per unit of size, the hold per unit of cost.
func TestSizeAndCost(t *testing.T) {
	e := fresh()
	var b Batch
	for range 1000 {
		b.Add(200*ms, 200*ms, 1, 100) // 2 ms a token
		b.Add(400*ms, 600*ms, 3, 200) // the same, at three units for 600 ms
	}
	e.observe(0, &b)
	e.observe(400*ms, &Batch{})
	near(t, "per unit of size", e.quantile(0.99), 0.002, 1e-9)
	near(t, "hold of a unit", e.hold(), (0.2+3*0.6)/4, 1e-9)
	c := play(t, Config{Limit: limit.Fixed(4), Objective: time.Second}, 1000, fixedAt(0.002))
	for size, want := range map[int]time.Duration{0: 2 * ms, 1: 2 * ms, 100: 200 * ms} {
		r := Request{Cost: 1, Size: size}
		c.normalize(&r)
		if got := c.need(r.Size, Never); (got - want).Abs() > time.Microsecond {
			t.Errorf("size %d needs %v, want %v", size, got, want)
		}
	}
}

// A service time that drifts from the declared one by more than 25 % is flagged.
func TestDriftFlag(t *testing.T) {
	for _, c := range []struct {
		service time.Duration
		flagged bool
	}{
		{50 * ms, false}, {62 * ms, false}, {63 * ms, true}, {38 * ms, false}, {37 * ms, true}, {300 * ms, true},
	} {
		cfg := Config{Limit: limit.Fixed(60), Objective: 400 * ms, Service: 50 * ms}
		if d := play(t, cfg, 1000, fixedAt(c.service.Seconds())).Stats(0).Derivation; d.Drifted != c.flagged {
			t.Errorf("%v: %v", c.service, d)
		}
		cfg.Service = 0
		if d := play(t, cfg, 1000, fixedAt(c.service.Seconds())).Stats(0).Derivation; d.Drifted {
			t.Errorf("nothing was declared: %v", d)
		}
	}
	// 99 samples are no evidence.
	cfg := Config{Limit: limit.Fixed(60), Objective: 400 * ms, Service: 50 * ms}
	if d := play(t, cfg, 99, fixedAt(0.2)).Stats(0).Derivation; d.Drifted {
		t.Errorf("99 samples: %v", d)
	}
}

// A quantile inside a bucket is interpolated, so a fixed service is known
// exactly and a smooth one to 1 %.
func TestQuantiles(t *testing.T) {
	for name, f := range map[string]func(float64) float64{
		"fixed": fixedAt(0.05), "exponential": exponentialAt(0.05), "lognormal": lognormalAt(0.05, 2),
	} {
		e := measured(100_000, f)
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
			near(t, name, e.quantile(q), f(q), 0.01)
		}
	}
	if q := measured(1000, fixedAt(0.05)).quantile(0.99); math.Abs(q-0.05) > 1e-9 {
		t.Errorf("fixed: %v", q)
	}
}

// A few long durations among many of next to nothing leave the first bucket
// with a spread above its mean: its quantiles still are no less than 0.
func TestQuantilesOfTheFirstBucket(t *testing.T) {
	c := play(t, Config{Limit: limit.Fixed(4), Objective: time.Second}, 1000, func(q float64) float64 {
		if q > 0.95 {
			return 0.9 * hist.Bound(0)
		}
		return 1e-9 // 0 is no sample
	})
	for _, q := range []float64{0, 0.01, 0.5, 0.99} {
		if v := c.service.quantile(q); v < 0 {
			t.Errorf("quantile %v is %v s", q, v)
		}
	}
}

// FuzzEstimate feeds any durations, costs and sizes at any times. Whatever they
// are, the estimate is finite, its quantiles rise, and the depth is in range.
func FuzzEstimate(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a few bytes are a few samples, of any service and hold"))
	seed := make([]byte, 0, 200)
	for _, d := range []time.Duration{1, ms, 50 * ms, time.Hour, math.MaxInt64, math.MinInt64, -1, 0} {
		seed = binary.LittleEndian.AppendUint64(seed, uint64(d))
		seed = append(seed, 3, 200, 7, 255)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := New(Config{Limit: limit.Fixed(60), Objective: 400 * ms})
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		now := time.Duration(0)
		for len(data) >= 12 {
			service := time.Duration(binary.LittleEndian.Uint64(data))
			hold := service >> (data[8] % 64)
			b.Add(service, hold, int(data[9])<<(data[10]%24), int(data[10])-3)
			if data[11]&3 == 0 {
				now += time.Duration(data[11]) << (data[8] % 40)
				c.Observe(now, &b)
				b.Reset()
				checkEstimate(t, c)
			}
			data = data[12:]
		}
		c.Observe(now+time.Second, &b)
		checkEstimate(t, c)
	})
}

func checkEstimate(t *testing.T, c *Core) {
	t.Helper()
	e := &c.service
	mean, cv2 := e.moments()
	for _, v := range []float64{mean, cv2, e.hold(), e.samples, e.total, c.rate(), c.quantile} {
		if !(v >= 0) || math.IsInf(v, 0) {
			t.Fatalf("mean %v, cv2 %v, hold %v, samples %v, weight %v, rate %v, quantile %v",
				mean, cv2, e.hold(), e.samples, e.total, c.rate(), c.quantile)
		}
	}
	last := 0.0
	for q := 0.01; q < 1; q += 0.01 {
		v := e.quantile(q)
		// A bound may be off by a tick of the histogram, 2^-30 s.
		if !(v >= last*(1-1e-9)-1e-9) || math.IsInf(v, 0) {
			t.Fatalf("quantile %v is %v after %v", q, v, last)
		}
		last = v
	}
	if d := c.derivation; d.Depth < 0 || d.Depth > c.cfg.MaxItems || d.RuleLatency < 0 || d.Service < 0 || d.Mean < 0 {
		t.Fatalf("%+v", d)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
}
