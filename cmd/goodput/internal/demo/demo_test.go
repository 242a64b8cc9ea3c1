package demo

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/proxy"
	"github.com/goodput/goodput/limit"
)

func protect(upstream *url.URL, lim *goodput.Limiter) (*http.Server, error) {
	cfg := config.One(upstream)
	p, err := proxy.New(cfg, proxy.Options{
		Logger:     slog.New(slog.DiscardHandler),
		NewLimiter: func(goodput.Config) *goodput.Limiter { return lim },
	})
	if err != nil {
		return nil, err
	}
	return p.Server(cfg.Listeners[0]), nil
}

func TestConfigValidate(t *testing.T) {
	good := Config{Load: 3, Duration: 20 * time.Second, Limit: limit.Fixed(60)}
	if err := good.Validate(); err != nil {
		t.Fatalf("a good one: %v", err)
	}
	for _, tc := range []struct {
		set  func(*Config)
		want string
	}{
		{func(c *Config) { c.Load = 0 }, "load 0 is out of range"},
		{func(c *Config) { c.Load = -3 }, "load -3 is out of range"},
		{func(c *Config) { c.Load = 20.5 }, "load 20.5 is out of range"},
		{func(c *Config) { c.Load = math.NaN() }, "load NaN is out of range"},
		{func(c *Config) { c.Load = math.Inf(1) }, "load +Inf is out of range"},
		{func(c *Config) { c.Duration = 0 }, "duration 0s is out of range"},
		{func(c *Config) { c.Duration = 6 * time.Minute }, "duration 6m0s is out of range"},
		{func(c *Config) { c.Duration = math.MinInt64 }, "duration -"},
		{func(c *Config) { c.Limit = limit.Fixed(0) }, "limit 0 is out of range"},
		{func(c *Config) { c.Limit = limit.Fixed(1 << 40) }, "limit 1099511627776 is out of range"},
	} {
		c := good
		tc.set(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want a sentence that begins %q", err, tc.want)
		}
		if _, err := Run(t.Context(), c); err == nil {
			t.Errorf("ran with %q", tc.want)
		}
	}
}

// The whole of it, over real connections, for a second each. What the numbers
// are is this machine's business, and whether the run is void too; that they add
// up is not.
func TestDemo(t *testing.T) {
	var progress bytes.Buffer
	r, err := Run(t.Context(), Config{Load: 1.5, Duration: time.Second, Seed: 4, Limit: limit.Fixed(60), Protect: protect, Progress: &progress})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Runs) != 2 || r.Runs[0].Name != unprotected || r.Runs[1].Name != protected {
		t.Fatalf("runs: %+v", r.Runs)
	}
	direct, through := r.Runs[0].Load, r.Runs[1].Load
	if direct.Offered != through.Offered || direct.Offered == 0 {
		t.Errorf("one seed, but %d and %d arrivals", direct.Offered, through.Offered)
	}
	if direct.Refused != 0 || direct.InTime == 0 || through.InTime == 0 {
		t.Errorf("in time %d and %d, refused without a limiter %d", direct.InTime, through.InTime, direct.Refused)
	}
	for _, run := range r.Runs {
		l := run.Load
		if ends := l.Dropped + l.Completed + l.Refused + l.Failed + l.TimedOut + l.Errors + l.Aborted; ends != l.Offered {
			t.Errorf("%s: %d offered, %d ended", run.Name, l.Offered, ends)
		}
		if l.Errors+l.Failed > 0 {
			t.Errorf("%s: %d errors, %d failed, the first error: %v", run.Name, l.Errors, l.Failed, l.FirstError)
		}
		if run.Served < l.InTime {
			t.Errorf("%s: %d in time, but %d served", run.Name, l.InTime, run.Served)
		}
		for reason := range l.Reasons {
			if strings.HasPrefix(reason, "status_") {
				t.Errorf("%s: a refusal without a reason: %s", run.Name, reason)
			}
		}
	}
	if r.Runs[0].Derivation != "" || r.Runs[1].Derivation == "" {
		t.Errorf("derivations %q and %q", r.Runs[0].Derivation, r.Runs[1].Derivation)
	}
	if !strings.Contains(progress.String(), "seed 4") {
		t.Errorf("progress: %q", progress.String())
	}
}

func TestDemoInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r, err := Run(ctx, Config{Load: 0.1, Duration: 5 * time.Minute, Limit: limit.Fixed(60), Protect: protect, Progress: io.Discard})
	if err == nil && r.Void() == "" {
		t.Error("an interrupted demo has an answer")
	}
}
