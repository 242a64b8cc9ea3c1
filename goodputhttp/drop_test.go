package goodputhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
)

// drops waits for the end of the window and checks how many drops the limiter has counted, and
// that none of them is a sample.
func drops(t *testing.T, lim *goodput.Limiter, want int) {
	t.Helper()
	until(t, fmt.Sprintf("%d drops", want), func() bool { return lim.Stats().Dropped >= uint64(want) })
	s := lim.Stats()
	if s.Dropped != uint64(want) {
		t.Errorf("%d drops, want %d", s.Dropped, want)
	}
	if s.Derivation.Samples > int(s.Outcomes[goodput.Completed]+s.Outcomes[goodput.Late]) {
		t.Errorf("%d samples of %v", s.Derivation.Samples, s.Outcomes)
	}
}

// noDrops checks that the limiter has counted none: the next one is the first.
func noDrops(t *testing.T, lim *goodput.Limiter) {
	t.Helper()
	slot, ok := lim.TryAcquire()
	if !ok {
		t.Fatal("no slot")
	}
	slot.Dropped()
	drops(t, lim, 1)
}

func dialError(err error) error {
	return &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
}

// F33: what says that the service, or one behind it, has too much is a drop and no sample.
// What is refused for what it is, or fails otherwise, is none, nor is who left.
func TestTransportDrops(t *testing.T) {
	for _, c := range []struct {
		name   string
		grpc   bool
		status int
		header string
		err    error
		leaves bool
		drop   bool
	}{
		{name: "ours", status: 503, header: "Goodput-Rejected: queue_full", drop: true},
		{name: "ours, 429", status: 429, header: "Goodput-Rejected: shed", drop: true},
		{name: "doomed", status: 503, header: "Goodput-Rejected: doomed", drop: true},
		{name: "no upstream", status: 503, header: "Goodput-Rejected: unavailable", drop: true},
		{name: "its quota", status: 429, header: "Goodput-Rejected: quota"},
		{name: "its cost", status: 503, header: "Goodput-Rejected: too_costly"},
		{name: "its size", status: 413, header: "Goodput-Rejected: too_large"},
		{name: "its deadline", status: 504, header: "Goodput-Rejected: deadline"},
		{name: "a newer one", status: 503, header: "Goodput-Rejected: replaced"},
		{name: "it leaves", status: 503, header: "Goodput-Rejected: draining"},
		{name: "Envoy", status: 503, header: "X-Envoy-Overloaded: true", drop: true},
		{name: "Finagle", status: 503, header: "Finagle-Http-Nack: true", drop: true},
		{name: "Skipper", status: 503, header: "Admission-Control: true", drop: true},
		{name: "429", status: 429, drop: true},
		{name: "503 that says when", status: 503, header: "Retry-After: 1", drop: true},
		{name: "503", status: 503},
		{name: "500", status: 500},
		{name: "200 with a marker", status: 200, header: "Goodput-Rejected: queue_full"},
		{name: "UNAVAILABLE", grpc: true, status: 200, header: "Grpc-Status: 14", drop: true},
		{name: "RESOURCE_EXHAUSTED", grpc: true, status: 200, header: "Grpc-Status: 8", drop: true},
		{name: "INTERNAL", grpc: true, status: 200, header: "Grpc-Status: 13"},
		{name: "connection refused", err: dialError(os.NewSyscallError("connect", syscall.ECONNREFUSED)), drop: true},
		{name: "no answer to a connect", err: dialError(os.ErrDeadlineExceeded), drop: true},
		{name: "no such host", err: dialError(&net.DNSError{Err: "no such host", IsNotFound: true})},
		{name: "connection reset", err: &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}},
		{name: "left in a connect", err: dialError(context.Canceled), leaves: true},
		{name: "left", err: context.Canceled, leaves: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := get(ctx)
			if c.grpc {
				r = get(ctx, grpcKind)
			}
			res, err := to(&Dependency{Limiter: lim}, base(func(*http.Request) (*http.Response, error) {
				if c.leaves {
					cancel()
				}
				if c.err != nil {
					return nil, c.err
				}
				return respond(c.status, "", strings.Split(c.header, "\n")...), nil
			})).RoundTrip(r)
			if !errors.Is(err, c.err) {
				t.Fatalf("%s: %v", c.name, err)
			}
			if err == nil {
				res.Body.Close()
			}
			time.Sleep(100 * time.Millisecond)
			want := uint64(0)
			if c.drop {
				want = 1
			}
			s := lim.Stats()
			if s.Dropped != want {
				t.Errorf("%s: %d drops, want %d", c.name, s.Dropped, want)
			}
			if c.drop && (s.Outcomes[goodput.Failed] != 1 || s.Derivation.Samples != 0) || c.leaves && s.Outcomes[goodput.Abandoned] != 1 {
				t.Errorf("%s: %d samples of %v", c.name, s.Derivation.Samples, s.Outcomes)
			}
		})
	}
}

// In front of a service it is the marker that counts, or the word of the handler, whatever
// it answers; a plain 503 or 429 is an answer, and who left says nothing.
func TestServerDrops(t *testing.T) {
	answer := func(status int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for _, h := range header {
				name, value, _ := strings.Cut(h, ": ")
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
		}
	}
	says := func(then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !Dropped(r.Context()) {
				panic("there is a slot")
			}
			then(w, r)
		}
	}
	for _, c := range []struct {
		name string
		grpc bool
		h    http.HandlerFunc
		drop bool
	}{
		{"a marker", false, answer(503, "Goodput-Rejected: queue_full"), true},
		{"Envoy", false, answer(503, "X-Envoy-Overloaded: true"), true},
		{"Skipper", false, answer(503, "Admission-Control: true"), true},
		{"a marker of gRPC", true, answer(200, "Grpc-Status: 14", "Goodput-Rejected: queue_full"), true},
		{"gRPC without", true, answer(200, "Grpc-Status: 14"), false},
		{"a marker about the request", false, answer(429, "Goodput-Rejected: quota"), false},
		{"503", false, answer(503), false},
		{"503 that says when", false, answer(503, "Retry-After: 1"), false},
		{"429", false, answer(429), false},
		{"500", false, answer(500), false},
		{"200 with a marker", false, answer(200, "Goodput-Rejected: queue_full"), false},
		{"said, and 503", false, says(answer(503)), true},
		{"said, and 200", false, says(answer(200)), true},
		{"said, and a panic", false, says(func(http.ResponseWriter, *http.Request) { panic("bug") }), true},
		{"said by who holds on", false, says(func(w http.ResponseWriter, r *http.Request) {
			release, _ := Hold(r.Context())
			time.AfterFunc(time.Millisecond, release)
		}), true},
	} {
		for proto, client := range clients(t) {
			t.Run(c.name+" "+proto, func(t *testing.T) {
				lim := limiter(1, goodput.Config{})
				r, _ := http.NewRequest(http.MethodGet, start(t, Handler(lim, c.h)).URL, nil)
				if c.grpc {
					r.Header.Set("Content-Type", "application/grpc")
				}
				if res, err := client.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				settled(t, lim)
				if c.drop {
					drops(t, lim, 1)
				} else {
					noDrops(t, lim)
				}
			})
		}
	}
	if Dropped(context.Background()) {
		t.Error("there is no slot to drop")
	}
}

// A client that leaves makes no drop of what its handler said.
func TestServerDropsNothingOfWhoLeft(t *testing.T) {
	for proto, client := range clients(t) {
		t.Run(proto, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			srv := start(t, Handler(lim, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				Dropped(r.Context())
				leave()
				<-r.Context().Done()
			})))
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
			if res, err := client.Do(r); err == nil {
				res.Body.Close()
			}
			until(t, "it is abandoned", func() bool { return lim.Stats().Outcomes[goodput.Abandoned] == 1 })
			noDrops(t, lim)
		})
	}
}

// F33: a refusal two layers down is a drop in each layer above, with ReverseProxy between.
func TestDropsCascade(t *testing.T) {
	inner := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, inner, 1)
	lims := []*goodput.Limiter{limiter(1, goodput.Config{}), limiter(1, goodput.Config{}), limiter(1, goodput.Config{})}
	proxy := func(to string, transport http.RoundTripper) http.Handler {
		target, _ := url.Parse(to)
		p := httputil.NewSingleHostReverseProxy(target)
		p.Transport, p.ErrorHandler = transport, ProxyError
		return p
	}
	middle := start(t, Handler(lims[0], proxy(start(t, Handler(inner, http.NotFoundHandler())).URL, nil)))
	dep := &Dependency{Limiter: lims[1]}
	front := start(t, Handler(lims[2], proxy(middle.URL, to(dep, http.DefaultTransport))))
	res, err := http.Get(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.Header.Get("Goodput-Rejected") != "queue_full" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	for _, lim := range lims {
		drops(t, lim, 1)
	}
}

// F33: what another limiter further down has refused took no service, whatever it was refused
// for: a millisecond, which is no sample. The same status without the marker is an answer.
func TestServerRefusalsAreNoSamples(t *testing.T) {
	for reason, status := range map[string]int{"queue_full": 429, "quota": 429, "too_large": 413, "deadline": 504, "draining": 503} {
		for _, marked := range []bool{true, false} {
			lim := limiter(1, goodput.Config{})
			url := start(t, Handler(lim, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if marked {
					w.Header().Set("Goodput-Rejected", reason)
				}
				w.WriteHeader(status)
			}))).URL
			res, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			settled(t, lim)
			want := goodput.Completed // which is a sample
			if marked || status >= 500 {
				want = goodput.Failed
			}
			if s := lim.Stats(); s.Outcomes[want] != 1 {
				t.Errorf("%d, marked %v with %s: %v", status, marked, reason, s.Outcomes)
			}
		}
	}
}
