package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// doubles is a law that doubles its limit with each window until it is at the capacity, which
// it knows, and keeps it: slow start.
type doubles struct{ from, to int }

func (d doubles) Start() (int, error)      { return d.from, nil }
func (d doubles) Begin(uint64) limit.State { return d }
func (d doubles) Why() string              { return "" }

func (d doubles) Next(current int, _ *limit.Window) limit.Move {
	n := min(2*current, d.to)
	return limit.Move{Limit: n, Search: n < d.to}
}

// during adds up what was so in the bins from one instant to another.
func during(r *Result, from, to time.Duration, of func(*Bin) uint64) (sum float64) {
	for i := range r.Series {
		if b := &r.Series[i]; b.End > from && b.End <= to {
			sum += float64(of(b))
		}
	}
	return sum
}

// After a restart a core knows nothing and its law begins again. Nothing is let in beyond the
// limit of the moment, so that nothing waits at the resource, whatever has piled up among the
// clients; at half of the capacity nobody is refused for it, and in an overload 5 s later
// the slots have been busy for 0.95 of them.
func TestSlowStartAfterARestart(t *testing.T) {
	const back = 11 * time.Second
	for _, times := range []float64{0.5, 3} {
		for _, client := range []Retry{{}, naive} {
			for seed := range uint64(3) {
				s := plain(times, exponential50, 2*time.Second, 0).under(doubles{4, slots})
				s.Length, s.Warmup, s.Bins = 20*time.Second, 0, 400
				s.Classes[0].Retry = client
				s.Tiers[0].Slots = slots
				s.Tiers[0].Restarts = []Restart{{At: 10 * time.Second, Down: time.Second}}
				r := play(t, s, seed)
				refused := r.Total.Attempts - r.Total.Served - r.Total.Reasons[admission.Unavailable]
				inTime := during(r, back, back+5*time.Second, func(b *Bin) uint64 { return b.InTime }) / 5 / (min(times, 1) * capacity)
				t.Logf("%vx, %d attempts, seed %d: %d refused but for the restart, %.3f in time in the 5 s after it; %d in use at most, %d behind", times, client.Attempts, seed, refused, inTime, r.Tiers[0].PeakInUse, r.Tiers[0].PeakBehind)
				if r.Tiers[0].PeakInUse > slots || r.Tiers[0].PeakBehind > 0 {
					t.Errorf("%vx, seed %d: %d in use, %d wait at the resource", times, seed, r.Tiers[0].PeakInUse, r.Tiers[0].PeakBehind)
				}
				// 3,000 or 6,000 services vary by 1.8 or 1.3 %.
				if want := 0.95 - 2*0.018; inTime < want {
					t.Errorf("%vx, %d attempts, seed %d: %.3f in time in 5 s after the restart, want %.3f", times, client.Attempts, seed, inTime, want)
				}
				if most := 0.001 * float64(r.Total.Attempts); times < 1 && float64(refused) > most {
					t.Errorf("%vx, %d attempts, seed %d: %d of %d refused", times, client.Attempts, seed, refused, r.Total.Attempts)
				}
			}
		}
	}
}

// Half a minute without a request leaves the limit where it was, and a burst of ten times the
// capacity after it meets the queue of the derived depth: what fits is served, and no more runs
// than the limit.
func TestBurstAfterIdle(t *testing.T) {
	for seed := range uint64(3) {
		s := plain(0.7, exponential50, 2*time.Second, 0).under(doubles{4, slots})
		s.Length, s.Warmup, s.Bins = 45*time.Second, 0, 900
		s.Tiers[0].Slots = slots
		s.Classes[0].Arrivals.Changes = []Change{{At: 10 * time.Second}, {At: 40 * time.Second, Rate: 10 * capacity}, {At: 40*time.Second + 20*ms, Rate: 0.7 * capacity}}
		r := play(t, s, seed)
		limit, deep := slots, 0
		for _, b := range r.Series {
			if b.End > time.Second {
				limit = min(limit, b.Limit)
				deep = max(deep, b.Waiting)
			}
		}
		burst := during(r, 40*time.Second, 41*time.Second, func(b *Bin) uint64 { return b.Refused })
		t.Logf("seed %d: %d refused, %.0f of them in the second of the burst, limit %d at the least, %d waited; %d in use at most, %d behind", seed, r.Total.Refused, burst, limit, deep, r.Tiers[0].PeakInUse, r.Tiers[0].PeakBehind)
		// 240 +- 15 come in 20 ms, of which 60 get a slot, 24 after others, and 201 may wait.
		if limit != slots || r.Total.Refused > 0 || deep < 100 || r.Tiers[0].PeakInUse > slots || r.Tiers[0].PeakBehind > 0 {
			t.Errorf("seed %d: %d refused, limit %d at the least, %d waited; %d in use at most, %d behind", seed, r.Total.Refused, limit, deep, r.Tiers[0].PeakInUse, r.Tiers[0].PeakBehind)
		}
	}
}
