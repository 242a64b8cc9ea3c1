package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

const (
	parts      = 100                    // of a page: what one request fans out to
	usual      = 10 * time.Millisecond  // that a part takes
	slow       = time.Second            // that one in a hundred takes
	pageBudget = 250 * time.Millisecond // of a request
	margin     = 20 * time.Millisecond  // of it, that a Gathering keeps back
	pages      = 120
)

// A fan-out of 100 over HTTP to a service whose p99 is a second: 63 % of all pages have a
// slow part. What there is at the end of the budget is returned in time, with the rest
// cancelled, where a page that waits for all is late.
func TestGather(t *testing.T) {
	shard := httptest.NewServer(http.HandlerFunc(serveShard))
	defer shard.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: 2 * parts * 4, MaxIdleConnsPerHost: 2 * parts * 4}}
	defer client.CloseIdleConnections()
	ask := func(ctx context.Context, _ int) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, shard.URL, nil)
		if err != nil {
			return "", err
		}
		res, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close() //nolint:errcheck // it was read
		body, err := io.ReadAll(res.Body)
		return string(body), err
	}
	openAll(t, ask)

	partial := fanOut(t, goodput.Gathering[string]{}, pages, ask)
	whole := fanOut(t, goodput.Gathering[string]{Min: parts}, 20, ask)
	slices.Sort(partial.came)

	figure(t, "partial", "%d of %d pages within %v: %.3f; parts: median %d, fewest %d of %d; took p50 %s, p99 %s",
		partial.inTime, pages, pageBudget, float64(partial.inTime)/pages,
		partial.came[pages/2], partial.came[0], parts, millis(partial.quantile(0.5)), millis(partial.quantile(0.99)))
	figure(t, "all or nothing", "%d of %d pages complete", whole.complete, 20)
	if partial.failed > 0 {
		t.Errorf("%d parts failed: they can only be late", partial.failed)
	}
	if partial.starved > 0 {
		t.Logf("%d of %d pages are void: a bare timer beside them ran more than %v late", partial.starved, pages, margin/2)
	}
	if partial.starved > pages/10 {
		t.Log("void: the machine is busy with something else; the figures are not judged")
		return
	}
	if lost := pages - partial.inTime - partial.starvedLate; lost*100 > pages-partial.starved {
		t.Errorf("%d of %d pages within the budget, want 99 %%", partial.inTime, pages)
	}
	// One part in a hundred is slow, so the median page has 99. It has 97 or fewer once in
	// 13 pages (binomial), so half of them do only if parts are late for another reason.
	if partial.came[pages/2] < parts-2 {
		t.Errorf("the median page has %d of %d parts", partial.came[pages/2], parts)
	}
}

// serveShard answers after 10 ms, and after a second once in a hundred times.
func serveShard(w http.ResponseWriter, r *http.Request) {
	takes := usual
	if rand.IntN(100) == 0 {
		takes = slow
	}
	select {
	case <-time.After(takes):
		fmt.Fprint(w, "part") //nolint:errcheck // who has left hears nothing
	case <-r.Context().Done():
	}
}

// openAll opens the connections, which is not what is measured.
func openAll(t *testing.T, ask func(context.Context, int) (string, error)) {
	t.Helper()
	if _, err := goodput.Gather(context.Background(), goodput.Gathering[string]{Min: 2 * parts}, 2*parts, ask); err != nil {
		t.Fatal(err)
	}
}

// outcome is what became of the pages.
type outcome struct {
	mu          sync.Mutex
	inTime      int // returned before the deadline
	complete    int
	starved     int // beside which a bare timer of the same instant was late
	starvedLate int // of these, not in time
	failed      int // parts that failed for another reason than time
	came        []int
	took        []time.Duration
}

func (o *outcome) quantile(q float64) time.Duration {
	slices.Sort(o.took)
	return o.took[min(int(q*float64(len(o.took))), len(o.took)-1)]
}

// fanOut makes n pages, four at a time.
func fanOut(t *testing.T, g goodput.Gathering[string], n int, ask func(context.Context, int) (string, error)) *outcome {
	t.Helper()
	var o outcome
	var all sync.WaitGroup
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	for range 4 {
		all.Go(func() {
			for range todo {
				o.page(t, g, ask)
			}
		})
	}
	all.Wait()
	return &o
}

func (o *outcome) page(t *testing.T, g goodput.Gathering[string], ask func(context.Context, int) (string, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), pageBudget)
	defer cancel()
	start := time.Now()
	beside := make(chan time.Duration, 1)
	timer := time.AfterFunc(pageBudget-margin, func() { beside <- time.Since(start) - (pageBudget - margin) })
	got, err := goodput.Gather(ctx, g, parts, ask)
	took := time.Since(start)
	starved := !timer.Stop() && <-beside > margin/2
	if waited := got.Wait(ctx); waited != nil && !errors.Is(waited, context.DeadlineExceeded) {
		t.Error(waited)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case took < pageBudget:
		o.inTime++
	case starved:
		o.starvedLate++
	}
	if starved {
		o.starved++
	}
	if err == nil && len(got.Missing) == 0 {
		o.complete++
	}
	for _, m := range got.Missing {
		if m.Outcome == goodput.Failed {
			o.failed++
			t.Logf("part %d: %v", m.Index, m.Err)
		}
	}
	o.came, o.took = append(o.came, got.Came()), append(o.took, took)
}
