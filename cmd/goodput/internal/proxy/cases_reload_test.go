package proxy

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// fromFile reads a policy file, each time anew, so that nothing of one reading is in another.
func fromFile(t *testing.T, text string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "goodput.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Read(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// C093: a file that has not changed is read again and again. Quotas that are used up stay
// used up, what a limit has learned it knows, and what was counted counts.
func TestReadingTheFileAgainRefillsNothing_C093(t *testing.T) {
	const burst = 5
	policy := fmt.Sprintf(`version: 1
listen: 127.0.0.1:0
upstream: http://%s
trusted_proxies: [127.0.0.0/8]
limit: {law: auto, from: 7}
objective: 1s
tenant: {header: X-Tenant}
tenants:
  rows: [{id: acme, quota: {rate: 1/h, burst: %d}}]
`, backend(t, echo), burst)
	w := start(t, "127.0.0.1:1", nil)
	w.reconfigure(fromFile(t, policy))
	w.lim = w.proxy.Limiters()[0]
	passed := func(n int) (passed int) {
		for range n {
			req, _ := http.NewRequest("GET", w.url, nil) // the URL is one
			req.Header.Set("X-Tenant", "acme")
			res, err := w.h1.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			switch reason := res.Header.Get("Goodput-Rejected"); {
			case res.StatusCode == 200:
				passed++
			case res.StatusCode != http.StatusTooManyRequests || reason != "quota":
				t.Fatalf("%s %s", res.Status, reason)
			}
		}
		return passed
	}
	if n := passed(2 * burst); n != burst {
		t.Fatalf("%d passed of a quota of %d", n, burst)
	}
	before := w.settle("idle", idle)
	for range 100 {
		w.reconfigure(fromFile(t, policy))
		if n := passed(1); n != 0 {
			t.Fatal("a reload has refilled the quota")
		}
	}
	after := w.settle("idle", idle)
	if w.proxy.Limiters()[0] != w.lim {
		t.Error("it is another limiter")
	}
	if after.Limit != before.Limit || after.LimitWhy != before.LimitWhy || after.Derivation.Samples < before.Derivation.Samples ||
		after.Arrivals != before.Arrivals+100 {
		t.Errorf("before %+v\nafter %+v", before.Stats, after.Stats)
	}
}

// C093 under three times the load, with a reload in each twentieth of a second: never more
// than the limit is in flight, and what is refused is told so as ever.
func TestReadingTheFileAgainUnderLoad_C093(t *testing.T) {
	const limit, service = 4, 20 * time.Millisecond // 200/s
	s := newShop(func(string) time.Duration { return service })
	policy := fmt.Sprintf(`version: 1
listen: 127.0.0.1:0
upstream: http://%s
limit: %d
objective: 200ms
`, backend(t, s), limit)
	c := newCrowd(t, fromFile(t, policy))
	end := make(chan struct{})
	var fired sync.WaitGroup
	fired.Go(func() { c.fire(1, 600, end, "/x") })
	for range 40 {
		time.Sleep(50 * time.Millisecond)
		if err := c.proxy.Reconfigure(fromFile(t, policy)); err != nil {
			t.Error(err)
		}
	}
	close(end)
	fired.Wait()
	c.atRest()
	if n := s.peak(""); n > limit {
		t.Errorf("%d were in flight, the limit is %d", n, limit)
	}
	if n := len(c.all()); n != 1 {
		t.Errorf("%d limiters", n)
	}
	if c.refused.Load() < c.sent.Load()/3 {
		t.Errorf("no overload: %d of %d were refused", c.refused.Load(), c.sent.Load())
	}
}
