package goodputhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// proxy serves a reverse proxy with a Transport behind a Server, in front of backend.
func proxy(t *testing.T, front *goodput.Limiter, dep *Dependency, b http.RoundTripper, backend string) *httptest.Server {
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, &Server{Limiter: one(front), OverloadStatus: 429, Next: &httputil.ReverseProxy{
		Transport: to(dep, b), ErrorHandler: ProxyError, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(target) },
	}})
}

// The refusal of an upstream comes through with marker and hint, over both protocols on
// both sides, and is a failure for both limiters.
func TestProxyPassesTheRefusalOfItsUpstreamOn(t *testing.T) {
	behind := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, behind, 1)
	upstream := start(t, Handler(behind, nothing))
	for down, client := range clients(t) {
		for up, b := range bases(t) {
			t.Run(down+" to "+up, func(t *testing.T) {
				front, dep := limiter(1, goodput.Config{}), &Dependency{Limiter: limiter(1, goodput.Config{})}
				srv := proxy(t, front, dep, b, upstream.URL)
				res, err := client.Get(srv.URL)
				if err != nil {
					t.Fatal(err)
				}
				text(t, res)
				after, _ := strconv.Atoi(res.Header.Get("Retry-After"))
				if res.StatusCode != 503 || res.Header.Get("Goodput-Rejected") != "queue_full" || after < 1 {
					t.Errorf("%d %v", res.StatusCode, res.Header)
				}
				outcomes(t, front, map[goodput.Outcome]uint64{goodput.Failed: 1})
				outcomes(t, dep.Limiter, map[goodput.Outcome]uint64{goodput.Failed: 1})
			})
		}
	}
}

// What the Transport did not send is refused as the Server would, with its status.
func TestProxyRefusesWhatItsTransportDidNotSend(t *testing.T) {
	full := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, full, 1)
	upstream := start(t, nothing)
	for _, c := range []struct {
		name   string
		dep    *Dependency
		header string
		status int
		marker string
		hint   bool
	}{
		{"no slot", &Dependency{Limiter: full}, "", 429, "queue_full", true},
		{"throttled", &Dependency{Throttle: refusing(t)}, "", 503, "unavailable", true},
		{"no time for the way", &Dependency{HopMargin: patience}, "Expect-Within: 1", 503, "no_budget", false},
	} {
		for proto, client := range clients(t) {
			t.Run(c.name+" "+proto, func(t *testing.T) {
				front := limiter(1, goodput.Config{})
				srv := proxy(t, front, c.dep, bases(t)[proto], upstream.URL)
				r, _ := http.NewRequest(http.MethodGet, srv.URL, nil)
				if c.header != "" {
					r.Header.Set("Expect-Within", "1")
				}
				// A throttle lets one call in ten pass: ask until it keeps one.
				var res *http.Response
				until(t, "a refusal", func() bool {
					var err error
					if res, err = client.Do(r); err != nil {
						t.Fatal(err)
					}
					text(t, res)
					return res.StatusCode != 200
				})
				if res.StatusCode != c.status || res.Header.Get("Goodput-Rejected") != c.marker ||
					(res.Header.Get("Retry-After") != "") != c.hint {
					t.Errorf("%d %v", res.StatusCode, res.Header)
				}
				if n := settled(t, front).Outcomes[goodput.Failed]; n != 1 {
					t.Errorf("%d failed", n)
				}
			})
		}
	}
}

// What may have been executed has no marker.
func TestProxyErrorWithoutAMarker(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		marker string
	}{
		{errNet, 502, ""},
		{context.DeadlineExceeded, 504, ""},
		{context.Canceled, 502, ""},
		{&url.Error{Op: "Get", Err: context.DeadlineExceeded}, 504, ""},
		{&Unsent{Reason: goodput.Deadline}, 504, "deadline"},
		{fmt.Errorf("wrapped: %w", &Unsent{Reason: goodput.Unavailable, Err: retry.ErrThrottled}), 503, "unavailable"},
	} {
		w := httptest.NewRecorder()
		ProxyError(w, request(), c.err)
		if w.Code != c.status || w.Header().Get("Goodput-Rejected") != c.marker {
			t.Errorf("%v: %d %v", c.err, w.Code, w.Header())
		}
	}
	w := httptest.NewRecorder()
	ProxyError(w, request(grpcKind), &Unsent{Reason: goodput.NoBudget})
	if w.Code != 200 || w.Header().Get("Grpc-Status") != "14" || w.Header().Get("Grpc-Retry-Pushback-Ms") != "-1" {
		t.Errorf("gRPC: %d %v", w.Code, w.Header())
	}
}

func TestUnsentSaysWhy(t *testing.T) {
	throttle := refusing(t)
	for _, c := range []struct {
		u    *Unsent
		want string
		is   error
	}{
		{&Unsent{Dependency: "pay", Reason: goodput.Deadline}, "goodputhttp: the request to pay was not sent: its deadline has passed", context.DeadlineExceeded},
		{&Unsent{Dependency: "pay", Reason: goodput.NoBudget, Left: 400_000}, "goodputhttp: the request to pay was not sent: of its deadline 400µs are left after the way there and back, at least 1ms are needed", context.DeadlineExceeded},
		{&Unsent{Dependency: "pay", Reason: goodput.Unavailable, Err: throttle.Err()}, "goodputhttp: the request to pay was not sent: " + throttle.Err().Error(), retry.ErrThrottled},
	} {
		if c.u.Error() != c.want || !errors.Is(c.u, goodput.ErrRejected) || !errors.Is(c.u, c.is) {
			t.Errorf("%v, want %s", c.u, c.want)
		}
	}
}
