package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/metrics"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

func newAdmin(cfg goodput.Config) (*goodput.Limiter, *Admin) {
	lim := goodput.New(cfg)
	return lim, New(Config{
		Limiters: func() []*goodput.Limiter { return []*goodput.Limiter{lim} },
		Proxy: metrics.Proxy{
			Open:        func() int64 { return 3 },
			MaxUpgraded: func() int { return 9 },
			Failures:    func() map[string]uint64 { return map[string]uint64{"unreachable": 0, "broken": 2} },
			Deadlines:   func() map[string]uint64 { return map[string]uint64{"cap": 7, "none": 8} },
			Listeners: func() []metrics.Listener {
				return []metrics.Listener{{
					Address: ":8080", Open: 11, Limit: 12, Accepted: 13, Errors: 14, Full: 15, FullFor: 16 * time.Second,
					Paused: 17 * time.Second, Queue: 18, QueueLimit: 19, QueueKnown: true,
				}}
			},
			Servers: func() []metrics.Server {
				return []metrics.Server{{
					Upstream: "app", Server: "http://h", Well: true, Share: 0.5, InFlight: 25, Limit: 26, Requests: 27, Elsewhere: 28,
					Failures: 29, Ejections: 30, Checks: 31, Sick: 32,
				}, {Upstream: "app", Server: "http://i", Why: "it hung up", Since: time.Now().Add(-time.Minute)}}
			},
			Traffic: func() []metrics.Traffic {
				return []metrics.Traffic{{
					Class: "chat", Mode: "stream", Requests: 33, Tunnels: 34, TunnelsTotal: 35, UpgradesRefused: 36, CutIdle: 37, CutTotal: 38,
				}}
			},
			Overflows: func() (uint64, uint64, bool) { return 20, 21, true },
			Reloads: func() metrics.Reloads {
				return metrics.Reloads{Good: true, At: time.Unix(22, 0), Done: 23, Failed: 24, Restart: true}
			},
			Door: func() goodputhttp.Stats {
				return goodputhttp.Stats{
					DeadlineErrors: map[string]uint64{"Expect-Within": 4},
					SlowBodies:     5, SlowClients: 6, BadBodies: 10, UpstreamShed: 11, Buffered: 12,
					Upgraded: 1, UpgradedTotal: 13, UpgradedRefused: 14,
				}
			},
		},
	})
}

func get(t *testing.T, h http.Handler, method, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code, w.Body.String()
}

func TestProbesFollowThePhaseAlone(t *testing.T) {
	lim, a := newAdmin(goodput.Config{Limit: limit.Fixed(1), Depth: goodput.NoQueue})
	check := func(want int, word string) {
		t.Helper()
		for _, method := range []string{"GET", "HEAD"} {
			if code, body := get(t, a, method, "/readyz"); code != want || strings.TrimSpace(body) != word {
				t.Errorf("%s /readyz: %d %q, want %d %s", method, code, body, want, word)
			}
			if code, _ := get(t, a, method, "/livez"); code != 200 {
				t.Errorf("%s /livez: %d", method, code)
			}
		}
	}
	check(503, "starting")
	a.Enter(Ready)
	check(200, "ready")
	slot, _ := lim.TryAcquire()
	if _, err := lim.Acquire(context.Background()); !errors.Is(err, goodput.ErrRejected) {
		t.Fatal("not overloaded")
	}
	check(200, "ready") // being overloaded is not being unready
	slot.Release()
	a.Enter(Draining)
	check(503, "draining")
}

func TestOnlyGetIsThere(t *testing.T) {
	_, a := newAdmin(goodput.Config{Limit: limit.Fixed(1)})
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/api/v1/state", "/version", "/"} {
		if code, body := get(t, a, "GET", path); code >= 400 && path != "/readyz" || body == "" {
			t.Errorf("GET %s: %d %q", path, code, body)
		}
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			if code, _ := get(t, a, method, path); code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, code)
			}
		}
	}
	for _, path := range []string{"/nothing", "/debug/pprof/", "/api/v1/", "//", "/metrics/../../etc/passwd"} {
		if code, _ := get(t, a, "GET", path); code < 300 {
			t.Errorf("GET %s: %d", path, code)
		}
	}
}

// A page whose name was pointed at our loopback address cannot read us.
func TestRebindingIsRefused(t *testing.T) {
	_, a := newAdmin(goodput.Config{Limit: limit.Fixed(1)})
	ask := func(local net.IP, host string) int {
		r := httptest.NewRequest("GET", "/version", nil)
		r.Host = host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: local, Port: 8431}))
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Code
	}
	loopback, open := net.IPv4(127, 0, 0, 1), net.IPv4(10, 1, 2, 3)
	for host, want := range map[string]int{
		"127.0.0.1:8431": 200, "localhost:8431": 200, "localhost": 200, "[::1]:8431": 200, "[::1]": 200, "10.0.0.1": 200,
		"": 200, "evil.example": 403, "evil.example:8431": 403, "127.0.0.1.evil.example": 403,
		"localhost.evil.example": 403, "LOCALHOST.": 403,
	} {
		if got := ask(loopback, host); got != want {
			t.Errorf("host %q on loopback: %d, want %d", host, got, want)
		}
		if got := ask(open, host); got != 200 {
			t.Errorf("host %q on an open listener: %d", host, got)
		}
	}
}

// Where the listener is open to the network, any name reads; but a page whose name was pointed at
// it cannot change anything with the operator's browser.
func TestRebindingChangesNothing(t *testing.T) {
	_, a := newAdmin(goodput.Config{Limit: limit.Fixed(1)})
	post := func(host, header, value string) int {
		r := httptest.NewRequest("POST", "/-/reload", nil)
		r.Host = host
		if header != "" {
			r.Header.Set(header, value)
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 8431}))
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Code
	}
	const there = http.StatusConflict // it has no policy file to read again
	for _, c := range []struct {
		host, header, value string
		want                int
	}{
		{"evil.example:8431", "Origin", "http://evil.example:8431", http.StatusForbidden},
		{"evil.example:8431", "Sec-Fetch-Site", "same-origin", http.StatusForbidden},
		{"10.1.2.3:8431", "Origin", "http://10.1.2.3:8431", there},
		{"goodput.monitoring.svc:8431", "", "", there}, // curl
	} {
		if got := post(c.host, c.header, c.value); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
