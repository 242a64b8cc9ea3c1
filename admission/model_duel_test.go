package admission

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var modelSeed = flag.Uint64("model.seed", 0, "of the random operations against the model; 0 is the default one")

// TestModel plays 400,000 random operations, or 50,000 under the race
// detector and with -short.
func TestModel(t *testing.T) {
	steps := 400_000
	if raceEnabled || testing.Short() {
		steps = 50_000
	}
	seed := uint64(20261130)
	if *modelSeed != 0 {
		seed = *modelSeed
	}
	t.Logf("-model.seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]int{}
	for done := 0; done < steps; {
		d, err := newDuel(rng.IntN)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for range 2000 {
			if err := d.step(); err != nil {
				t.Fatalf("-model.seed %d, step %d, %v", seed, done, d.story(err))
			}
			seen[d.core.order.String()]++
			if d.core.overload {
				seen["overload"]++
			}
			seen["sizes "+d.core.derivation.Sizes.String()]++
			done++
		}
		if err := d.finish(); err != nil {
			t.Fatalf("-model.seed %d, step %d, %v", seed, done, d.story(err))
		}
		for r, n := range d.core.counts.refusals {
			seen[Reason(r).String()] += int(n)
		}
		for what, n := range d.model.seen {
			seen[what] += n
		}
	}
	// A comparison of what never happens proves nothing.
	for _, what := range []string{
		"fifo", "newest_first", "edf", "overload", "queue_full", "bytes_full", "too_costly", "too_large",
		"no_budget", "shed", "displaced", "wait_bound", "unavailable", "draining", "deadline", "doomed", "client", "parent",
		"quota", "replaced", "parked", "a chance", "no chance", "less of a chance than others", "displaced by tag", "displaced by tag of a bucket", "shed at the door",
		"granted by reserve", "revived", "clamped", "corrected",
		"waits for the allowance", "allowed in time",
		"sizes scales", "sizes trusted", "sizes ignored", "makes nobody late",
		"somebody waits for the return", "searches", "paced", "the limit moves", "held",
	} {
		if steps >= 1_000_000 && seen[what] < 50 {
			t.Errorf("%s happened %d times in %d steps", what, seen[what], steps)
		}
	}
	t.Log(seen)
}

// FuzzCore takes its choices from bytes.
func FuzzCore(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 9))
		b := make([]byte, 600)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := newDuel(func(n int) int {
			if len(data) == 0 {
				return 0
			}
			v := int(data[0]) % n
			data = data[1:]
			return v
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			if len(data) == 0 {
				break
			}
			if err := d.step(); err != nil {
				t.Fatal(d.story(err))
			}
		}
		if err := d.finish(); err != nil {
			t.Fatal(d.story(err))
		}
	})
}
