package goodputhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// Whose caller leaves between two attempts, in the wait or in the queue, gets the cause of
// his context, and the response that nobody reads any more is closed.
func TestTransportClosesTheResponseOfWhoLeaves(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave time.Duration // the second attempt is due after 1 s
	}{
		{"in the wait", time.Second / 2},
		{"in the queue", 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(background)
				time.AfterFunc(c.leave, func() { cancel(errNet) })
				lim := limiter(1, goodput.Config{MaxWait: time.Hour})
				time.AfterFunc(time.Second/4, func() { hold(t, lim, 1) })
				body := &closer{Reader: strings.NewReader(strings.Repeat("busy", settleBytes))}
				first := refusedAfter("1")
				first.Body = body
				res, err := to(&Dependency{Limiter: lim, Retry: &retry.Policy{}}, &script{answers: []*http.Response{first}}).RoundTrip(get(ctx))
				if res != nil || !errors.Is(err, errNet) && !errors.Is(err, context.Canceled) {
					t.Errorf("%v %v", res, err)
				}
				if body.closed.Load() == 0 {
					t.Error("the response is open, and nobody has it")
				}
			})
		})
	}
}

// Whose body cannot be had again gives the slot of that attempt back, unused, and has the
// answer of the one before it.
func TestTransportWithoutTheBodyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limiter(1, goodput.Config{})
		r := get(background)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body")), 4
		r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("the file is gone") }
		s := &script{answers: []*http.Response{respond(503, "busy")}}
		res, err := to(&Dependency{Limiter: lim, Retry: &retry.Policy{}}, s).RoundTrip(r)
		if err != nil || res.StatusCode != 503 || text(t, res) != "busy" || len(s.sent) != 1 {
			t.Errorf("%v %v, sent %d times", res, err, len(s.sent))
		}
		outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Failed: 1, goodput.Abandoned: 1})
	})
}

// A body of a refusal that never ends does not hold up the next attempt.
func TestTransportDoesNotWaitForTheBodyOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := refusedAfter("1")
		first.Body = &stuck{closed: make(chan struct{})}
		s := &script{answers: []*http.Response{first}}
		res, err := to(&Dependency{Retry: &retry.Policy{}}, s).RoundTrip(get(background))
		if err != nil {
			t.Fatal(err)
		}
		text(t, res)
		if wait := s.at[1].Sub(s.at[0]); wait != time.Second { // it was dropped meanwhile
			t.Errorf("sent again after %v, want the 1 s of the hint", wait)
		}
	})
}

// A stuck body has nothing to read until it is closed.
type stuck struct {
	once   sync.Once
	closed chan struct{}
}

func (s *stuck) Read([]byte) (int, error) { <-s.closed; return 0, errNet }

func (s *stuck) Close() error { s.once.Do(func() { close(s.closed) }); return nil }

// The slot of an attempt that another one follows is back before the wait, and that of the
// last one is held to the end of its body, whoever decides which it is.
func TestTransportClassifyAndTheSlot(t *testing.T) {
	for _, c := range []struct {
		name     string
		status   int
		classify func(retry.Fault) retry.Verdict
		sent     int
		held     int // by the response that is returned
	}{
		{"503", 503, nil, 2, 0},
		{"500", 500, nil, 1, 1},
		{"500 that is retryable here", 500, func(retry.Fault) retry.Verdict { return retry.VerdictRetry }, 2, 0},
		{"503 that is final here", 503, func(retry.Fault) retry.Verdict { return retry.VerdictFinal }, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
				s := &script{answers: []*http.Response{respond(c.status, "no"), respond(200, "")}}
				res, err := to(&Dependency{Limiter: lim, Retry: &retry.Policy{Classify: c.classify}}, s).RoundTrip(get(background))
				if err != nil {
					t.Fatal(err)
				}
				if held := lim.Stats().InUse; len(s.sent) != c.sent || held != c.held {
					t.Errorf("sent %d times, %d slots held by the response; want %d and %d", len(s.sent), held, c.sent, c.held)
				}
				text(t, res)
				settled(t, lim)
			})
		})
	}
}

// That an attempt took too long for itself is no reason to keep its slot through the wait
// either: its call has more time.
func TestTransportOwnTimeAndTheSlot(t *testing.T) {
	for perAttempt, want := range map[time.Duration]int{time.Second: 2, 0: 1} {
		synctest.Test(t, func(t *testing.T) {
			lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
			s := &script{answers: []*http.Response{respond(200, "x", "Grpc-Status: 4")}}
			res, err := to(&Dependency{Limiter: lim, Retry: &retry.Policy{PerAttempt: perAttempt}}, s).
				RoundTrip(get(background, "Content-Type: application/grpc"))
			if err != nil || len(s.sent) != want {
				t.Fatalf("PerAttempt %v: %v, sent %d times, want %d", perAttempt, err, len(s.sent), want)
			}
			text(t, res)
			settled(t, lim)
		})
	}
}

// Hedge alone repeats nothing that failed; Total alone bounds the call, and its server is
// told.
func TestTransportPolicyByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []*http.Response{respond(503, ""), nil}}
		tr := to(&Dependency{Hedge: &Hedge{}}, s)
		if res, err := tr.RoundTrip(get(background)); err != nil || res.StatusCode != 503 || len(s.sent) != 1 {
			t.Errorf("hedged: %v %v, sent %d times", res, err, len(s.sent))
		}
		if res, err := tr.RoundTrip(get(background)); err != errNet || len(s.sent) != 2 {
			t.Errorf("hedged: %v %v, sent %d times", res, err, len(s.sent))
		}

		start, told := time.Now(), ""
		_, err := to(&Dependency{Retry: &retry.Policy{Total: time.Second}}, base(func(r *http.Request) (*http.Response, error) {
			told = r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms")
			<-r.Context().Done()
			return nil, r.Context().Err()
		})).RoundTrip(get(background))
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Second || told != "995" {
			t.Errorf("Total: %v after %v, and the server was told %q", err, took, told)
		}
	})
}
