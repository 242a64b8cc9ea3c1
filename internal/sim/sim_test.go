package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

const ms = time.Millisecond

// plain is one service of 60 slots and 50 ms, offered so many times its capacity.
func plain(times float64, service Dist, deadline time.Duration) Scenario {
	c := Class{Arrivals: Arrivals{Rate: times * 1200}, Patience: Vanishes}
	if deadline > 0 {
		c.Deadlines = []Deadline{{deadline, 1}}
	}
	return Scenario{
		Length: 65 * time.Second, Warmup: 5 * time.Second,
		Tiers: []Tier{{
			Policy:  Policy{Name: "goodput", Core: &admission.Config{Limit: limit.Fixed(60), Objective: 400 * ms}},
			Service: service,
		}},
		Classes: []Class{c},
	}
}

var exponential50 = Dist{Kind: Exponential, Mean: 50 * ms}

func TestTry(t *testing.T) {
	s := plain(3, exponential50, 2*time.Second)
	r, err := Run(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	show(r)
	for _, n := range Baselines {
		p, err := Named(n, 60, 480, exponential50)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s.With(p), 1)
		if err != nil {
			t.Fatal(err)
		}
		show(r)
	}
}

func show(r *Result) {
	q := func(h interface {
		Quantile(float64) (time.Duration, bool)
	}, q float64,
	) time.Duration {
		d, _ := h.Quantile(q)
		return d.Round(ms)
	}
	fmt.Printf("%-18s ratio %.4f requests %d intime %d late %d refused %d failed %d p50 %v p99 %v told %v peak %d cap %.1f ended %v\n",
		r.Policy, r.Ratio(), r.Total.Requests, r.Total.InTime, r.Total.Late, r.Total.Refused, r.Total.Failed,
		q(&r.Total.Latency, .5), q(&r.Total.Latency, .99), q(&r.Total.Told, .5), r.Tiers[0].PeakQueue, r.Capacity, r.Ended)
}

func BenchmarkPlain(b *testing.B) {
	s := plain(0.9, exponential50, 2*time.Second)
	s.Length = 5*time.Second + time.Duration(float64(b.N)/1080*1e9)
	b.ReportAllocs()
	b.ResetTimer()
	r, err := Run(s, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.Total.Requests)/b.Elapsed().Seconds(), "requests/s")
}
