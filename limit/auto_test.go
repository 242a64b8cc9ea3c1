package limit_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// C041: what is outside of what it may be is refused, in one sentence with the name, the value
// and what is allowed.
func TestAutoRanges_C041(t *testing.T) {
	for _, c := range []struct {
		law   limit.Auto
		start int
		says  string
	}{
		{limit.Auto{}, 20, ""},
		{limit.Auto{Shared: true}, 4, ""},
		{limit.Auto{From: 7}, 7, ""},
		{limit.Auto{From: 50_000}, 50_000, ""}, // the default of max gives way
		{limit.Auto{Max: 5}, 5, ""},
		{limit.Auto{Min: 50}, 50, ""},
		{limit.Auto{Min: 20_000}, 20_000, ""},
		{limit.Auto{Min: 3, Max: 3}, 3, ""},
		{limit.Auto{Min: 1, From: 1, Max: 1}, 1, ""},
		{limit.Auto{From: limit.Max, Min: limit.Max, Max: limit.Max}, limit.Max, ""},
		{limit.Auto{From: 1000, Max: 200}, 0, "from 1000 of the auto limit is not within its min and max, 1 to 200"},
		{limit.Auto{From: 2, Min: 3, Max: 5}, 0, "from 2 of the auto limit is not within its min and max, 3 to 5"},
		{limit.Auto{Min: 50, Max: 20}, 0, "min 50 of the auto limit is above its max 20"},
		{limit.Auto{From: -1}, 0, "from -1 of the auto limit is out of range: 1 to 1048576, or 0 for the default"},
		{limit.Auto{Min: -1}, 0, "min -1 of the auto limit is out of range: 1 to 1048576, or 0 for the default"},
		{limit.Auto{Max: -7}, 0, "max -7 of the auto limit is out of range: 1 to 1048576, or 0 for the default"},
		{limit.Auto{Max: limit.Max + 1}, 0, "max 1048577 of the auto limit is out of range: 1 to 1048576, or 0 for the default"},
		{limit.Auto{From: limit.Max + 1, Max: limit.Max}, 0, "from 1048577 of the auto limit is out of range: 1 to 1048576, or 0 for the default"},
	} {
		start, err := c.law.Start()
		says := ""
		if err != nil {
			says = err.Error()
		}
		if start != c.start || says != c.says {
			t.Errorf("%#v: %d, %q; want %d, %q", c.law, start, says, c.start, c.says)
		}
	}
}

func TestAutoString(t *testing.T) {
	for want, law := range map[string]limit.Auto{
		"auto":                       {},
		"auto(shared)":               {Shared: true},
		"auto(from 3, max 9)":        {From: 3, Max: 9},
		"auto(from 3, min 2, max 9)": {From: 3, Min: 2, Max: 9},
		"auto(min 2, shared)":        {Min: 2, Shared: true},
	} {
		if got := law.String(); got != want {
			t.Errorf("%#v is %q, want %q", law, got, want)
		}
	}
}

// From cold it finds the slots whatever it begins with, and stays a little above: within three tenths,
// on average over two minutes, and to within a tenth of that from one moment to the next. A start far
// too high takes as long as what was let in then: 1000 on 10 slots of 50 ms are 5 s, and some
// blocks have to end.
func TestAutoFinds(t *testing.T) {
	for _, capacity := range []float64{10, 60, 500} {
		for _, from := range []int{1, 20, 1000} {
			for seed := range uint64(3) {
				s := newSupply(limit.Auto{From: from}, seed, capacity, 0.05, 3*capacity/0.05)
				s.run(6 + 8*float64(from)*0.05/capacity)
				after := s.limit
				mean, deviation := s.run(120)
				t.Logf("%v slots, from %d, seed %d: %d at first, then %.1f with a deviation of %.1f", capacity, from, seed, after, mean, deviation)
				if mean < capacity || mean > 1.3*capacity+2 || deviation > 0.1*mean+0.5 {
					t.Errorf("%v slots, from %d, seed %d: limit %.1f, deviation %.1f", capacity, from, seed, mean, deviation)
				}
			}
		}
	}
}

// Each knob changes what it says it does.
func TestAutoKnobs(t *testing.T) {
	settled := func(law limit.Auto) float64 {
		s := newSupply(law, 1, 60, 0.05, 3600)
		s.run(10)
		mean, _ := s.run(30)
		return mean
	}
	free := settled(limit.Auto{})
	if free < 60 || free > 75 {
		t.Errorf("60 slots: limit %v", free)
	}
	if got := settled(limit.Auto{Max: 30}); got != 30 {
		t.Errorf("of at most 30: %v", got)
	}
	if got := settled(limit.Auto{Min: 90}); got < 90 || got > 95 {
		t.Errorf("of at least 90: %v", got)
	}
	slow := newSupply(limit.Auto{Shared: true}, 1, 60, 0.05, 3600)
	if slow.run(2); float64(slow.limit) > 0.6*free {
		t.Errorf("shared it is %v after two seconds, else %v: it should rise slowly", slow.limit, free)
	}
	// Shared falls when the resource is full of the work of others, and who has it for himself
	// does not: the time does not depend on what he does.
	others := func(law limit.Auto) float64 {
		s := newSupply(law, 1, 1e6, 0.05, 1e6)
		s.run(20)
		s.step()
		from := s.limit
		for range 60 { // 3 s, in which a queue of others adds a wait that rises
			s.service = 0.05
			s.capacity = float64(s.limit) * 0.05 / (0.05 + 0.0005*float64(s.limit))
			s.step()
		}
		return float64(s.limit) / float64(from)
	}
	if got := others(limit.Auto{Shared: true, From: 100, Max: 200}); got > 0.6 {
		t.Errorf("a queue in a shared resource leaves %.2f of the limit", got)
	}
	a, b := newSupply(limit.Auto{From: 5}, 1, 60, 0.05, 3600), newSupply(limit.Auto{From: 40}, 1, 60, 0.05, 3600)
	if a.limit != 5 || b.limit != 40 {
		t.Errorf("from 5 and 40: %d and %d", a.limit, b.limit)
	}
}

// Why it last moved has the law, the limits, the belief and the latest figures.
func TestAutoWhy(t *testing.T) {
	law := limit.Auto{Max: 500}
	s := newSupply(law, 1, 60, 0.05, 3600)
	if why := s.state.Why(); why != "" {
		t.Errorf("why it moved before it has: %q", why)
	}
	form := regexp.MustCompile(`^auto\(max 500\): \d+ to \d+, (searching|comparing)` +
		`: capacity [\d.]+ slots \([\d.]+ to [\d.]+\), service [\d.]+m?s; before that [\d.]+m?s at [\d.]+ in flight$`)
	seen := map[string]bool{}
	last := s.limit
	for range 1200 {
		s.step()
		why := s.state.Why()
		if why == "" {
			continue
		}
		m := form.FindStringSubmatch(why)
		if m == nil {
			t.Fatalf("why %q", why)
		}
		seen[m[1]] = true
		if s.limit != last && !strings.Contains(why, " to "+itoa(s.limit)+", ") {
			t.Fatalf("limit %d: why %q", s.limit, why)
		}
		last = s.limit
	}
	if len(seen) != 2 {
		t.Errorf("reasons %v, want searching and comparing", seen)
	}
	s.takes = 20
	s.run(3)
	if why := s.state.Why(); !strings.Contains(why, "the resource refused work") {
		t.Errorf("drops: why %q", why)
	}
	s = newSupply(limit.Auto{}, 1, 60, 0.05, 3600)
	s.run(5)
	s.pressure = 3
	s.run(5)
	if why := s.state.Why(); !strings.Contains(why, ", pressure: ") {
		t.Errorf("pressure: why %q", why)
	}
}

func itoa(n int) string {
	s := ""
	for ; n > 0; n /= 10 {
		s = string(rune('0'+n%10)) + s
	}
	return s
}

// The limit moves when a block ends and not in between, and a block ends with a mark.
func TestAutoMovesWithAMark(t *testing.T) {
	for _, law := range []limit.Auto{{}, {Shared: true}, {Min: 30, Max: 70}} {
		s := newSupply(law, 3, 60, 0.05, 3600)
		for i := range 2400 {
			was := s.limit
			if m := s.step(); m.Limit != was && !m.Mark {
				t.Fatalf("%v, window %d: from %d to %d without a mark", law, i, was, m.Limit)
			}
		}
		if s.marks < 200 || s.marks > 2400 {
			t.Errorf("%v: %d blocks in two minutes", law, s.marks)
		}
	}
}

// Where fewer than 30 % have to wait the limit is what it was: what is learnt in an overload is there
// after ten minutes of little load, and a burst after idle finds it (F32).
func TestAutoKeepsWhatItKnows(t *testing.T) {
	for seed := range uint64(5) {
		s := newSupply(limit.Auto{}, seed, 60, 0.05, 3600)
		s.run(20)
		found := s.limit
		s.offered = 700 // 58 % of what it can do
		s.run(0.5)      // the block at hand is half of the overload
		kept := s.limit
		if mean, deviation := s.run(600); deviation != 0 || mean != float64(kept) {
			t.Errorf("seed %d: %d, then %v with a deviation of %v at little load", seed, kept, mean, deviation)
		}
		s.offered = 10 // half a unit in use
		if mean, _ := s.run(600); mean != float64(kept) || kept < 55 {
			t.Errorf("seed %d: %d found, %d kept, %v after 10 min of next to nothing", seed, found, kept, mean)
		}
		s.offered = 3600
		if mean, _ := s.run(5); mean < 55 || mean > 90 {
			t.Errorf("seed %d: %v in the first 5 s of a burst after idle", seed, mean)
		}
	}
}

// A standstill says nothing: what was in flight then is no sample, and the limit is what it was.
func TestAutoIgnoresAStandstill(t *testing.T) {
	for seed := range uint64(5) {
		s := newSupply(limit.Auto{}, seed, 60, 0.05, 3600)
		s.run(20)
		before, marks := s.limit, s.marks
		s.still = time.Second
		s.service = 1
		s.step()
		s.service = 0.05
		for s.marks < marks+2 { // the block at hand and the one before
			if s.limit != before {
				t.Fatalf("seed %d: from %d to %d with a standstill: %s", seed, before, s.limit, s.state.Why())
			}
			s.step()
		}
		if mean, _ := s.run(10); mean < 57 || mean > 80 {
			t.Errorf("seed %d: %v after a standstill", seed, mean)
		}
	}
}

// What the resource refuses is no sample: a resource of 60 that takes 20 of them refuses at once, which
// would look like the best of all service times. The limit is at what it takes.
func TestAutoYieldsToDrops(t *testing.T) {
	for seed := range uint64(3) {
		s := newSupply(limit.Auto{}, seed, 60, 0.05, 3600)
		s.run(10)
		s.takes = 20
		s.run(5)
		mean, _ := s.run(60)
		s.takes = 1e9
		s.run(10)
		after, _ := s.run(30)
		t.Logf("seed %d: %.1f of 20, and %.1f of 60 afterwards", seed, mean, after)
		if mean < 18 || mean > 25 || after < 57 || after > 80 {
			t.Errorf("seed %d: %.1f where it takes 20, %.1f afterwards", seed, mean, after)
		}
	}
}

// The same windows have the same limits and the same reasons, and another seed another order of
// the arms.
func TestAutoFollowsItsSeed(t *testing.T) {
	limits := func(seed uint64) (all []int) {
		s := newSupply(limit.Auto{}, seed, 60, 0.05, 3600)
		s.cv = 0 // no chance but that of the law
		for range 1000 {
			s.step()
			all = append(all, s.limit)
		}
		return all
	}
	same := func(a, b []int) (n int) {
		for i := range a {
			if a[i] == b[i] {
				n++
			}
		}
		return n
	}
	a, b, c := limits(1), limits(1), limits(2)
	if n := same(a, b); n != len(a) {
		t.Errorf("the same seed: %d of %d windows are the same", n, len(a))
	}
	if n := same(a[200:], c[200:]); n > 640 {
		t.Errorf("other seeds: %d of 800 windows are the same", n)
	}
}

// An update costs some microseconds at the end of a block, every few windows, and next to nothing
// in between; it allocates nothing.
func BenchmarkAutoWindow(b *testing.B) {
	for _, law := range []limit.Auto{{}, {Shared: true}} {
		b.Run(law.String(), func(b *testing.B) {
			s := newSupply(law, 1, 60, 0.05, 3600)
			s.run(60)
			marks := s.marks
			b.ReportAllocs()
			for b.Loop() {
				s.step()
			}
			b.ReportMetric(float64(s.marks-marks)/float64(b.N), "blocks/op")
		})
	}
}

func TestAutoDoesNotAllocate(t *testing.T) {
	for _, law := range []limit.Auto{{}, {Shared: true}} {
		s := newSupply(law, 1, 60, 0.05, 3600)
		s.run(60)
		if n := testing.AllocsPerRun(1000, func() { s.step() }); n > 0 {
			t.Errorf("%v: %v allocations a window", law, n)
		}
	}
}
