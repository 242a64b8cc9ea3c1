package verify

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

func TestAtOnce(t *testing.T) {
	for _, c := range []struct {
		protocol    string
		descriptors uint64
		want        int
	}{
		{"HTTP/1.1", 0, 0}, // not known
		{"HTTP/1.1", 512, 0},
		{"HTTP/1.1", 513, 257},
		{"HTTP/1.1", 4096, 3840},
		{"HTTP/1.1", load.DefaultMaxInFlight + 255, load.DefaultMaxInFlight - 1},
		{"HTTP/1.1", 1 << 62, load.DefaultMaxInFlight}, // no limit
		{"HTTP/2", 4096, 0},
	} {
		if got := atOnce(c.protocol, c.descriptors); got != c.want {
			t.Errorf("%s with %d descriptors: %d, want %d", c.protocol, c.descriptors, got, c.want)
		}
	}
}

// A run over HTTP/1.1 is bound by the descriptors of its process, one over HTTP/2 is not. The first
// request ends it.
func TestRunIsBoundByItsConnections(t *testing.T) {
	asked := make(chan struct{}, 2)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for version, protocol := range map[string]string{"1.1": "HTTP/1.1", "2": "HTTP/2"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-asked
			cancel()
		}()
		cfg := given(func(c *Config) { c.HTTP = version })
		cfg.Target = &Target{
			URL: &url.URL{Scheme: "http", Host: s.Listener.Addr().String(), Path: "/"}, addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, port: port,
		}
		r := &run{cfg: cfg, report: newReport(cfg)}
		r.network(ctx)
		if want := atOnce(protocol, descriptors()); r.report.Settings.Protocol != protocol || r.inFlight != want || protocol == "HTTP/1.1" && want == 0 {
			t.Errorf("%s: %d in flight, want %d; void %q", r.report.Settings.Protocol, r.inFlight, want, r.report.Void)
		}
	}
}

// Each load of a run has the bound: what is beyond it is not sent, and voids what it is missing from.
func TestLoadsHaveTheBound(t *testing.T) {
	cfg := given(nil)
	cfg.Target = &Target{URL: &url.URL{Scheme: "http", Host: "service"}}
	synctest.Test(t, func(t *testing.T) {
		r := &run{cfg: cfg, send: slotted(4, 8, 20*time.Millisecond).send, report: newReport(cfg), inFlight: 6}
		r.measure(t.Context())
		Judge(r.report)
		for _, s := range r.report.Steps {
			l := s.Result
			if l.Plan.MaxInFlight != 6 || s.Calm != nil && s.Calm.Plan.MaxInFlight != 6 {
				t.Errorf("%vx: %d in flight at the most, want 6", s.Load, l.Plan.MaxInFlight)
			}
			// 4 slots and 2 that wait; 100/s have 2 under way and lose none.
			if (l.Dropped > 0) != (s.Load > 1) || l.Refused > 0 {
				t.Errorf("%vx: %d were not sent, and %d were refused", s.Load, l.Dropped, l.Refused)
			}
		}
		if !strings.Contains(r.report.Void, "dropped, since 6 were in flight") {
			t.Errorf("void %q", r.report.Void)
		}
	})
}
