package sim

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/goodput/goodput/limit"
)

// A Hearsay is what a limiter is told of the cost and the size of a request where that
// is not the truth. The resource knows the truth. The zero value tells it.
type Hearsay struct {
	Cost float64 // what is told over what is true: 0.001 to 1000; 0 means 1
	Size float64 // likewise

	// CV is how much a guess varies: the coefficient of variation of a lognormal factor
	// of mean 1, drawn once for a request, on its size and, where Cost is set, on its
	// cost. 0 to 10; 0 is always the same.
	CV float64

	// Uncorrected: nobody tells the limiter the truth at the end either. Otherwise the
	// tenant is charged what the request did cost, and the service time is known as
	// that of its true size.
	Uncorrected bool
}

func (h *Hearsay) validate() error {
	within := func(f float64) bool { return f == 0 || f >= 0.001 && f <= 1000 }
	switch {
	case !within(h.Cost) || !within(h.Size):
		return fmt.Errorf("cost %v, size %v are out of range: 0.001 to 1000 times the true one, or 0 for 1", h.Cost, h.Size)
	case !(h.CV >= 0 && h.CV <= 10):
		return fmt.Errorf("cv %v is out of range: 0 to 10", h.CV)
	}
	return nil
}

// A guesser says what a limiter hears. Its zero value, as its nil, is the truth.
type guesser struct {
	Hearsay
	rand  *rand.Rand
	mu, s float64 // of the lognormal factor
}

func newGuesser(h Hearsay, r *rand.Rand) *guesser {
	if h == (Hearsay{}) {
		return nil
	}
	s2 := math.Log1p(h.CV * h.CV)
	return &guesser{Hearsay: h, rand: r, mu: -s2 / 2, s: math.Sqrt(s2)}
}

// guess sets what the limiter is told about c.
func (g *guesser) guess(c *call) {
	f := 1.0
	if g.CV > 0 {
		f = math.Exp(g.mu + g.s*g.rand.NormFloat64())
	}
	if g.Cost > 0 {
		c.toldCost = scaled(c.cost, g.Cost*f, limit.Max)
	}
	if g.Size == 0 {
		c.toldSize = scaled(c.size, f, math.MaxInt32)
	} else {
		c.toldSize = scaled(c.size, g.Size*f, math.MaxInt32)
	}
}

// scaled is n times f as a whole number of at least 1.
func scaled(n int, f float64, most int) int {
	return int(min(max(math.Round(float64(n)*f), 1), float64(most)))
}
