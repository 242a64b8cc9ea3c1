package goodputhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// A base is a RoundTripper in memory. As the contract says, it closes the body of the
// request in any case.
type base func(*http.Request) (*http.Response, error)

func (b base) RoundTrip(r *http.Request) (*http.Response, error) {
	defer func() {
		if r.Body != nil {
			_ = r.Body.Close()
		}
	}()
	return b(r)
}

// respond returns a response with a body and a header of "name: value".
func respond(status int, body string, header ...string) *http.Response {
	res := &http.Response{StatusCode: status, Header: http.Header{}, Trailer: http.Header{}, Body: http.NoBody}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		res.Header.Add(name, value)
	}
	if body != "" {
		res.Body = io.NopCloser(strings.NewReader(body))
	}
	return res
}

// to is a Transport with one dependency.
func to(dep *Dependency, b http.RoundTripper) *Transport {
	return &Transport{Base: b, Dependency: func(*http.Request) *Dependency { return dep }}
}

// bases are an HTTP/1.1 and an h2c transport.
func bases(t testing.TB) map[string]*http.Transport {
	all := map[string]*http.Transport{}
	for proto, c := range clients(t) {
		all[proto] = c.Transport.(*http.Transport)
	}
	return all
}

// A closer is a request body that knows how often it was closed.
type closer struct {
	io.Reader
	closed atomic.Int32
}

func (c *closer) Close() error { c.closed.Add(1); return nil }

func get(ctx context.Context, header ...string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://upstream.test/x", nil)
	if err != nil {
		panic(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// The slot is held from before the request to the end of the body, however that ends,
// and comes back once; each end has its outcome.
func TestTransportHoldsTheSlotToTheEndOfTheBody(t *testing.T) {
	errBoom := errors.New("boom")
	for _, c := range []struct {
		name string
		res  func() *http.Response
		err  error
		read func(t *testing.T, res *http.Response, cancel func())
		want goodput.Outcome
	}{
		{
			name: "read to EOF", res: func() *http.Response { return respond(200, "x") },
			read: func(t *testing.T, res *http.Response, _ func()) { _, _ = io.ReadAll(res.Body) }, want: goodput.Completed,
		},
		{
			name: "closed unread", res: func() *http.Response { return respond(200, "x") },
			read: func(t *testing.T, res *http.Response, _ func()) { res.Body.Close() }, want: goodput.Completed,
		},
		{
			name: "closed twice after EOF", res: func() *http.Response { return respond(200, "x") },
			read: func(t *testing.T, res *http.Response, _ func()) {
				_, _ = io.ReadAll(res.Body)
				res.Body.Close()
				res.Body.Close()
			}, want: goodput.Completed,
		},
		{name: "broken body", res: func() *http.Response {
			res := respond(200, "x")
			res.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{errBoom}))
			return res
		}, read: func(t *testing.T, res *http.Response, _ func()) { _, _ = io.ReadAll(res.Body) }, want: goodput.Failed},
		{name: "panic in Read", res: func() *http.Response {
			res := respond(200, "")
			res.Body = io.NopCloser(panicking{})
			return res
		}, read: func(t *testing.T, res *http.Response, _ func()) {
			defer func() { _ = recover() }()
			_, _ = io.ReadAll(res.Body)
		}, want: goodput.Failed},
		{
			name: "left, body forgotten", res: func() *http.Response { return respond(200, "x") },
			read: func(t *testing.T, res *http.Response, cancel func()) {
				cancel()
				time.Sleep(sweepEvery)
			}, want: goodput.Abandoned,
		},
		{
			name: "deadline, body forgotten", res: func() *http.Response { return respond(200, "x") },
			read: func(t *testing.T, res *http.Response, cancel func()) { time.Sleep(time.Minute + sweepEvery) },
			want: goodput.Late,
		},
		{
			name: "left, then closed", res: func() *http.Response { return respond(200, "x") },
			read: func(t *testing.T, res *http.Response, cancel func()) { cancel(); res.Body.Close() }, want: goodput.Abandoned,
		},
		{
			name: "500", res: func() *http.Response { return respond(500, "x") },
			read: func(t *testing.T, res *http.Response, _ func()) { res.Body.Close() }, want: goodput.Failed,
		},
		{name: "500 without a body", res: func() *http.Response { return respond(500, "") }, want: goodput.Failed},
		{name: "304, whatever its body is", res: func() *http.Response { return respond(304, "x") }, want: goodput.Completed},
		{name: "204, whatever its body is", res: func() *http.Response { return respond(204, "x") }, want: goodput.Completed},
		{name: "404 without a body", res: func() *http.Response { return respond(404, "") }, want: goodput.Completed},
		{name: "transport error", err: errBoom, want: goodput.Failed},
		{name: "transport error that is EOF", err: io.EOF, want: goodput.Failed},
		{name: "upgrade", res: func() *http.Response { return respond(101, "x") }, want: goodput.Completed},
		{
			name: "shed", res: func() *http.Response { return respond(503, "x", "Goodput-Rejected: queue_full") },
			read: func(t *testing.T, res *http.Response, _ func()) { res.Body.Close() }, want: goodput.Failed,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(background, time.Minute)
				defer cancel()
				lim := limiter(1, goodput.Config{})
				dep := &Dependency{Limiter: lim}
				inUse := 0
				tr := to(dep, base(func(*http.Request) (*http.Response, error) {
					inUse = lim.Stats().InUse
					if c.err != nil {
						return nil, c.err
					}
					return c.res(), nil
				}))
				res, err := tr.RoundTrip(get(ctx))
				if inUse != 1 {
					t.Errorf("%d slots in use during the request", inUse)
				}
				if err != c.err {
					t.Fatalf("%v, want %v", err, c.err)
				}
				held := lim.Stats().InUse
				if want := 1; c.read == nil && held != 0 || c.read != nil && held != want {
					t.Errorf("%d slots held while the body is open", held)
				}
				if c.read != nil {
					c.read(t, res, cancel)
				}
				outcomes(t, lim, map[goodput.Outcome]uint64{c.want: 1})
				if n := dep.Stats().OpenBodies; n != 0 {
					t.Errorf("%d open bodies", n)
				}
			})
		})
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("in the body") }

// What the server, or one behind it, refused is a drop signal: failed, counted, heard by
// the throttle, no sample, and passed on as it is.
func TestTransportPassesRefusalsOn(t *testing.T) {
	for _, c := range []struct {
		name string
		grpc bool
		res  *http.Response
		shed bool
	}{
		{"ours", false, respond(503, "no", "Goodput-Rejected: queue_full", "Retry-After: 7"), true},
		{"Envoy", false, respond(503, "no", "X-Envoy-Overloaded: true"), true},
		{"Finagle", false, respond(503, "no", "Finagle-Http-Nack: true"), true},
		{"Finagle, never again", false, respond(503, "no", "Finagle-Http-Nonretryable-Nack: true"), true},
		{"Skipper", false, respond(503, "no", "Admission-Control: true"), true},
		{"a marker of no status in particular", false, respond(400, "no", "Admission-Control: true"), true},
		{"429", false, respond(429, "no"), true},
		{"503 with Retry-After", false, respond(503, "no", "Retry-After: 1"), true},
		{"503", false, respond(503, "no"), false},
		{"500", false, respond(500, "no", "Retry-After: 1"), false},
		{"200 with a marker", false, respond(200, "no", "Goodput-Rejected: queue_full"), false},
		{"gRPC UNAVAILABLE", true, respond(200, "", "Grpc-Status: 14"), true},
		{"gRPC RESOURCE_EXHAUSTED", true, respond(200, "", "Grpc-Status: 8"), true},
		{"gRPC INTERNAL", true, respond(200, "", "Grpc-Status: 13"), false},
		{"the same and no gRPC", false, respond(200, "", "Grpc-Status: 14"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if h := c.res.Header; isShed(h) && !retry.HTTPFault(503, h, time.Now()).Shed {
				t.Errorf("a Server passes it on as a refusal, and package retry takes it for none: %v", h)
			}
			lim := limiter(1, goodput.Config{})
			throttle := &retry.Throttle{}
			dep := &Dependency{Limiter: lim, Throttle: throttle}
			want := c.res.Header.Clone()
			r := get(background)
			if c.grpc {
				r.Header.Set("Content-Type", "application/grpc")
			}
			res, err := to(dep, base(func(*http.Request) (*http.Response, error) { return c.res, nil })).RoundTrip(r)
			if err != nil || !maps.EqualFunc(res.Header, want, slices.Equal) {
				t.Fatalf("%v %v, want %v", res.Header, err, want)
			}
			text(t, res)
			refused, accepted := uint64(0), uint64(1)
			if c.shed {
				refused, accepted = 1, 0
				outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Failed: 1})
			}
			if st := throttle.Stats(); dep.Stats().Shed != refused || st.Refused != refused || st.Accepted != accepted {
				t.Errorf("shed %d, throttle %+v", dep.Stats().Shed, st)
			}
		})
	}
}

// No answer is a refusal, unless it is the caller who left: that says nothing of the service.
func TestTransportTellsTheThrottle(t *testing.T) {
	for _, left := range []bool{false, true} {
		throttle := &retry.Throttle{}
		ctx, cancel := context.WithCancel(background)
		_, _ = to(&Dependency{Throttle: throttle}, base(func(*http.Request) (*http.Response, error) {
			if left {
				cancel()
			}
			return nil, errNet
		})).RoundTrip(get(ctx))
		cancel()
		if st := throttle.Stats(); st.Accepted != 0 || (st.Refused == 1) != !left {
			t.Errorf("left %v: %+v", left, st)
		}
	}
}

// A gRPC status that blames the server fails the attempt, from trailers as well.
func TestTransportReadsTheTrailersOfGRPC(t *testing.T) {
	for code, want := range map[string]goodput.Outcome{"0": goodput.Completed, "5": goodput.Completed, "13": goodput.Failed} {
		lim := limiter(1, goodput.Config{})
		res, err := to(&Dependency{Limiter: lim}, base(func(*http.Request) (*http.Response, error) {
			res := respond(200, "message")
			res.Trailer.Set("Grpc-Status", code)
			return res, nil
		})).RoundTrip(get(background, "Content-Type: application/grpc"))
		if err != nil {
			t.Fatal(err)
		}
		text(t, res)
		outcomes(t, lim, map[goodput.Outcome]uint64{want: 1})
	}
}

// The body of a request is closed on every way out, also those on which nothing is sent.
func TestTransportClosesTheBodyOfTheRequest(t *testing.T) {
	over, cancel := context.WithCancel(background)
	cancel()
	late, cancelLate := context.WithTimeout(background, -time.Second)
	defer cancelLate()
	soon, cancelSoon := context.WithTimeout(background, time.Second)
	defer cancelSoon()
	full := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, full, 1)
	ok := base(func(*http.Request) (*http.Response, error) { return respond(200, ""), nil })
	for _, c := range []struct {
		name string
		ctx  context.Context
		dep  *Dependency
		base base
		want error
	}{
		{"sent", background, &Dependency{}, ok, nil},
		{"cancelled", over, &Dependency{}, ok, context.Canceled},
		{"no time", late, &Dependency{}, ok, context.DeadlineExceeded},
		{"less than the hop", soon, &Dependency{HopMargin: time.Minute}, ok, context.DeadlineExceeded},
		{"no slot", background, &Dependency{Limiter: full}, ok, goodput.ErrRejected},
		{"throttled", background, &Dependency{Throttle: refusing(t)}, ok, retry.ErrThrottled},
		{
			"panic of Base", background, &Dependency{Limiter: limiter(1, goodput.Config{})},
			func(*http.Request) (*http.Response, error) { panic("Base") }, errPanicked,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body *closer
			once := func() (res *http.Response, err error) {
				defer func() {
					if recover() != nil {
						err = errPanicked
					}
				}()
				body = &closer{Reader: strings.NewReader("x")}
				r := get(c.ctx)
				r.Method, r.Body, r.ContentLength = http.MethodPost, body, 1
				return to(c.dep, c.base).RoundTrip(r)
			}
			res, err := once()
			for err == nil && c.want != nil { // a throttle lets one in ten pass
				res, err = once()
			}
			if !errors.Is(err, c.want) || (res == nil) != (err != nil) {
				t.Errorf("%v %v, want %v", res, err, c.want)
			}
			if body.closed.Load() == 0 {
				t.Error("the body is not closed")
			}
			if c.dep.Limiter != nil && c.dep.Limiter != full {
				outcomes(t, c.dep.Limiter, map[goodput.Outcome]uint64{goodput.Failed: 1})
			}
		})
	}
}

// refusing is a throttle that keeps the next call at home: of those it keeps nine in ten.
func refusing(t *testing.T) *retry.Throttle {
	th := &retry.Throttle{}
	for range 1000 {
		th.Refused()
	}
	until(t, "the throttle keeps one", func() bool {
		st := th.Stats()
		return st.Chance > 0.89
	})
	return th
}

// The caller's request is never changed, and what is sent shares nothing that is.
func TestTransportDoesNotTouchTheRequest(t *testing.T) {
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	r := get(ctx, "Connect-Timeout-Ms: 5000", "X-Mine: 1")
	want := r.Header.Clone()
	var sent http.Header
	calls := 0
	tr := to(&Dependency{Retry: &retry.Policy{Backoff: 1}}, base(func(r *http.Request) (*http.Response, error) {
		sent = r.Header
		if calls++; calls == 1 {
			return respond(503, ""), nil
		}
		return respond(200, ""), nil
	}))
	res, err := tr.RoundTrip(r)
	if err != nil || res.Request != r {
		t.Errorf("%v, request %p, want %p", err, res.Request, r)
	}
	if !maps.EqualFunc(r.Header, want, slices.Equal) {
		t.Errorf("%v, want %v", r.Header, want)
	}
	if sent.Get("Connect-Timeout-Ms") == "5000" || sent.Get("X-Mine") != "1" || sent.Get("Goodput-Attempt") != "2" {
		t.Errorf("sent %v", sent)
	}
}

// A request without a dependency goes to Base as it came.
func TestTransportWithoutADependency(t *testing.T) {
	r := get(background)
	tr := &Transport{
		Dependency: func(*http.Request) *Dependency { return nil },
		Base: base(func(got *http.Request) (*http.Response, error) {
			if got != r {
				t.Error("another request")
			}
			return respond(200, ""), nil
		}),
	}
	if _, err := tr.RoundTrip(r); err != nil {
		t.Error(err)
	}
}

type idle struct {
	base
	closed int
}

func (i *idle) CloseIdleConnections() { i.closed++ }

func TestTransportClosesIdleConnections(t *testing.T) {
	b := &idle{}
	c := &http.Client{Transport: to(nil, b)}
	c.CloseIdleConnections()
	if b.closed != 1 {
		t.Error("not passed on")
	}
	(&Transport{Base: base(nil)}).CloseIdleConnections() // one without the method
}

// Over both protocols: a response with a body, without one, with an unread body, and one
// that is cut off.
func TestTransportOverTheWire(t *testing.T) {
	srv := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/nothing":
		case "/cut":
			fmt.Fprint(w, "begin")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			_, _ = w.Write(bytes.Repeat([]byte("x"), 100_000))
		}
	}))
	for proto, b := range bases(t) {
		t.Run(proto, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			client := &http.Client{Transport: to(&Dependency{Limiter: lim}, b), Timeout: patience}
			for _, path := range []string{"/", "/empty", "/unread", "/cut"} {
				res, err := client.Get(srv.URL + path)
				if err != nil {
					t.Fatal(err)
				}
				if path != "/unread" {
					_, err = io.ReadAll(res.Body)
				}
				res.Body.Close()
				if (err != nil) != (path == "/cut") {
					t.Errorf("%s: %v", path, err)
				}
			}
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 3, goodput.Failed: 1})
			for _, send := range []func() (*http.Response, error){ // and nobody closes what has no body
				func() (*http.Response, error) { return client.Head(srv.URL) },
				func() (*http.Response, error) { return client.Get(srv.URL + "/nothing") },
			} {
				if _, err := send(); err != nil {
					t.Error(err)
				}
				if n := lim.Stats().InUse; n != 0 {
					t.Errorf("%d slots in use after a response without a body", n)
				}
			}
			if _, err := client.Get("http://127.0.0.1:1"); err == nil { // nobody listens there
				t.Error("no connection, no error")
			}
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 5, goodput.Failed: 2})
		})
	}
}

// An upgraded connection is the caller's: it can be written to, and holds no slot.
func TestTransportUpgrade(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		buf.Flush()
		line, _ := buf.ReadString('\n')
		fmt.Fprint(buf, "heard "+line)
		buf.Flush()
	}))
	defer srv.Close()
	lim := limiter(1, goodput.Config{})
	r, _ := http.NewRequest(http.MethodGet, srv.URL, nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	res, err := to(&Dependency{Limiter: lim}, bases(t)["HTTP/1.1"]).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1})
	conn := res.Body.(io.ReadWriteCloser)
	defer conn.Close()
	fmt.Fprintln(conn, "hello")
	if b, _ := io.ReadAll(conn); string(b) != "heard hello\n" {
		t.Errorf("%q", b)
	}
}

// How long an upgrade took is no service time, as it is for other answers.
func TestTransportUpgradeIsNoSample(t *testing.T) {
	for _, c := range []struct {
		method       string
		status, want int
	}{
		{http.MethodGet, 200, 10},
		{http.MethodGet, 101, 0},
		{http.MethodConnect, 200, 0},
		{http.MethodConnect, 299, 0},
		{http.MethodConnect, 300, 10},
		{http.MethodConnect, 403, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(background, time.Hour) // requests with a deadline are all timed
			defer cancel()
			lim := limiter(1, goodput.Config{})
			tr := to(&Dependency{Limiter: lim}, base(func(*http.Request) (*http.Response, error) {
				time.Sleep(10 * time.Millisecond)
				return respond(c.status, ""), nil
			}))
			for range 10 {
				r := get(ctx)
				r.Method = c.method
				if _, err := tr.RoundTrip(r); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute) // a window passes
			if n := lim.Stats().Derivation.Samples; int(n) != c.want {
				t.Errorf("%s %d: %d samples, want %d", c.method, c.status, n, c.want)
			}
		})
	}
}

// The time from asking for a slot to the header, and that spent blocked in Read, is not
// the parent's own; what it does between two reads is.
func TestTransportIsDownstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := limiter(1, goodput.Config{Objective: time.Hour})
		tr := to(&Dependency{Limiter: limiter(1, goodput.Config{})}, base(func(*http.Request) (*http.Response, error) {
			time.Sleep(3 * time.Second)
			res := respond(200, "")
			res.Body = io.NopCloser(slow(time.Second))
			return res, nil
		}))
		for range 20 { // the limiter times all of the first
			err := parent.Do(background, func(ctx context.Context) error {
				time.Sleep(7 * time.Second)
				res, err := tr.RoundTrip(get(ctx))
				if err != nil {
					return err
				}
				one := make([]byte, 1)
				_, _ = res.Body.Read(one)
				time.Sleep(11 * time.Second)
				_, _ = res.Body.Read(one)
				return res.Body.Close()
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		// Of 23 s, 3 + 1 + 1 s are elsewhere.
		if got := parent.Stats().Elsewhere; got < 5.0/23-1e-3 || got > 5.0/23+1e-3 {
			t.Errorf("%.3f of the time is elsewhere, want %.3f", got, 5.0/23)
		}
	})
}

// slow is a body of which each byte takes a while.
type slow time.Duration

func (s slow) Read(p []byte) (int, error) { time.Sleep(time.Duration(s)); return 1, nil }

// failing is a reader that has failed.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// The service sample ends at the header, however long the caller takes for the body. 128
// calls, because the estimate is its prior below 100 samples, and each with a deadline,
// because those are all timed.
func TestTransportSampleEndsAtTheHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(background, time.Hour)
		defer cancel()
		lim := limiter(1, goodput.Config{Service: time.Millisecond})
		tr := to(&Dependency{Limiter: lim}, base(func(*http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Millisecond)
			return respond(200, "x"), nil
		}))
		for range 128 {
			res, err := tr.RoundTrip(get(ctx))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			text(t, res)
		}
		if d := lim.Stats().Derivation; d.Samples < 100 || d.Service > time.Second/2 || d.Mean < time.Second/2 {
			t.Errorf("%d samples, p99 %v, held for %v: the second of the body belongs to the last only", d.Samples, d.Service, d.Mean)
		}
	})
}
