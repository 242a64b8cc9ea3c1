package goodputhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// A script answers the n-th attempt with its n-th response and keeps what was sent.
type script struct {
	mu      sync.Mutex
	answers []*http.Response // nil is an error
	sent    []http.Header
	bodies  []string
	at      []time.Time
}

var errNet = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	return base(func(r *http.Request) (*http.Response, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		s.sent, s.bodies, s.at = append(s.sent, r.Header), append(s.bodies, string(body)), append(s.at, time.Now())
		if n := len(s.sent); n > len(s.answers) {
			return respond(200, "ok"), nil
		} else if s.answers[n-1] == nil {
			return nil, errNet
		} else {
			return s.answers[n-1], nil
		}
	}).RoundTrip(r)
}

func refusedAfter(after string) *http.Response {
	return respond(503, "busy", "Goodput-Rejected: queue_full", "Retry-After: "+after)
}

// Who is sent again, and who is not: the verdict is retry's, the request is ours.
func TestTransportSendsAgain(t *testing.T) {
	post := func(r *http.Request) { r.Method = http.MethodPost }
	body := func(r *http.Request) {
		post(r)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body")), 4
	}
	rewinds := func(r *http.Request) {
		body(r)
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("body")), nil }
	}
	with := func(f func(*http.Request), name, value string) func(*http.Request) {
		return func(r *http.Request) { f(r); r.Header.Set(name, value) }
	}
	for _, c := range []struct {
		name  string
		req   func(*http.Request)
		dep   *Dependency
		first *http.Response
		sent  int
	}{
		{"GET 503", func(*http.Request) {}, nil, respond(503, "busy"), 2},
		{"GET 200", func(*http.Request) {}, nil, respond(200, "ok"), 1},
		{"GET 404", func(*http.Request) {}, nil, respond(404, "no"), 1},
		{"GET error", func(*http.Request) {}, nil, nil, 2},
		{"PUT 503", func(r *http.Request) { r.Method = http.MethodPut }, nil, respond(503, ""), 2},
		{"POST 503", post, nil, respond(503, "busy"), 1},
		{"POST error", post, nil, nil, 1}, // C072: nobody knows whether it was executed
		{"POST 503, marked", post, nil, refusedAfter("1"), 2},
		{"POST 503 with a key", with(post, "Idempotency-Key", "k"), nil, respond(503, "busy"), 2},
		{"POST 503, said to be idempotent", post, &Dependency{Idempotent: func(*http.Request) bool { return true }}, respond(503, "busy"), 2},
		{"GET 503, said not to be", func(*http.Request) {}, &Dependency{Idempotent: func(*http.Request) bool { return false }}, respond(503, "busy"), 1},
		{"body that is gone", body, nil, refusedAfter("1"), 1},
		{"body that can be had again", rewinds, nil, refusedAfter("1"), 2},
		{"never again", func(*http.Request) {}, nil, respond(503, "busy", "Goodput-Rejected: doomed"), 1},
		{
			"gRPC pushback -1", with(post, "Content-Type", "application/grpc"), nil,
			respond(200, "", "Grpc-Status: 14", "Goodput-Rejected: shed", "Grpc-Retry-Pushback-Ms: -1"), 1,
		},
		{
			"gRPC pushback", with(post, "Content-Type", "application/grpc"), nil,
			respond(200, "", "Grpc-Status: 14", "Goodput-Rejected: shed", "Grpc-Retry-Pushback-Ms: 10"), 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: []*http.Response{c.first}}
				dep := c.dep
				if dep == nil {
					dep = &Dependency{}
				}
				dep.Retry, dep.Limiter = &retry.Policy{}, limiter(1, goodput.Config{})
				r := get(background)
				c.req(r)
				res, err := to(dep, s).RoundTrip(r)
				if len(s.sent) != c.sent {
					t.Fatalf("sent %d times, want %d", len(s.sent), c.sent)
				}
				for i, b := range s.bodies {
					if r.ContentLength > 0 && b != "body" {
						t.Errorf("attempt %d sent %q", i+1, b)
					}
				}
				if st := dep.Stats(); st.Calls != 1 || int(st.Attempts) != c.sent || int(st.Retries) != c.sent-1 {
					t.Errorf("%+v", st)
				}
				switch {
				case c.sent == 1 && c.first == nil:
					if err != errNet {
						t.Errorf("%v, want the error as it came", err)
					}
				case err != nil:
					t.Errorf("%v", err)
				default:
					text(t, res)
				}
				settled(t, dep.Limiter)
			})
		})
	}
}

// The last response comes as it is, with its whole body, small or large, however many
// attempts there were.
func TestTransportReturnsTheLastResponseAsItIs(t *testing.T) {
	for _, size := range []int{0, 1, settleBytes - 1, settleBytes, settleBytes + 1, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			want := strings.Repeat("x", size)
			answers := []*http.Response{}
			for range 3 {
				answers = append(answers, respond(503, want, "X-Mine: 1"))
			}
			dep := &Dependency{Limiter: limiter(1, goodput.Config{}), Retry: &retry.Policy{}}
			res, err := to(dep, &script{answers: answers}).RoundTrip(get(background))
			if err != nil || res.StatusCode != 503 || res.Header.Get("X-Mine") != "1" {
				t.Fatalf("%v %v", res, err)
			}
			if got := text(t, res); got != want {
				t.Errorf("%d bytes, want %d", len(got), size)
			}
			outcomes(t, dep.Limiter, map[goodput.Outcome]uint64{goodput.Failed: 3})
		})
	}
}

// A response that another attempt follows is closed, small or large.
func TestTransportClosesWhatItDoesNotReturn(t *testing.T) {
	for _, size := range []int{1, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			body := &closer{Reader: strings.NewReader(strings.Repeat("x", size))}
			first := respond(503, "")
			first.Body = body
			res, err := to(&Dependency{Retry: &retry.Policy{}}, &script{answers: []*http.Response{first}}).RoundTrip(get(background))
			if err != nil {
				t.Fatal(err)
			}
			text(t, res)
			if body.closed.Load() == 0 {
				t.Errorf("a response of %d bytes is not closed", size)
			}
		})
	}
}

// The wait obeys Retry-After, and nobody's slot is held through it.
func TestTransportHoldsNoSlotWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
		s := &script{answers: []*http.Response{refusedAfter("7")}}
		tr := to(&Dependency{Limiter: lim, Retry: &retry.Policy{}}, s)
		done := make(chan error)
		go func() {
			res, err := tr.RoundTrip(get(background))
			if err == nil {
				err = res.Body.Close()
			}
			done <- err
		}()
		time.Sleep(3 * time.Second)
		slot, ok := lim.TryAcquire()
		if !ok {
			t.Error("the slot is held through the wait")
		}
		slot.Release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if len(s.at) != 2 {
			t.Fatalf("sent %d times", len(s.at))
		}
		if wait := s.at[1].Sub(s.at[0]); wait < 7*time.Second {
			t.Errorf("sent again after %v, want 7 s or more", wait)
		}
	})
}

// A hint beyond the deadline, or a deadline that is near, ends the call with the response.
func TestTransportDoesNotWaitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(background, 5*time.Second)
		defer cancel()
		s := &script{answers: []*http.Response{refusedAfter("7")}}
		before := time.Now()
		res, err := to(&Dependency{Retry: &retry.Policy{}}, s).RoundTrip(get(ctx))
		if err != nil || res.StatusCode != 503 || res.Header.Get("Retry-After") != "7" || time.Since(before) != 0 {
			t.Errorf("%v %v after %v", res, err, time.Since(before))
		}
	})
}

// Who leaves during the wait gets the cause of the context at once.
func TestTransportIsLeftDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(background)
		time.AfterFunc(time.Second, func() { cancel(errNet) })
		before := time.Now()
		_, err := to(&Dependency{Retry: &retry.Policy{}}, &script{answers: []*http.Response{refusedAfter("7")}}).RoundTrip(get(ctx))
		if err != errNet || time.Since(before) != time.Second {
			t.Errorf("%v after %v", err, time.Since(before))
		}
	})
}

// A refusal by our own limiter is final: nothing is sent, and nothing is waited for,
// because the limiter has a queue for those who wait.
func TestTransportDoesNotRepeatItsOwnRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
		release := hold(t, lim, 1)
		s := &script{}
		dep := &Dependency{Limiter: lim, Retry: &retry.Policy{}}
		before := time.Now()
		_, err := to(dep, s).RoundTrip(get(background))
		var rej *goodput.Rejection
		if !errors.As(err, &rej) || rej.Reason != goodput.QueueFull || len(s.sent) != 0 || time.Since(before) != 0 {
			t.Errorf("%v, sent %d times", err, len(s.sent))
		}
		if st := dep.Stats(); st.Refused != 1 || st.Attempts != 0 {
			t.Errorf("%+v", st)
		}
		release()
	})
}

// A later attempt that is not sent, for want of a slot or of time, or because the throttle
// keeps it, leaves the answer of the one before it: what the service said, not what we did.
func TestTransportReturnsTheAnswerBeforeAnUnsentAttempt(t *testing.T) {
	for _, c := range []struct {
		name string
		dep  func(t *testing.T) *Dependency
	}{
		{"no slot", func(t *testing.T) *Dependency {
			lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
			time.AfterFunc(time.Millisecond, func() { hold(t, lim, 1) }) // during the wait
			return &Dependency{Limiter: lim}
		}},
		{"throttled", func(t *testing.T) *Dependency {
			th := &retry.Throttle{}
			time.AfterFunc(time.Millisecond, func() {
				for range 1000 { // it keeps nine in ten then: see the loop below
					th.Refused()
				}
			})
			return &Dependency{Throttle: th}
		}},
		{"no time for the way", func(*testing.T) *Dependency { return &Dependency{HopMargin: 3500 * time.Millisecond} }},
	} {
		for _, answered := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for range 100 { // a throttle lets one in ten pass
						ctx, cancel := context.WithTimeout(background, 5*time.Second)
						defer cancel()
						var first *http.Response
						if answered {
							first = respond(503, strings.Repeat("busy", 5000), "Retry-After: 2")
						}
						dep := c.dep(t)
						dep.Retry = &retry.Policy{Backoff: 2 * time.Second}
						s := &script{answers: []*http.Response{first}}
						res, err := to(dep, s).RoundTrip(get(ctx))
						if len(s.sent) != 1 {
							if res != nil {
								res.Body.Close()
							}
							continue // it was sent again: the draw was short, or it passed
						}
						switch {
						case !answered && err != errNet:
							t.Errorf("%v, want the error of the first", err)
						case answered && (err != nil || res.StatusCode != 503 || len(text(t, res)) != 20_000):
							t.Errorf("%v %v", res, err)
						}
						if st := dep.Stats(); st.Retries != 0 || st.OpenBodies != 0 {
							t.Errorf("%+v", st)
						}
						return
					}
					t.Error("always sent again")
				})
			})
		}
	}
}

// The number of the attempt is sent from the second on, counted on from what a client of
// ours said, in the header of the protocol.
func TestTransportSaysWhichAttemptItIs(t *testing.T) {
	for _, c := range []struct {
		header string // of the request
		name   string
		want   [3]string
	}{
		{"", "Goodput-Attempt", [3]string{"", "2", "3"}},
		{"Goodput-Attempt: 2", "Goodput-Attempt", [3]string{"2", "3", "4"}},
		{"Goodput-Attempt: 998", "Goodput-Attempt", [3]string{"998", "999", "999"}},
		{"Goodput-Attempt: many", "Goodput-Attempt", [3]string{"many", "2", "3"}},
		{"Content-Type: application/grpc", "Grpc-Previous-Rpc-Attempts", [3]string{"", "1", "2"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answers: []*http.Response{refusedAfter("0"), refusedAfter("0")}}
			dep := &Dependency{Limiter: limiter(1, goodput.Config{}), Retry: &retry.Policy{}}
			h := []string{}
			if c.header != "" {
				h = append(h, c.header)
			}
			res, err := to(dep, s).RoundTrip(get(background, h...))
			if err != nil {
				t.Fatal(err)
			}
			text(t, res)
			for i, want := range c.want {
				if got := s.sent[i].Get(c.name); got != want {
					t.Errorf("%s: attempt %d says %q, want %q", c.header, i+1, got, want)
				}
			}
		})
	}
}

// Inside an attempt of somebody else's policy the number counts on, and there is one.
func TestTransportInsideAnotherPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []*http.Response{respond(503, ""), respond(503, ""), respond(503, "")}}
		tr := to(&Dependency{Retry: &retry.Policy{}}, s)
		_ = (&retry.Policy{}).Do(retry.Idempotent(background), func(ctx context.Context, _ int) error {
			res, err := tr.RoundTrip(get(ctx))
			if err != nil || res.StatusCode != 503 {
				t.Errorf("%v %v", res, err)
			}
			return errNet
		})
		got := []string{}
		for _, h := range s.sent {
			got = append(got, h.Get("Goodput-Attempt"))
		}
		if !slices.Equal(got, []string{"", "2", "3"}) {
			t.Errorf("%q", got)
		}
	})
}

// An attempt that takes longer than it may is failed, not the call.
func TestTransportPerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		lim := limiter(1, goodput.Config{})
		calls := 0
		var told []string
		tr := to(&Dependency{Limiter: lim, Retry: &retry.Policy{PerAttempt: time.Second}}, base(func(r *http.Request) (*http.Response, error) {
			told = append(told, r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms"))
			if calls++; calls == 1 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return respond(200, "ok"), nil
		}))
		res, err := tr.RoundTrip(get(ctx))
		if err != nil {
			t.Fatal(err)
		}
		text(t, res)
		outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Failed: 1, goodput.Completed: 1})
		if told[0] != "995" || told[1] != "995" { // 1 s, less the way
			t.Errorf("the server was told %q", told)
		}
	})
}

// The retry budget bounds what an outage costs: one retry in ten, and ten in reserve.
func TestTransportSpendsTheRetryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dep := &Dependency{Retry: &retry.Policy{Budget: &retry.Budget{}}}
		tr := to(dep, base(func(*http.Request) (*http.Response, error) { return respond(503, ""), nil }))
		const calls = 1000
		for range calls {
			if _, err := tr.RoundTrip(get(background)); err != nil {
				t.Fatal(err)
			}
		}
		if n := dep.Stats().Retries; n == 0 || n > calls/10+10 {
			t.Errorf("%d retries of %d calls", n, calls)
		}
	})
}

// C062 (hashicorp/go-retryablehttp#297), C063 (urllib3/urllib3#3743): what is absurdly long
// is never a short wait: the answer comes back at once, with its header. C065
// (NousResearch/hermes-agent#84738): a date counts by the clock of the server.
func TestC062HintsThroughTransport(t *testing.T) {
	for _, c := range []struct {
		header      []string
		least, most time.Duration // of the wait; 0: there is no other attempt
	}{
		{[]string{"Retry-After: 9223372037"}, 0, 0},
		{[]string{"Retry-After: 9223372036854775807"}, 0, 0},
		{[]string{"Retry-After: 9999999999"}, 0, 0},
		{[]string{"Retry-After: 2147483648"}, 0, 0},
		{[]string{"Retry-After: 00000012"}, 12 * time.Second, 18 * time.Second},
		{[]string{"Retry-After: Sun, 06 Nov 1994 08:49:47 GMT", "Date: Sun, 06 Nov 1994 08:49:37 GMT"}, 10 * time.Second, 15 * time.Second},
		{[]string{"Retry-After: Sunday, 06-Nov-94 08:49:47 GMT", "Date: Sun, 06 Nov 1994 08:49:37 GMT"}, 10 * time.Second, 15 * time.Second},
		{[]string{"Retry-After: Sun Nov  6 08:49:47 1994", "Date: Sun, 06 Nov 1994 08:49:37 GMT"}, 10 * time.Second, 15 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answers: []*http.Response{respond(503, "", c.header...)}}
			start := time.Now()
			res, err := to(&Dependency{Retry: &retry.Policy{}}, s).RoundTrip(get(background))
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			if again := len(s.sent) == 2; again != (c.least > 0) || took < c.least || took > c.most || !again && res.StatusCode != 503 {
				t.Errorf("%q: %d attempts, %v", c.header, len(s.sent), took)
			}
		})
	}
}

// C072: a POST whose answer was lost after the server had done the work is not sent again.
func TestC072LostAnswerOfAPost(t *testing.T) {
	var done atomic.Int32
	srv := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		done.Add(1)
		panic(http.ErrAbortHandler)
	}))
	for proto, b := range bases(t) {
		done.Store(0)
		dep := &Dependency{Retry: &retry.Policy{Backoff: 1}}
		client := &http.Client{Transport: to(dep, b), Timeout: patience}
		if _, err := client.Post(srv.URL, "text/plain", strings.NewReader("pay 5")); err == nil {
			t.Errorf("%s: no error", proto)
		}
		if n := done.Load(); n != 1 {
			t.Errorf("%s: done %d times", proto, n)
		}
	}
}

// The connection of a refusal is used again for the next attempt: its body is read.
func TestTransportKeepsTheConnectionOfARefusal(t *testing.T) {
	var n atomic.Int32
	var from sync.Map
	srv := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from.Store(r.RemoteAddr, true)
		if n.Add(1)%3 != 0 {
			w.Header().Set("Goodput-Rejected", "queue_full")
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, strings.Repeat("busy ", 100))
		}
	}))
	dep := &Dependency{Retry: &retry.Policy{Backoff: 1}}
	client := &http.Client{Transport: to(dep, bases(t)["HTTP/1.1"]), Timeout: patience}
	for range 3 {
		res, err := client.Get(srv.URL)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v %v", res, err)
		}
		text(t, res)
	}
	conns := 0
	from.Range(func(any, any) bool { conns++; return true })
	if n.Load() != 9 || conns != 1 {
		t.Errorf("%d attempts over %d connections", n.Load(), conns)
	}
}
