package admission

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/goodput/goodput/limit"
)

// A waiter is a good part of what 65,536 of them may cost.
func TestWaiterSize(t *testing.T) {
	if n := unsafe.Sizeof(Waiter{}); n > 192 {
		t.Errorf("a waiter has %d bytes, at most 192", n)
	}
}

// What decides without a queue allocates nothing.
func TestAllocations(t *testing.T) {
	idle := benchCore(t, Config{Limit: limit.Fixed(2)})
	full := benchCore(t, Config{Limit: limit.Fixed(1), Depth: NoQueue})
	full.Offer(0, Request{Deadline: Never})
	now := time.Duration(0)
	for what, f := range map[string]func(){
		"admit and release": func() {
			idle.Offer(now, Request{Deadline: Never})
			idle.Release(now, End{Outcome: Completed})
		},
		"refuse": func() { full.Offer(now, Request{Deadline: Never}) },
		"lend and settle": func() {
			n := idle.Lend()
			idle.Settle(now, Settlement{Free: n})
		},
	} {
		if n := testing.AllocsPerRun(1000, func() { now += ms; f() }); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

func benchCore(t testing.TB, cfg Config) *Core {
	t.Helper()
	if cfg.Objective == 0 {
		cfg.Objective = 400 * ms
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A hundred tenants with a row, and ids without one: admitted at once, refused while
// the queue is full of others, and admitted after somebody of another tenant.
func BenchmarkTenants(b *testing.B) {
	var ids []string
	t := &Tenants{}
	for i := range 100 {
		ids = append(ids, fmt.Sprintf("tenant-%d", i))
		t.Rows = append(t.Rows, Tenant{ID: ids[i], Weight: float64(1 + i%3), MaxInUse: 1 << 10, Quota: Quota{Rate: 1e9, Burst: 1e9}})
	}
	for i := range 28 {
		ids = append(ids, fmt.Sprintf("stranger-%d", i))
	}
	b.Run("admit", func(b *testing.B) {
		c := benchCore(b, Config{Limit: limit.Fixed(60), Tenants: t})
		now, i := time.Duration(0), 0
		b.ReportAllocs()
		for b.Loop() {
			now += 10 * time.Microsecond
			i++
			d := c.Offer(now, Request{Deadline: Never, Tenant: ids[i&127]})
			c.Release(now, End{Outcome: Completed, Share: d.Share})
		}
	})
	for _, waiting := range []int{8, 128} {
		full := func(b *testing.B) (*Core, []Share) {
			c := benchCore(b, Config{Limit: limit.Fixed(60), Tenants: t, Depth: waiting, MaxWait: MaxObjective})
			var shares []Share
			for i := range 60 + waiting {
				if d := c.Offer(0, Request{Deadline: Never, Tenant: ids[i&127]}); d.Verdict == Admitted {
					shares = append(shares, d.Share)
				}
			}
			return c, shares
		}
		b.Run(fmt.Sprintf("refuse/waiting=%d", waiting), func(b *testing.B) {
			c, _ := full(b)
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 10 * time.Microsecond
				c.Offer(now, Request{Deadline: Never, Tenant: ids[59]})
			}
		})
		b.Run(fmt.Sprintf("turn/waiting=%d", waiting), func(b *testing.B) {
			c, shares := full(b)
			now, i := time.Duration(0), 0
			b.ReportAllocs()
			for b.Loop() {
				now += 10 * time.Microsecond
				i++
				c.Release(now, End{Outcome: Completed, Share: shares[i%60]})
				w := c.Next()
				shares[i%60] = w.Share()
				c.Next()
				c.Recycle(w)
				c.Offer(now, Request{Deadline: Never, Tenant: ids[i&127]})
			}
		})
	}
}

func BenchmarkOfferAdmitRelease(b *testing.B) {
	c := benchCore(b, Config{Limit: limit.Fixed(60)})
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 10 * time.Microsecond
		c.Offer(now, Request{Deadline: Never})
		c.Release(now, End{Outcome: Completed})
	}
}

func BenchmarkOfferRefuse(b *testing.B) {
	for _, deadline := range []time.Duration{Never, time.Hour} {
		b.Run(fmt.Sprintf("deadline=%v", deadline != Never), func(b *testing.B) {
			c := benchCore(b, Config{Limit: limit.Fixed(60), Depth: 200})
			for range 260 {
				c.Offer(0, Request{Deadline: Never})
			}
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 10 * time.Microsecond
				if c.Offer(now%(100*ms), Request{Deadline: deadline}).Verdict != Refused {
					b.Fatal("not refused")
				}
			}
		})
	}
}

// At every depth a place costs the same, and so does giving it up.
func BenchmarkOfferQueueCancel(b *testing.B) {
	for _, order := range []Order{FIFO, EDF} {
		for _, depth := range []int{10, 1000, 100_000} {
			b.Run(fmt.Sprintf("order=%v/depth=%d", order, depth), func(b *testing.B) {
				c := benchCore(b, Config{Limit: limit.Fixed(1), Depth: 1 << 20, MaxItems: 1 << 20, Order: order, Objective: time.Hour, Service: ms})
				c.Offer(0, Request{Deadline: Never})
				places := make([]*Waiter, depth)
				for i := range places {
					places[i] = c.Offer(0, Request{Deadline: 24*time.Hour + time.Duration(i*7919%depth)*time.Second}).Waiter
				}
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					i = (i + 7907) % depth // anywhere in the queue
					c.Cancel(0, places[i], Client)
					places[i] = c.Offer(0, Request{Deadline: 24*time.Hour + time.Duration(i)*time.Second}).Waiter
				}
			})
		}
	}
}

// A window's work: merge, forget, derive.
// What a window costs, with the law that is asked in it: 60 slots of 50 ms at 3x, which the
// limit has to find, so that an epoch ends every few windows. Only Observe is timed: ns/window.
func BenchmarkObserve(b *testing.B) {
	for name, law := range map[string]limit.Law{"fixed": limit.Fixed(60), "auto": limit.Auto{}} {
		b.Run(name, func(b *testing.B) {
			c := benchCore(b, Config{Limit: law, Seed: 1})
			rng := rand.New(rand.NewPCG(1, 2))
			type run struct {
				since, end time.Duration
				epoch      uint32
			}
			var runs []run // in the order of their ends
			var batch Batch
			var free [60]time.Duration // since when each slot behind the limit is free, in turn
			now, took, n := time.Duration(0), time.Duration(0), 0
			start := func() {
				end := max(free[n%60], now) + 40*ms + time.Duration(rng.IntN(int(20*ms)))
				free[n%60] = end
				n++
				at := len(runs)
				runs = append(runs, run{})
				for ; at > 0 && runs[at-1].end > end; at-- {
					runs[at] = runs[at-1]
				}
				runs[at] = run{now, end, c.Epoch()}
			}
			granted := func() {
				for w := c.Next(); w != nil; w = c.Next() {
					if w.Verdict() == Admitted {
						start()
					}
				}
			}
			for b.Loop() {
				for range 180 { // 50 ms at 3600/s
					now += 50 * ms / 180
					for len(runs) > 0 && runs[0].end <= now {
						r := runs[0]
						runs = runs[1:]
						batch.AddSample(Sample{Service: now - r.since, Hold: now - r.since, Cost: 1, Epoch: r.epoch})
						c.Release(now, End{Outcome: Completed})
						granted()
					}
					if d := c.Offer(now, Request{Deadline: Never, Arrival: now}); d.Verdict == Admitted {
						start()
					}
				}
				at := time.Now()
				c.Observe(now, &batch)
				took += time.Since(at)
				granted()
				batch.Reset()
			}
			b.ReportMetric(float64(took)/float64(b.N), "ns/window")
			b.ReportMetric(float64(c.Stats(now).LimitChanges)/float64(b.N), "moves/window")
			b.ReportMetric(float64(c.limit), "limit")
		})
	}
}

func BenchmarkObserveDerive(b *testing.B) {
	for name, f := range map[string]func(float64) float64{"fixed": fixedAt(0.05), "exponential": exponentialAt(0.05)} {
		b.Run(name, func(b *testing.B) {
			c := benchCore(b, Config{Limit: limit.Fixed(60)})
			var batch Batch
			for i := range 60 {
				s := time.Duration(f((float64(i)+0.5)/60) * float64(time.Second))
				batch.Add(s, s, 1, 0)
			}
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 50 * ms
				c.Observe(now, &batch)
			}
		})
	}
}

func BenchmarkStats(b *testing.B) {
	c := benchCore(b, Config{Limit: limit.Fixed(60)})
	b.ReportAllocs()
	for b.Loop() {
		c.Stats(0)
	}
}

// Where sizes are trusted an offer walks over its line. Each newcomer is longer than all
// that wait, or is due before them and takes the place of the last.
func BenchmarkOfferSized(b *testing.B) {
	for _, waiting := range []int{10, 100, 1000} {
		for _, newcomer := range []string{"refused", "displaces"} {
			b.Run(fmt.Sprintf("waiting=%d/%s", waiting, newcomer), func(b *testing.B) {
				c := benchCore(b, Config{Limit: limit.Fixed(4), Objective: time.Hour, Service: ms})
				var batch Batch
				for i := range 30 {
					batch.Add(time.Duration(1+i)*ms, time.Duration(1+i)*ms, 1, 1+i)
				}
				c.Observe(0, &batch)
				for range 4 {
					c.Offer(0, Request{Deadline: Never, Size: 100})
				}
				const each = 10_000 // ms
				due := time.Duration(waiting) * each / 4 * ms
				for range waiting {
					c.Offer(0, Request{Deadline: due + 10*time.Second, Size: each})
				}
				size, earlier := 2*each, time.Duration(0)
				if newcomer == "displaces" {
					size, earlier = each, 1
				}
				deadline := due + 10*time.Second
				b.ReportAllocs()
				for b.Loop() {
					deadline -= earlier // of equal ones the last gives way
					d := c.Offer(0, Request{Deadline: deadline, Size: size})
					if (d.Verdict == Refused) != (newcomer == "refused") {
						b.Fatalf("%+v with %d waiting", d, c.waiting)
					}
					for w := c.Next(); w != nil; w = c.Next() {
						c.Recycle(w)
					}
				}
			})
		}
	}
}
