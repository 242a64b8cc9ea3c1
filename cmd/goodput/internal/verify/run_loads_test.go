package verify

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// A run has the process set up for its generator as long as it lasts. The first request ends it.
func TestRunIsTuned(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	t.Setenv("GOMAXPROCS", "") // Setenv sets it back; Unsetenv alone would not
	os.Unsetenv("GOMAXPROCS")
	runtime.SetDefaultGOMAXPROCS()
	before := runtime.GOMAXPROCS(0)
	meanwhile := make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case meanwhile <- runtime.GOMAXPROCS(0):
		default:
		}
		cancel()
	}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	cfg := given(func(c *Config) { c.HTTP = "1.1" })
	cfg.Target = &Target{
		URL: &url.URL{Scheme: "http", Host: s.Listener.Addr().String(), Path: "/"}, addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, port: port,
	}
	r := Run(ctx, cfg)
	select {
	case got := <-meanwhile:
		if got != 2*before {
			t.Errorf("%d threads meanwhile, want twice %d", got, before)
		}
	default:
		t.Fatalf("no request came; void %q", r.Void)
	}
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d threads after it, %d before", got, before)
	}
}

// The load that is judged allows its generator no more than a hundredth of the objective, and the
// one after it, of which the recovery is read in bins of 100 ms, such a bin.
func TestTheCalmMayBeLateByABin(t *testing.T) {
	r := measured(t, given(func(c *Config) { c.Loads = []float64{0.5, 1.5} }), slotted(4, 8, 20*time.Millisecond).send)
	for _, s := range r.Steps {
		if got := s.Result.Plan.Tolerance; got != 20*time.Millisecond { // of 2 s
			t.Errorf("%vx: tolerance %v, want 20 ms", s.Load, got)
		}
	}
	if got := r.Steps[1].Calm.Plan.Tolerance; got != 100*time.Millisecond {
		t.Errorf("after 1.5x: tolerance %v, want 100 ms", got)
	}
}

// No two loads of a run have the same arrivals, neither those that are judged nor those after them:
// what is odd in one would be so in all.
func TestEachLoadHasArrivalsOfItsOwn(t *testing.T) {
	r := measured(t, given(func(c *Config) {
		c.Loads, c.Length, c.Calm, c.Arrivals = []float64{0.5, 1.5, 2, 3}, time.Second, time.Second, "poisson"
	}), slotted(4, 8, 20*time.Millisecond).send)
	seen := map[string]string{}
	add := func(name string, l *load.Result) {
		key := ""
		for due := range l.Plan.Arrivals() {
			if key += fmt.Sprintf("%.2f ", due.Seconds()*l.Plan.Rate); len(key) > 100 { // in units of the mean gap: the rate is not in it
				break
			}
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%s has the arrivals of %s: %s", name, other, key)
		}
		seen[key] = name
	}
	for _, s := range r.Steps {
		add(fmt.Sprintf("%vx", s.Load), s.Result)
		if s.Calm != nil {
			add(fmt.Sprintf("the calm after %vx", s.Load), s.Calm)
		}
	}
	if len(seen) != 7 {
		t.Errorf("%d loads, want 4 and 3 after those above the capacity", len(seen))
	}
}

// A load that is offered again meets a service that is calm, as the first time.
func TestALoadIsOfferedAgainToACalmService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &load.Result{Plan: load.Plan{Tolerance: 5 * time.Millisecond}, Late: load.HistogramOf(map[time.Duration]int64{time.Second: 1000})}
		cfg := given(nil)
		r := &run{cfg: cfg, report: &Report{Capacity: Capacity{PerSecond: cfg.Capacity}, Idle: Idle{P50: 20 * time.Millisecond, Max: 20 * time.Millisecond}}}
		began := time.Now()
		r.send = func(context.Context) load.Answer {
			if time.Sleep(20 * time.Millisecond); time.Since(began) < 3*time.Second {
				return refusal
			}
			return load.Answer{Status: 200}
		}
		var offered []time.Duration
		r.twice(t.Context(), 3, func() Step {
			offered = append(offered, time.Since(began))
			return Step{Result: late}
		})
		if len(offered) != 2 || offered[1] < 3*time.Second || offered[1] > 4*time.Second {
			t.Errorf("offered at %v, want at 0 and when it was calm, after 3 s", offered)
		}
	})
}
