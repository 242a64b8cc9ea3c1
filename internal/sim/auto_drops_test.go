package sim

import (
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// shedding is a front tier that sends each request on to one that takes 20 at once, of 50 ms, and
// refuses the rest.
func shedding(law limit.Law, rate float64) Scenario {
	return Scenario{
		Length: 40 * time.Second, Warmup: 10 * time.Second,
		Tiers: []Tier{{
			Name: "front", Slots: 10_000, Service: Dist{Kind: Fixed, Mean: ms}, Next: &Fan{Tier: 1},
			Policy: Policy{Name: "front", Core: &admission.Config{Limit: law, Objective: 400 * ms}},
		}, {
			Name: "back", Slots: 20, Service: exponential50,
			Policy: Policy{Name: "back", Core: &admission.Config{Limit: limit.Fixed(20), Objective: 400 * ms, Depth: admission.NoQueue}},
		}},
		Classes: []Class{{Name: "all", Arrivals: Arrivals{Rate: rate}, Deadlines: []Deadline{{2 * time.Second, 1}}}},
	}
}

// A sub-request that the next tier refuses is a drop at the limiter of its parent: it is told once,
// and is no service time. One that fails at its work is none.
func TestRefusedSubRequestIsADrop(t *testing.T) {
	s := shedding(limit.Fixed(100), 1600)
	s.Warmup = 0
	r := play(t, s, 1)
	front, back := r.Tiers[0].Stats, &r.Tiers[1]
	// The last window is not counted: at the end of arrivals 100 are in flight at the most.
	if refused := back.Refused; refused == 0 || front.Dropped+200 < refused || front.Dropped > refused {
		t.Errorf("%d are refused behind, and %d are drops in front", refused, front.Dropped)
	}
	if r.Total.Failed == 0 || front.Outcomes[admission.Failed] < front.Dropped {
		t.Errorf("%d drops, %d failed", front.Dropped, front.Outcomes[admission.Failed])
	}

	s = shedding(limit.Fixed(15), 200) // they fit
	s.Tiers[1].Faults = []Fault{{For: time.Hour, Share: 0.5}}
	r = play(t, s, 1)
	if n := r.Tiers[0].Stats.Dropped; n != 0 || r.Total.Failed == 0 {
		t.Errorf("%d drops where nobody is refused, of %d that failed", n, r.Total.Failed)
	}

	s = shedding(limit.Fixed(100), 1600) // one of two is refused, and one is enough
	s.Tiers[0].Next.N, s.Tiers[0].Next.Need = 2, 1
	r = play(t, s, 1)
	if front := r.Tiers[0].Stats; front.Dropped >= r.Tiers[1].Refused || front.Dropped > front.Outcomes[admission.Failed] {
		t.Errorf("%d drops, %d failed, %d refused behind", front.Dropped, front.Outcomes[admission.Failed], r.Tiers[1].Refused)
	}

	s = shedding(limit.Fixed(100), 1600) // nobody listens
	s.Tiers[1].Restarts = []Restart{{At: time.Second, Down: time.Hour}}
	r = play(t, s, 1)
	if front := r.Tiers[0].Stats; front.Dropped < 1000*39 || r.Total.InTime > 0 {
		t.Errorf("%d drops in 39 s of 1600/s with nobody behind", front.Dropped)
	}
}

// F33: a limit in front of one that refuses comes down to what that takes: 20. Each one too many has
// 1/ms refused, all that come, since who is refused frees its slot at once; so a try of one or two
// blocks every two seconds is a tenth or two of them. At a fixed limit of 100 three of four are
// refused behind. 400/s are served of the 1600, 12,000 in 30 s, +- 1 %.
func TestAutoInFrontOfALimiter(t *testing.T) {
	for seed := range uint64(3) {
		share := func(law limit.Law) (refused, served float64) {
			r := play(t, shedding(law, 1600), seed)
			back := &r.Tiers[1]
			return float64(back.Refused) / float64(back.Arrivals), float64(back.Served) / 30
		}
		fixed, most := share(limit.Fixed(100))
		auto, served := share(limit.Auto{})
		t.Logf("seed %d: %.3f refused behind, %.0f/s served; with a fixed limit %.3f, %.0f/s", seed, auto, served, fixed, most)
		if auto > fixed/2 || served < 0.96*most {
			t.Errorf("seed %d: %.3f refused behind, %.0f/s served; with a fixed limit %.3f, %.0f/s", seed, auto, served, fixed, most)
		}
	}
}
