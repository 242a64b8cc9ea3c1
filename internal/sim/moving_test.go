package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// The two depths over a limit that moves. The laws here know the resource: what is looked at
// is the core, and not whether a law finds it.

// dithers is a law whose limit alternates between two, as one that measures what its own moves
// change does. Each lasts so many windows.
type dithers struct{ low, high, windows int }

func (d dithers) Start() (int, error)      { return d.low, nil }
func (d dithers) Begin(uint64) limit.State { return &dithering{dithers: d} }

type dithering struct {
	dithers
	n int
}

func (d *dithering) Why() string { return "" }

func (d *dithering) Next(current int, _ *limit.Window) limit.Move {
	m := limit.Move{Limit: current}
	if d.n++; d.n%d.windows == 0 {
		m.Limit, m.Mark = d.low+d.high-current, true
	}
	return m
}

// under is the scenario with another law.
func (s Scenario) under(law limit.Law) Scenario {
	p := *s.Tiers[0].Policy.Core
	p.Limit = law
	return s.With(Policy{Name: fmt.Sprint(law), Core: &p})
}

func shrinksPerMinute(r *Result) float64 {
	n, _ := shrinks(r)
	return n
}

func ratioOf(r *Result) float64      { return r.Ratio() }
func refusedShare(r *Result) float64 { return float64(r.Total.Refused) / float64(r.Total.Requests) }

// A limit that moves by 12 % every window or two, about the 60 slots of the resource, costs
// what the lower of the two leaves idle in an overload and no more: (56 + 60)/2 of 60, 0.967, and
// with 60 and 68 nothing. At 0.95 of the capacity, which is 0.98 of that, the depth nearly always
// stays what it is: with the load of the limit of a moment it would shrink 50 times a
// minute.
func TestDitheringLimit(t *testing.T) {
	for _, times := range []float64{0.95, 1.5, 3} {
		for _, service := range []Dist{fixed50, exponential50} {
			s := plain(times, service, 2*time.Second, 20*time.Second)
			s.Bins = 2000
			s.Tiers[0].Slots = slots
			still := over(t, s, 4, ratioOf)[0]
			for _, d := range []dithers{{56, 64, 1}, {56, 64, 2}, {60, 68, 2}} {
				s := s.under(d)
				s.Name = fmt.Sprint(d)
				e := over(t, s, 4, ratioOf, refusedShare, quantile(latency, 0.99), shrinksPerMinute)
				what := fmt.Sprintf("%vx %s, %d and %d for %d windows", times, service.name(), d.low, d.high, d.windows)
				t.Logf("%s: goodput ratio %v, with a fixed limit %v; refused %v, p99 %v s, shrinks %v a minute", what, e[0], still, e[1], e[2], e[3])
				want := 0.99 * still.mean
				if times > 1 {
					want *= float64(min(d.low, slots)+slots) / (2 * slots)
				}
				if e[0].mean < want-4*(e[0].se+still.se) {
					t.Errorf("%s: goodput ratio %v, want %.4f", what, e[0], want)
				}
				if e[2].mean > 0.4 {
					t.Errorf("%s: p99 %v s", what, e[2])
				}
				most, often := 0.001, 6.0
				if d.low < slots { // at a load of 0.98, a limit that stays refuses as many
					most, often = 0.008, 25
				}
				if times < 1 && e[1].mean > most {
					t.Errorf("%s: %v refused, want %v", what, e[1], most)
				}
				if e[3].mean > often {
					t.Errorf("%s: shrinks %v times a minute, want %v", what, e[3], often)
				}
			}
		}
	}
}

// An oracle is a law whose limit is what the resource has from an instant to another, and
// slots before and after.
type oracle struct {
	slots, less int
	from, to    time.Duration
}

func (o oracle) Start() (int, error)      { return o.slots, nil }
func (o oracle) Begin(uint64) limit.State { return &knowing{oracle: o} }

type knowing struct {
	oracle
	now time.Duration
}

func (k *knowing) Why() string { return "" }

func (k *knowing) Next(_ int, w *limit.Window) limit.Move {
	if k.now += w.Length; k.now >= k.from && k.now < k.to {
		return limit.Move{Limit: k.less}
	}
	return limit.Move{Limit: k.slots}
}

// The resource loses a half or two thirds of its slots for 20 s, and the limit follows within two
// windows. Who waits and no longer fits is told when that is certain, and what is left is
// used; afterwards all is as before.
func TestLimitFollowsTheSlots(t *testing.T) {
	for _, left := range []int{30, 20} {
		for _, times := range []float64{0.8, 3} {
			for _, deadline := range []time.Duration{2 * time.Second, 400 * ms, 0} {
				s := plain(times, exponential50, deadline, 0)
				s.Name = fmt.Sprint(left, deadline)
				s.Length, s.Warmup, s.Bins = 60*time.Second, 0, 600
				s.Tiers[0].Slots = slots
				s.Tiers[0].SlotSteps = []SlotStep{{20 * time.Second, left}, {40 * time.Second, slots}}
				between := func(from, to time.Duration, of float64) func(*Result) float64 {
					return func(r *Result) float64 {
						sum := uint64(0)
						for _, b := range r.Series {
							if b.End > from && b.End <= to {
								sum += b.InTime
							}
						}
						return float64(sum) / (to - from).Seconds() / of
					}
				}
				all, less := min(times, 1)*capacity, float64(left)*20
				e := over(t, s.under(oracle{slots, left, 20 * time.Second, 40 * time.Second}), 4,
					between(20*time.Second, 30*time.Second, less), between(20*time.Second, 21*time.Second, less),
					between(40*time.Second, 44*time.Second, all), between(44*time.Second, 60*time.Second, all), quantile(told, 0.5), quantile(latency, 0.99))
				t.Logf("%d left, %vx, deadline %v: first 10 s %v of it, first second %v; back: first 4 s %v, then %v; told after p50 %v s; p99 %v s", left, times, deadline, e[0], e[1], e[2], e[3], e[4], e[5])
				for i, want := range []float64{0.97, 0.9, 0.95, 0.97} { // a second of 400 services varies by 5 %
					if e[i].mean < want-4*e[i].se {
						t.Errorf("%d left, %vx, deadline %v: figure %d is %v, want %v", left, times, deadline, i, e[i], want)
					}
				}
				if e[4].mean > 0.001 || e[5].mean > 0.4 {
					t.Errorf("%d left, %vx, deadline %v: half of the refused are told after %v s, p99 %v s", left, times, deadline, e[4], e[5])
				}
			}
		}
	}
}
