package load

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Attempts that overlap have headers of their own: first ones tell all of the budget, second ones
// what is left of it, whatever was written for another one. The race detector says more.
//
// wall clock: a network. A machine that is slow makes what is left less, never more.
func TestOverlappingAttemptsHaveTheirOwnHeaders(t *testing.T) {
	const budget = time.Minute
	var firsts, seconds atomic.Int64
	_, u := target(t, 250, func(w http.ResponseWriter, r *http.Request) {
		ms, err := strconv.Atoi(r.Header.Get(budgetHeader))
		switch {
		case err != nil || ms > 60_000:
			t.Errorf("told %q", r.Header.Get(budgetHeader))
		case ms == 60_000:
			firsts.Add(1)
		default:
			seconds.Add(1)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	for _, http2 := range []bool{false, true} {
		firsts.Store(0)
		seconds.Store(0)
		c := dial(t, HTTP{URL: u, Budget: budget, HTTP2: http2, Conns: 1})
		g, err := New(Plan{
			Rate: 1000, Duration: 100 * time.Millisecond, Constant: true, Deadline: budget, Attempts: 2,
			Backoff: func(int, Answer) time.Duration { return 5 * time.Millisecond },
		}, c.Send)
		if err != nil {
			t.Fatal(err)
		}
		if r := g.Run(t.Context()); r.Attempts != 200 || firsts.Load() != 100 || seconds.Load() != 100 {
			t.Errorf("HTTP/2 %v: %d attempts, %d told all of the budget and %d less, want 100 each", http2, r.Attempts, firsts.Load(), seconds.Load())
		}
	}
}

// What a second attempt tells is not written to the header that all requests share: the first
// attempt of the next one tells all of the budget.
func TestSharedHeaderIsNotWritten(t *testing.T) {
	var mu sync.Mutex
	var told []string
	_, u := target(t, 250, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r.Header.Get(budgetHeader))
	})
	c := dial(t, HTTP{URL: u, Budget: time.Second})
	for _, spent := range []time.Duration{0, 400 * time.Millisecond, 0} {
		c.Send(context.WithValue(t.Context(), spentKey{}, &call{spent: spent}))
	}
	if len(told) != 3 || told[0] != "1000" || told[1] != "600" || told[2] != "1000" {
		t.Errorf("told %q, want 1000, 600 and 1000 again", told)
	}
}
