package admission

import (
	"math/rand/v2"
	"testing"

	"github.com/goodput/goodput/limit"
)

// I17: over any time in which somebody of a priority waits it is granted its reserve of
// all that is granted, less a few requests. What all reserves have earned grows only
// while none has enough for its first, and is then less than the largest request of each; it
// is told at the next grant, which may be the largest of all.
func TestReserveBound(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		reserve := []Reserve{
			{Background: 0.2},
			{Default: 0.3, Sheddable: 0.3, Background: 0.3},
			{Critical: 0.1, Sheddable: 0.5},
			{Critical: 0.2, Default: 0.2, Sheddable: 0.2, Background: 0.2},
		}[seed%4]
		var all []*sender
		slack, largest := 0.0, 0.0
		for p := Critical; p <= Background; p++ {
			s := &sender{id: p.String(), weight: 1, most: 1 + rng.IntN(20), peers: int(p), prio: p}
			slack += float64(s.most)
			largest = max(largest, float64(s.most))
			all = append(all, s)
		}
		var tenants *Tenants
		if seed%2 == 0 {
			tenants = &Tenants{}
		}
		m := newMarket(t, Config{Limit: limit.Fixed(100), Tenants: tenants, Reserve: reserve}, seed, all...)
		for range 5000 { // until it is known what a request costs: a reserve saves up eight
			m.refill(0)
			m.end()
		}
		var ahead, peak [priorities]float64 // of what is granted before its reserve, and the most of that
		m.on = func(s *sender, cost int) {
			for i, r := range reserve.of() {
				if all[i].waits == 0 {
					peak[i] = ahead[i]
				}
				ahead[i] -= r * float64(cost)
				if all[i] == s {
					ahead[i] += float64(cost)
				}
				peak[i] = max(peak[i], ahead[i])
				if short := peak[i] - ahead[i]; short > slack+largest {
					t.Fatalf("seed %d, %+v: %s is short of %v, at most %v", seed, reserve, Priority(i+1), short, slack+largest)
				}
			}
		}
		for range 20_000 {
			m.refill(0)
			m.end()
		}
	}
}
