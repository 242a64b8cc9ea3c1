package goodputhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// A sent body comes in pieces of 1 KiB, one each pause, until it is closed or its request ends.
type sent struct {
	ctx    context.Context
	pause  time.Duration
	pieces int
	left   int // of the piece that came last
	closed chan struct{}
	deaf   chan struct{} // if it is not nil, Read waits for this alone
}

func (s *sent) Read(p []byte) (int, error) {
	if s.deaf != nil {
		<-s.deaf
		return 0, io.EOF
	}
	if s.left > 0 {
		n := copy(p, strings.Repeat("x", s.left))
		s.left -= n
		return n, nil
	}
	timer := time.NewTimer(s.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closed:
		return 0, errNet
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	if s.pieces == 0 {
		return 0, io.EOF
	}
	s.pieces--
	s.left = 1024
	return s.Read(p)
}

func (s *sent) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

func (s *sent) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// slowly is a base whose answers are errors that take 20 times 5 ms to send.
func slowly(status int) base {
	return func(r *http.Request) (*http.Response, error) {
		res := respond(status, "")
		res.Body = &sent{ctx: r.Context(), pause: 5 * time.Millisecond, pieces: 20, closed: make(chan struct{})}
		return res, nil
	}
}

// The last response of a call is whole, and its slot is held to its end, whatever made it the
// last and whatever ends its context.
func TestTransportLastResponseIsWhole(t *testing.T) {
	spent := func() *retry.Budget {
		b := &retry.Budget{}
		for b.Spend() {
		}
		return b
	}
	for _, c := range []struct {
		name   string
		policy *retry.Policy
		hedge  *Hedge
		status int
		sent   uint64
	}{
		{"one attempt", &retry.Policy{Attempts: 1}, nil, 503, 1},
		{"two attempts", &retry.Policy{Attempts: 2}, nil, 503, 2},
		{"PerAttempt", &retry.Policy{Attempts: 2, PerAttempt: time.Minute}, nil, 502, 2},
		{"Total", &retry.Policy{Attempts: 2, Total: time.Minute}, nil, 503, 2},
		{"no budget", &retry.Policy{PerAttempt: time.Minute, Budget: spent()}, nil, 503, 1},
		{"hedge", &retry.Policy{Attempts: 1}, &Hedge{}, 503, 1},
		{"hedge and again", &retry.Policy{Attempts: 2, PerAttempt: time.Minute}, &Hedge{}, 503, 2},
		{"hedge alone", nil, &Hedge{}, 503, 1},
		{"final", &retry.Policy{Total: time.Minute}, nil, 500, 1},
		{"an answer", &retry.Policy{PerAttempt: time.Minute}, &Hedge{}, 404, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := limiter(1, goodput.Config{})
				dep := &Dependency{Limiter: lim, Retry: c.policy, Hedge: c.hedge}
				res, err := to(dep, slowly(c.status)).RoundTrip(get(background))
				if err != nil || res.StatusCode != c.status {
					t.Fatalf("%v %v", res, err)
				}
				time.Sleep(time.Second) // its reader takes its time
				if n, st := lim.Stats().InUse, dep.Stats(); n != 1 || st.OpenBodies != 1 || st.Attempts != c.sent {
					t.Errorf("%d slots held for the response, %+v", n, st)
				}
				b, err := io.ReadAll(res.Body)
				if err != nil || len(b) != 20<<10 {
					t.Errorf("%d bytes of %d, %v", len(b), 20<<10, err)
				}
				res.Body.Close()
				settled(t, lim)
			})
		})
	}
}

// While another attempt is waited for the slot of the one before is held as long as its
// response is sent, which is not long: what is long or slow is dropped.
func TestTransportPutsDownWhatIsSent(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		body    sent
		held    time.Duration
		dropped bool
	}{
		{"at once", sent{}, 0, false},
		{"in 50 ms", sent{pause: 5 * ms, pieces: 9}, 50 * ms, false},
		{"as much as is kept", sent{pieces: settleBytes >> 10}, 0, false},
		{"more", sent{pieces: settleBytes>>10 + 1, pause: ms}, 65 * ms, true},
		{"in 10 s", sent{pause: time.Second, pieces: 10}, settleTime, true},
		{"never", sent{deaf: make(chan struct{})}, settleTime, true},
	} {
		for _, again := range []bool{true, false} { // whether there is a slot for the next attempt
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
					body := c.body
					body.closed = make(chan struct{})
					if body.deaf != nil {
						body.deaf = make(chan struct{})
						defer close(body.deaf)
					}
					n := 0
					tr := to(&Dependency{Limiter: lim, Retry: &retry.Policy{PerAttempt: time.Minute}}, base(func(r *http.Request) (*http.Response, error) {
						if n++; n > 1 {
							return respond(200, ""), nil
						}
						res := refusedAfter("1")
						body.ctx, res.Body = r.Context(), &body
						return res, nil
					}))
					time.AfterFunc(c.held-ms/2, func() {
						if n := lim.Stats().InUse; n != 1 && c.held > 0 {
							t.Errorf("%d slots held while it is sent", n)
						}
					})
					time.AfterFunc(c.held+ms/2, func() {
						if n := lim.Stats().InUse; n != 0 {
							t.Errorf("%d slots held after %v", n, c.held)
						}
						if body.isClosed() != c.dropped {
							t.Errorf("closed: %v, want %v", !c.dropped, c.dropped)
						}
						if !again {
							hold(t, lim, 1)
						}
					})
					start := time.Now()
					res, err := tr.RoundTrip(get(background))
					switch took := time.Since(start); {
					case took != time.Second:
						t.Errorf("took %v, want the 1 s of the hint", took)
					case !again && c.dropped:
						if !errors.Is(err, goodput.ErrRejected) {
							t.Errorf("%v %v, want what kept the second", res, err)
						}
					case err != nil || again != (res.StatusCode == 200):
						t.Errorf("%v %v", res, err)
					case !again:
						if b, err := io.ReadAll(res.Body); err != nil || len(b) != c.body.pieces<<10 {
							t.Errorf("%d bytes, %v", len(b), err)
						}
						res.Body.Close()
					}
				})
			})
		}
	}
}

// A panic of what is asked about a request goes on, and leaves no slot and no body open.
func TestTransportPanicsOfWhatIsAsked(t *testing.T) {
	boom := func(after int) func() {
		return func() {
			if after--; after < 0 {
				panic("asked")
			}
		}
	}
	for _, c := range []struct {
		name string
		dep  func() *Dependency
		sent uint64
	}{
		{"Idempotent", func() *Dependency {
			ask := boom(0)
			return &Dependency{Retry: &retry.Policy{PerAttempt: time.Minute}, Idempotent: func(*http.Request) bool { ask(); return true }}
		}, 1},
		{"Idempotent before a hedge", func() *Dependency {
			ask := boom(0)
			return &Dependency{Hedge: &Hedge{}, Idempotent: func(*http.Request) bool { ask(); return true }}
		}, 0},
		{"Classify", func() *Dependency {
			ask := boom(0)
			return &Dependency{Retry: &retry.Policy{Classify: func(retry.Fault) retry.Verdict { ask(); return retry.VerdictFinal }}}
		}, 1},
		{"Work", func() *Dependency {
			ask := boom(0)
			return &Dependency{Work: func(*http.Request) goodput.Work { ask(); return goodput.Work{} }}
		}, 0},
		{"Work of the second attempt", func() *Dependency {
			ask := boom(1)
			return &Dependency{Retry: &retry.Policy{}, Work: func(*http.Request) goodput.Work { ask(); return goodput.Work{} }}
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dep := c.dep()
				dep.Limiter = limiter(1, goodput.Config{})
				var answer sent
				in := &closer{Reader: strings.NewReader("body")}
				r := get(background)
				r.Method, r.Body = http.MethodPut, in
				r.GetBody = func() (io.ReadCloser, error) { return in, nil }
				tr := to(dep, base(func(r *http.Request) (*http.Response, error) {
					res := respond(503, "")
					answer = sent{ctx: r.Context(), pause: time.Hour, closed: make(chan struct{})}
					res.Body = &answer
					return res, r.Body.Close()
				}))
				func() {
					defer func() {
						if recover() != "asked" {
							t.Error("no panic")
						}
					}()
					_, _ = tr.RoundTrip(r)
				}()
				if st := dep.Stats(); st.OpenBodies != 0 || st.Attempts != c.sent || !dep.idle() {
					t.Errorf("%+v", st)
				}
				if in.closed.Load() == 0 || c.sent > 0 && !answer.isClosed() {
					t.Errorf("a body is open: of the request, closed %d times, or of the response", in.closed.Load())
				}
				settled(t, dep.Limiter)
			})
		})
	}
}

// What has no body to read holds no slot, although it has one to close.
func TestTransportWithoutABody(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
		status int
		held   int
	}{
		{"CONNECT 200", http.MethodConnect, 200, 0}, // a tunnel
		{"CONNECT 299", http.MethodConnect, 299, 0},
		{"CONNECT 404", http.MethodConnect, 404, 1},
		{"GET 101", http.MethodGet, 101, 0},
		{"GET 200", http.MethodGet, 200, 1},
		{"GET 204", http.MethodGet, 204, 0},
		{"GET 304", http.MethodGet, 304, 0},
		{"HEAD 200", http.MethodHead, 200, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			r := get(background)
			r.Method = c.method
			ended := func() bool { return false }
			res, err := to(&Dependency{Limiter: lim, Retry: &retry.Policy{Total: time.Minute}}, base(func(r *http.Request) (*http.Response, error) {
				ended = func() bool { return r.Context().Err() != nil }
				return respond(c.status, "both ways"), nil
			})).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if n := lim.Stats().InUse; n != c.held {
				t.Errorf("%d slots held, want %d", n, c.held)
			}
			if up := c.status == 101 || c.method == http.MethodConnect && c.status < 300; up && ended() {
				t.Error("the context of a tunnel has ended")
			}
			res.Body.Close()
			settled(t, lim)
		})
	}
}

// A Dependency that is not valid says so each time, also where somebody recovers, and nothing
// is sent.
func TestTransportWithAnInvalidDependency(t *testing.T) {
	dep := &Dependency{HopMargin: -1, Limiter: limiter(1, goodput.Config{})}
	tr := to(dep, slowly(200))
	for range 3 {
		func() {
			defer func() {
				const want = "hop margin -1ns is out of range"
				if p, ok := recover().(string); !ok || !strings.Contains(p, want) {
					t.Errorf("%v, want %q", p, want)
				}
			}()
			_, _ = tr.RoundTrip(get(background))
		}()
	}
	if st := dep.Stats(); st.Attempts != 0 || !dep.idle() {
		t.Errorf("%+v", st)
	}
	settled(t, dep.Limiter)
}
