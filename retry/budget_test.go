package retry

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Must hold: everything fails, and a client that makes 100 calls per second sends at
// most 1.1 attempts for each.
func TestBudgetBoundsAmplification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{}
		var wg sync.WaitGroup
		for range 6000 {
			wg.Go(func() { _ = p.Do(t.Context(), fails) })
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		s := p.Stats()
		if got := float64(s.Attempts) / float64(s.Calls); got > 1.1 || got < 1.09 {
			t.Errorf("%d attempts for %d calls: x %.4f, want at most 1.1 and nearly that", s.Attempts, s.Calls, got)
		}
	})
}

// One budget for two policies, and each of its knobs.
func TestBudgetKnobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spend := func(b *Budget) (n int) {
			for b.Spend() {
				n++
			}
			return n
		}
		calls := func(b *Budget, n int) *Budget {
			for range n {
				b.Request()
			}
			return b
		}
		for _, row := range []struct {
			name string
			b    *Budget
			want int
		}{
			{"none", calls(&Budget{}, 1000), 100},
			{"the reserve", calls(&Budget{}, 10), 10},
			{"Ratio", calls(&Budget{Ratio: 0.5}, 1000), 500},
			{"Reserve", calls(&Budget{Reserve: 3}, 10), 3},
		} {
			if got := spend(row.b); got != row.want {
				t.Errorf("%s: %d retries, want %d", row.name, got, row.want)
			}
		}
		short, long := calls(&Budget{Window: time.Second}, 200), calls(&Budget{}, 200)
		time.Sleep(2 * time.Second)
		if a, b := short.Left(), long.Left(); a != 10 || b != 20 {
			t.Errorf("Window: %v and %v left, want the reserve of 10 and 20", a, b)
		}
		shared := &Budget{Reserve: 2}
		one, two := &Policy{Budget: shared}, &Policy{Budget: shared}
		_, _ = one.Do(t.Context(), fails), two.Do(t.Context(), fails)
		if s := two.Stats(); s.Stops[StopRetriesSpent] != 1 || s.Budget.Calls != 2 || s.Budget.Left != 0 {
			t.Errorf("shared: %+v", s)
		}
	})
}

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Policy{PerAttempt: time.Second, Total: 4 * time.Second}
		_ = p.Do(t.Context(), fails)
		_ = p.Do(t.Context(), func(context.Context, int) error { return nil })
		want := `attempts: at most 3, the n-th retry after 0 to min(50ms x 2^(n-1), 10s), each within 1s, all within 4s
hints: a server is waited for up to 1m0s
nested: one attempt inside an attempt of a call outside
budget: 2 of max(0.1 x 2 calls, 10) retries in 10s, 8 left
so far: 2 calls, 4 attempts made by 2 of them (x 2.000)
calls ended: 1 exhausted, 1 answered
`
		if got := p.Explain(); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
		q := &Policy{Multiply: true}
		want = `attempts: at most 3, the n-th retry after 0 to min(50ms x 2^(n-1), 10s)
hints: a server is waited for up to 1m0s
nested: attempts multiply with those of a call outside
budget: 0 of max(0.1 x 0 calls, 10) retries in 10s, 10 left
so far: 0 calls, 0 attempts made by 0 of them (x 1.000)
`
		if got := q.Explain(); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	})
}
