package limit_test

import (
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// blocks plays windows of 50 ms in which 30 are admitted, of which the part ends: the rest never does. It
// returns how many blocks ended in so long a time, and how often the law said that it searches.
func blocks(law limit.Auto, part float64, delayed bool, long time.Duration) (marks, searches int) {
	state := law.Begin(1)
	n, _ := law.Start()
	var cur, prev limit.Epoch
	for range long / (50 * msec) {
		cur.Length += 50 * msec
		cur.Admitted += 30
		cur.Arrived += 60
		if delayed {
			cur.Delayed += 30
		}
		cur.InFlight = float64(n)
		cur.Age = cur.Length / 2
		cur.Ended, cur.Samples, cur.Served, cur.Mean, cur.Spread = 0, 0, 0, 0, 0
		prev.Ended = part * prev.Admitted
		prev.Samples, prev.Served, prev.Mean, prev.Spread = prev.Ended, prev.Ended, 50*msec, 50*msec
		w := limit.Window{
			Length: 50 * msec, Objective: 400 * msec, Arrived: 60, Delayed: cur.Delayed, Peak: n, Running: n,
			Ended: 30, Samples: 30, Mean: 50 * msec, Own: 50 * msec, Epochs: [2]limit.Epoch{cur, prev},
		}
		m := state.Next(n, &w)
		if m.Search {
			searches++
		}
		if n = m.Limit; m.Mark {
			marks++
			cur, prev = limit.Epoch{}, cur
		}
	}
	return marks, searches
}

// A block is judged when 95 % of it has ended; but where a tenth never does, the law waits for ten
// objectives at first, and then for twenty service times, and not for ever.
func TestAutoGoesOnWhereSomethingNeverEnds(t *testing.T) {
	all, _ := blocks(limit.Auto{}, 1, true, 10*time.Second)
	some, _ := blocks(limit.Auto{}, 0.9, true, 10*time.Second)
	if all < 100 || some < 4 || some > 10 {
		t.Errorf("in 10 s %d blocks end where all work does, and %d where a tenth does not; want more than 100, and 4 to 10", all, some)
	}
}

// While more waits than the limit lets in and nothing is known, the law says that it searches, and
// no longer when it has found what there is; where nobody waits it has not looked yet.
func TestAutoSearches(t *testing.T) {
	if _, n := blocks(limit.Auto{}, 1, false, time.Second); n != 20 {
		t.Errorf("with nobody waiting it searches in %d of 20 windows", n)
	}
	// The time never rises here, whatever the limit: the search ends at the top alone.
	if _, n := blocks(limit.Auto{Max: 40}, 1, true, 20*time.Second); n < 10 {
		t.Errorf("in an overload from cold it searches in %d windows, want 10 at the least", n)
	}
}
