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

	stop := make(chan struct{})
	late := lateness(stop)
	partial := fanOut(t, goodput.Gathering[string]{}, pages, ask)
	whole := fanOut(t, goodput.Gathering[string]{Min: parts}, 20, ask)
	close(stop)
	slices.Sort(partial.came)

	figure(t, "partial", "%d of %d pages within %v: %.3f; parts: median %d, fewest %d of %d; took p50 %s, p99 %s",
		partial.inTime, pages, pageBudget, float64(partial.inTime)/pages,
		partial.came[pages/2], partial.came[0], parts, millis(partial.quantile(0.5)), millis(partial.quantile(0.99)))
	figure(t, "all or nothing", "%d of %d pages complete", whole.complete, 20)
	if partial.failed > 0 {
		t.Errorf("%d parts failed: they can only be late", partial.failed)
	}
	if behind := <-late; behind > pageBudget/20 { // moves no page by more than 5 % of its budget
		t.Logf("void: timers ran %v late at p99, more than %v; the figures are not judged", behind, pageBudget/20)
		return
	}
	if partial.inTime*100 < pages*99 {
		t.Errorf("%d of %d pages within the budget, want 99 %%", partial.inTime, pages)
	}
	// One part in a hundred is slow. A page misses ten or more once in 10^7 (binomial): that
	// would be late for another reason.
	if partial.came[0] <= parts-10 {
		t.Errorf("a page had %d of %d parts", partial.came[0], parts)
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
	mu       sync.Mutex
	inTime   int // returned before the deadline
	complete int
	failed   int // parts that failed for another reason than time
	came     []int
	took     []time.Duration
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
	got, err := goodput.Gather(ctx, g, parts, ask)
	took := time.Since(start)
	if waited := got.Wait(ctx); waited != nil && !errors.Is(waited, context.DeadlineExceeded) {
		t.Error(waited)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if took < pageBudget {
		o.inTime++
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

// lateness measures, until stop is closed, how late a timer of a millisecond runs at p99: by
// so much the machine is too busy for figures in milliseconds.
func lateness(stop <-chan struct{}) <-chan time.Duration {
	result := make(chan time.Duration, 1)
	go func() {
		var late []time.Duration
		for {
			due := time.Now().Add(time.Millisecond)
			select {
			case <-time.After(time.Millisecond):
				late = append(late, time.Since(due))
				continue
			case <-stop:
			}
			slices.Sort(late)
			result <- late[len(late)*99/100]
			return
		}
	}()
	return result
}
