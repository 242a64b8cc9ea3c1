package goodputhttp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// Every reason, over HTTP/1.1 and h2c, with GET, HEAD, OPTIONS and POST, and as
// a gRPC call.
func TestRefusals(t *testing.T) {
	type row struct {
		reason           goodput.Reason
		status, overload int // with OverloadStatus 503 and 429
		grpc, overloaded string
		again            bool // Retry-After
	}
	rows := []row{
		{goodput.QueueFull, 503, 429, "14", "8", true},
		{goodput.BytesFull, 503, 429, "14", "8", true},
		{goodput.Shed, 503, 429, "14", "8", true},
		{goodput.Displaced, 503, 429, "14", "8", true},
		{goodput.WaitBound, 503, 429, "14", "8", true},
		{goodput.OverQuota, 429, 429, "8", "8", true},
		{goodput.Replaced, 503, 503, "14", "14", false},
		{goodput.Unavailable, 503, 503, "14", "14", true},
		{goodput.NoBudget, 503, 503, "14", "14", false},
		{goodput.Doomed, 503, 503, "14", "14", false},
		{goodput.TooCostly, 503, 503, "8", "8", false},
		{goodput.TooLarge, 413, 413, "8", "8", false},
		{goodput.Deadline, 504, 504, "4", "4", false},
		{goodput.Draining, 503, 503, "14", "14", false},
	}
	if len(rows) != len(refusals) {
		t.Errorf("%d rows for a table of %d", len(rows), len(refusals))
	}
	for r := goodput.None + 1; !strings.HasPrefix(r.String(), "reason("); r++ {
		if refusals[r] == nil && r.Outcome() != goodput.Cancelled {
			t.Errorf("no answer for %v", r)
		}
	}
	all := clients(t)
	for _, overload := range []int{0, http.StatusTooManyRequests} {
		var rej *goodput.Rejection
		s := &Server{OverloadStatus: overload}
		srv := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.visit(w, r).refuse(rej) }))
		for _, row := range rows {
			rej = &goodput.Rejection{Outcome: row.reason.Outcome(), Reason: row.reason, RetryAfter: 2 * time.Second}
			want, code := row.status, row.grpc
			if overload != 0 {
				want, code = row.overload, row.overloaded
			}
			for proto, client := range all {
				for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost} {
					r, _ := http.NewRequest(method, srv.URL, nil)
					if method == http.MethodPost {
						r, _ = http.NewRequest(method, srv.URL, strings.NewReader("a small body"))
					}
					res, err := client.Do(r)
					if err != nil {
						t.Fatal(proto, method, row.reason, err)
					}
					at := proto + " " + method + " " + row.reason.String()
					checkRefusal(t, at, res, row.reason, want, row.again)
				}
				r, _ := http.NewRequest(http.MethodPost, srv.URL, nil)
				r.Header.Set("Content-Type", "application/grpc+proto")
				res, err := client.Do(r)
				if err != nil {
					t.Fatal(proto, row.reason, err)
				}
				checkGRPC(t, proto+" gRPC "+row.reason.String(), res, row.reason, code, row.again)
			}
		}
	}
}

func checkRefusal(t *testing.T, at string, res *http.Response, reason goodput.Reason, status int, again bool) {
	t.Helper()
	got := text(t, res)
	h := res.Header
	if res.StatusCode != status || h.Get("Goodput-Rejected") != reason.String() || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: %d %v", at, res.StatusCode, h)
	}
	if after, err := strconv.Atoi(h.Get("Retry-After")); again && (err != nil || after < 2 || after > 3) {
		t.Errorf("%s: Retry-After %q, want 2 s and up to a half more", at, h.Get("Retry-After"))
	}
	if !again && h.Get("Retry-After") != "" {
		t.Errorf("%s: Retry-After %q, but a retry cannot win", at, h.Get("Retry-After"))
	}
	if h.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%s: %q", at, h.Get("Content-Type"))
	}
	switch {
	case res.Request.Method == http.MethodHead:
		if got != "" {
			t.Errorf("%s: a body for HEAD: %q", at, got)
		}
	case len(got) < 20 || len(got) > 120 || !strings.HasSuffix(got, ".\n"):
		t.Errorf("%s: body %q", at, got)
	}
	closes := (reason == goodput.Draining || res.Request.Method == http.MethodPost) && res.ProtoMajor == 1
	if res.Close != closes {
		t.Errorf("%s: closes %v, want %v", at, res.Close, closes)
	}
}

func checkGRPC(t *testing.T, at string, res *http.Response, reason goodput.Reason, code string, again bool) {
	t.Helper()
	got := text(t, res)
	h := res.Header
	if res.StatusCode != 200 || got != "" || h.Get("Content-Type") != "application/grpc" ||
		h.Get("Grpc-Status") != code || h.Get("Grpc-Message") == "" || strings.Contains(h.Get("Grpc-Message"), "%") ||
		h.Get("Goodput-Rejected") != reason.String() || h.Get("Retry-After") != "" {
		t.Errorf("%s: %d %v %q", at, res.StatusCode, h, got)
	}
	pushback := h.Get("Grpc-Retry-Pushback-Ms")
	ms, err := strconv.Atoi(pushback)
	switch {
	case again && (err != nil || ms < 2000 || ms > 3000):
		t.Errorf("%s: pushback %q, want 2000 to 3000", at, pushback)
	case !again && reason == goodput.Draining && pushback != "":
		t.Errorf("%s: pushback %q, want none: another server may take it at once", at, pushback)
	case !again && reason != goodput.Draining && pushback != "-1":
		t.Errorf("%s: pushback %q, want -1", at, pushback)
	}
}

// Retry-After is 1 to 30 whole seconds, whatever the limiter says.
func TestRetryAfterBounds(t *testing.T) {
	for _, c := range []struct {
		after    time.Duration
		low, top int
	}{{0, 1, 1}, {time.Millisecond, 1, 2}, {time.Second, 1, 2}, {20 * time.Second, 20, 30}, {time.Hour, 30, 30}} {
		for range 20 {
			w := httptest.NewRecorder()
			s := new(Server)
			s.visit(w, request()).refuse(&goodput.Rejection{Outcome: goodput.Rejected, Reason: goodput.QueueFull, RetryAfter: c.after})
			if got, err := strconv.Atoi(w.Header().Get("Retry-After")); err != nil || got < c.low || got > c.top {
				t.Errorf("%v: %q, want %d to %d", c.after, w.Header().Get("Retry-After"), c.low, c.top)
			}
			w = httptest.NewRecorder()
			s.visit(w, request(grpcKind)).refuse(&goodput.Rejection{Outcome: goodput.Rejected, Reason: goodput.QueueFull, RetryAfter: c.after})
			if got, err := strconv.Atoi(w.Header().Get("Grpc-Retry-Pushback-Ms")); err != nil || got < 1 || got > 30_000 {
				t.Errorf("%v: pushback %q", c.after, w.Header().Get("Grpc-Retry-Pushback-Ms"))
			}
		}
	}
}

// The reasons that can be provoked from outside, by a real limiter.
func TestRefusedByALimiter(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	srv := start(t, Handler(lim, http.NotFoundHandler()))
	hold(t, lim, 1)
	refused := func(reason string, status int, change func(*http.Request)) {
		t.Helper()
		for name, client := range clients(t) {
			r, _ := http.NewRequest(http.MethodGet, srv.URL, nil)
			if change != nil {
				change(r)
			}
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text(t, res)
			if res.StatusCode != status || res.Header.Get("Goodput-Rejected") != reason {
				t.Errorf("%s: %d %v, want %d %s", name, res.StatusCode, res.Header, status, reason)
			}
		}
	}
	refused("queue_full", 503, nil)
	refused("deadline", 504, func(r *http.Request) { r.Header.Set("Expect-Within", "0") })
	if err := lim.Reconfigure(goodput.Config{Limit: limit.Fixed(1), MaxWait: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	refused("wait_bound", 503, nil)
	ctx, cancel := context.WithCancel(background)
	cancel()
	_ = lim.Drain(ctx)
	refused("draining", 503, nil)
}

// A client that asks for a problem gets one, with nothing of our insides.
func TestProblem(t *testing.T) {
	w := httptest.NewRecorder()
	s := new(Server)
	r := request("Accept: text/html, application/problem+json;q=0.9")
	s.visit(w, r).refuse(&goodput.Rejection{Limiter: "secret", Outcome: goodput.Rejected, Reason: goodput.QueueFull, RetryAfter: time.Second, Limit: 4711})
	var p struct {
		Type, Title, Detail, Reason string
		Status                      int
	}
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatal(err)
	}
	if p.Status != 503 || p.Title != "Service Unavailable" || p.Reason != "queue_full" || p.Type != "about:blank" ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%+v %v", p, w.Header())
	}
}

// gRPC-Web keeps its content type.
func TestGRPCWeb(t *testing.T) {
	w := httptest.NewRecorder()
	new(Server).visit(w, request("Content-Type: application/grpc-web+proto")).refuse(
		&goodput.Rejection{Outcome: goodput.Rejected, Reason: goodput.Doomed})
	if got := w.Header().Get("Content-Type"); got != "application/grpc-web+proto" {
		t.Errorf("%q", got)
	}
}

// A client that left is answered nothing: the connection closes.
func TestNothingIsSentToNobody(t *testing.T) {
	s := new(Server)
	srv := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.visit(w, r).refuse(&goodput.Rejection{Outcome: goodput.Cancelled, Reason: goodput.Client})
	}))
	c := dial(t, srv, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if got, err := io.ReadAll(bufio.NewReader(c)); len(got) != 0 || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if s.Stats().Left != 1 {
		t.Errorf("%d counted", s.Stats().Left)
	}
}

// C088 (envoyproxy/envoy#23843): probes are answered while the service is
// saturated and its queue full, on the same port.
func TestC088Probes(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	srv := start(t, Handler(lim, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	hold(t, lim, 1)
	for _, c := range []struct {
		method, path, agent string
		status              int
	}{
		{"GET", "/livez", "", 200},
		{"GET", "/readyz", "", 200},
		{"GET", "/healthz", "", 200},
		{"HEAD", "/health", "", 200},
		{"GET", "/any", "kube-probe/1.34", 200},
		{"GET", "/any", "GoogleHC/1.0", 200},
		{"POST", "/grpc.health.v1.Health/Check", "", 200},
		{"GET", "/any", "curl/8", 503},
		{"POST", "/livez", "", 503},
		{"GET", "/livez/x", "", 503},
		{"PUT", "/livez", "", 503},
	} {
		r, _ := http.NewRequest(c.method, srv.URL+c.path, nil)
		r.Header.Set("User-Agent", c.agent)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s %s by %q: %d, want %d", c.method, c.path, c.agent, res.StatusCode, c.status)
		}
	}
	if st := lim.Stats(); st.ExemptAdmitted != 7 {
		t.Errorf("%d exempt, want 7", st.ExemptAdmitted)
	}
}
