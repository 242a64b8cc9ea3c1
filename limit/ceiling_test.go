package limit

import (
	"math"
	"math/rand/v2"
	"testing"
)

func open() ceiling { return ceiling{at: math.Inf(1), since: dropsEvery} }

// A refusal is a block of which a part was refused, at that limit, and where that leaves the
// ceiling. Each lasts half a second.
type refusal struct{ dropped, limit, want float64 }

func (c *ceiling) script(t *testing.T, name string, blocks ...refusal) {
	t.Helper()
	for i, b := range blocks {
		if c.refused(b.dropped, b.dropped, b.limit, 0.5); math.Abs(c.at-b.want) > 1e-9 && c.at != b.want {
			t.Fatalf("%s, block %d, %v refused at %v: %v, want %v", name, i, b.dropped, b.limit, c.at, b.want)
		}
	}
}

// What the resource refuses is taken off at once, and not again within two seconds.
func TestDropsCut(t *testing.T) {
	c := open()
	c.script(t, "a cut that helps",
		refusal{0.02, 100, math.Inf(1)}, // as many as a restart refuses
		refusal{0.4, 100, 60},           // the part that was too much
		refusal{0.4, 100, 60},           // what was admitted before: no second cut
		refusal{0, 60, 60},              // it helped, and stays for two seconds
		refusal{0, 60, 60},
		refusal{0, 60, 63},         // by 5 %, since 60 are right
		refusal{0, 63, 63 * 1.065}, // by more, as long as nothing is refused
		refusal{0.1, 67, 63},       // 2 s after the last; a tenth is too much, but 63 were not
		refusal{0.1, 67, 63},
		refusal{0.1, 63, 63}, // 63 are too many as well
		refusal{0.1, 63, 63},
		refusal{0.2, 63, 50.4},  // 2 s
		refusal{0.13, 50, 50.4}, // so much is left after a cut: half of it is the base, and 2 % and .0975 are tolerated
		refusal{0.11, 50, 50.4},
		refusal{0.11, 50, 50.4},
		refusal{0.11, 50, 50.4 * 1.05},
	)
	c = open()
	c.script(t, "an outage",
		refusal{0.9, 100, 10},
		refusal{0.9, 9, 10}, // refused as before: it did not help
		refusal{0.9, 9, 10},
		refusal{0.9, 9, 10},
		refusal{3, 10, 1}, // more than all is all
		refusal{1, 1, 1},
		refusal{0, 1, 2}, // it is over: it doubles
		refusal{0, 2, 4},
		refusal{0, 4, 8},
		refusal{0, 8, 16},
		refusal{0, 16, 32},
		refusal{0, 32, 64}, // to half of the 100, and past it by less than a doubling
		refusal{0, 64, 67.2},
		refusal{0.9, 30, 30 * (1 - 0.9 + 0.375)}, // what is in force is cut, if it is less
	)
	c = open()
	c.refused(0.9, 0.9, 100, 0.5)
	blocks := 0
	for ; !math.IsInf(c.at, 1); blocks++ {
		c.refused(0, 0, 9, 0.5)
	}
	// From 10, by 5 % and then by 1.3 times as much each, to eight times 10: 1.05 x 1.065 x
	// 1.085 x 1.11 x 1.14 x 1.19 x 1.24 x 1.31 x 1.41 x 1.53 = 5.9, and 1.69 more is above 8.
	if blocks != 3+11 { // and it stays for 2 s at first
		t.Errorf("it is gone after %d blocks, want 14", blocks)
	}
}

// A resource of which one of ten parts is dead refuses a tenth whatever the limit is. Cut
// after cut would lead to nothing; here the part is known after one or two, and what is
// lost is had back. With a half too, and where the number varies by chance. A resource
// that refuses nine of ten is down, and one request at a time finds out when it no longer is.
func TestDropsThatAreNoReasonDoNotSpiral(t *testing.T) {
	for _, c := range []struct{ dropped, block, mean float64 }{
		{0.1, 0.1, 0.98}, {0.1, 0.4, 0.98}, {0.1, 1, 0.97}, {0.5, 0.1, 0.97}, {0.9, 0.1, 0},
	} {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, 5))
			k, sum := open(), 0.0
			n := int(600 / c.block)
			limit, before := 60.0, 60.0
			for range n {
				share := c.dropped
				if seed > 0 { // seed 0 is that it never varies
					share += math.Sqrt(c.dropped*(1-c.dropped)/limit) * r.NormFloat64()
				}
				k.refused(max(share, 0), max(share, 0), before, c.block) // a block is judged when the next is over
				before, limit = limit, math.Floor(min(k.at, 60))
				sum += limit / 60
			}
			t.Logf("%v of it, blocks of %v s, seed %d: mean %.3g", c.dropped, c.block, seed, sum/float64(n))
			if mean := sum / float64(n); mean < c.mean || c.mean == 0 && limit > 4 {
				t.Errorf("%v of it, blocks of %v s, seed %d: mean %.3g, %v at the end", c.dropped, c.block, seed, mean, limit)
			}
		}
	}
}

// What the limit is the reason for goes away with it: a resource that takes 60 of what is sent
// and refuses the rest has less than a tenth to refuse. That is what rising costs, by 5 and then
// 6.5 % before the first is seen.
func TestDropsFindTheLimit(t *testing.T) {
	for _, block := range []float64{0.1, 0.3, 0.7} {
		k, sum, lost, n := open(), 0.0, 0.0, 0.0
		limit, before := 200.0, 200.0
		for range int(120 / block) {
			share := max(0, 1-60/before)
			k.refused(share, share, before, block)
			before, limit = limit, math.Floor(min(k.at, 200))
			sum, lost, n = sum+limit, lost+share, n+1
		}
		t.Logf("blocks of %v s: mean %.3g, %.2g refused", block, sum/n, lost/n)
		if mean := sum / n; mean < 57 || mean > 69 || lost/n > 0.1 {
			t.Errorf("blocks of %v s: mean %.3g, want 60 and 15 %% at the most; %.2g refused", block, mean, lost/n)
		}
	}
}

// Pressure holds the limit from 0.8 on, lowers it beyond 1, by a tenth of itself a block at the
// most, and lets it rise again below.
func TestPressure(t *testing.T) {
	c := open()
	for i, step := range []struct{ level, limit, want float64 }{
		{0, 100, math.Inf(1)},
		{0.79, 100, math.Inf(1)},
		{0.8, 100, 100},
		{1, 120, 100}, // nothing more
		{1.5, 100, 95},
		{2, 95, 85.5},
		{50, 85.5, 76.95}, // ten times too much is no more than twice
		{0.9, 76.95, 76.95},
		{0.5, 76.95, 80.7975},
		{2, 60, 54},
		{0.5, 50, 56.7},
	} {
		if c.pressed(step.level, step.limit); math.Abs(c.at-step.want) > 1e-9 && c.at != step.want {
			t.Fatalf("block %d, %v at %v: %v, want %v", i, step.level, step.limit, c.at, step.want)
		}
	}
	for range 100 {
		c.pressed(2, c.at)
	}
	if c.at != 1 {
		t.Errorf("for ever it comes to %v, want 1", c.at)
	}
	for i := 0; !math.IsInf(c.at, 1); i++ {
		if c.pressed(0.7, 100); i > 100 {
			t.Fatalf("without pressure it stays at %v", c.at)
		}
	}
}
