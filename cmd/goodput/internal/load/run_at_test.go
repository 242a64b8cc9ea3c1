package load

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Two loads, one after the other: the second begins at the instant at which the window of the
// first ends, while that one waits for its last answers.
func TestRunAtFollowsWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		perTenth := make([]int, 40)
		start := time.Now()
		send := func(ctx context.Context) Answer {
			mu.Lock()
			perTenth[time.Since(start)/(100*time.Millisecond)]++
			mu.Unlock()
			return answerAfter(700 * time.Millisecond)(ctx)
		}
		first, err := New(constant(100, 2*time.Second), send)
		if err != nil {
			t.Fatal(err)
		}
		second, err := New(constant(50, 2*time.Second), send)
		if err != nil {
			t.Fatal(err)
		}
		var calm sync.WaitGroup
		calm.Go(func() {
			r := second.RunAt(t.Context(), start.Add(2*time.Second))
			balanced(t, r)
			quantileIs(t, r.Late, 1, 0)
			quantileIs(t, r.Latency, 1, 700*time.Millisecond)
			if took := time.Since(start); took != 4680*time.Millisecond { // its last is due at 3.98 s
				t.Errorf("the second ended after %v", took)
			}
		})
		calm.Go(func() { balanced(t, first.RunAt(t.Context(), start)) })
		time.Sleep(time.Second)
		if l := second.Live(); l.Elapsed != 0 || l.Offered != 0 {
			t.Errorf("the second has begun: %+v", l)
		}
		calm.Wait()
		for i, n := range perTenth {
			if want := 10 - 5*(i/20); n != want {
				t.Errorf("tenth %d: %d sent, want %d", i, n, want)
			}
		}
	})
}

// What was due before the call is sent at once, and is late.
func TestRunAtTooLateSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(constant(100, time.Second), answerAfter(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		r := g.RunAt(t.Context(), time.Now().Add(-500*time.Millisecond))
		balanced(t, r)
		quantileIs(t, r.Late, 1, 500*time.Millisecond)
		if r.Sent != 100 || r.Void() == "" {
			t.Errorf("sent %d, void %q", r.Sent, r.Void())
		}
	})
}
