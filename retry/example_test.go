package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// A call that may be executed twice is marked, and tried again after a failure that may
// pass.
func ExamplePolicy_Do() {
	p := &retry.Policy{Name: "catalog", Backoff: time.Millisecond, Total: 2 * time.Second}

	err := p.Do(retry.Idempotent(context.Background()), func(ctx context.Context, attempt int) error {
		fmt.Println("attempt", attempt)
		if attempt < 3 {
			return errors.New("connection reset")
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// <nil>
}

// A call that must not be executed twice is tried again only if it was certainly not
// executed. Here the card may have been charged before the connection broke.
func ExamplePolicy_Do_notIdempotent() {
	p := &retry.Policy{Name: "payments", Backoff: time.Millisecond}

	attempts := 0
	err := p.Do(context.Background(), func(ctx context.Context, attempt int) error {
		attempts = attempt
		if attempt == 1 {
			return retry.NotExecuted(errors.New("503: the queue is full"))
		}
		return errors.New("connection reset")
	})
	var e *retry.Error
	fmt.Println(attempts, errors.As(err, &e) && e.Stop == retry.StopPermanent)
	// Output: 2 true
}

// A function that does more than one thing says what was done before the part that failed:
// that a limiter refused the second step is no reason to charge again, here or further up.
func ExampleExecuted() {
	p := &retry.Policy{Name: "orders", Backoff: time.Millisecond}
	refused := &goodput.Rejection{Limiter: "mail", Reason: goodput.QueueFull, RetryAfter: time.Millisecond}

	charged := 0
	err := p.Do(context.Background(), func(ctx context.Context, attempt int) error {
		charged++ // the first step has succeeded
		return retry.Executed(refused)
	})
	fmt.Println(charged, errors.Is(err, goodput.ErrRejected))
	// Output: 1 false
}

// What a policy does, and what came of it.
func ExamplePolicy_Explain() {
	p := &retry.Policy{Backoff: time.Millisecond, Total: 2 * time.Second}

	_ = p.Do(retry.Idempotent(context.Background()), func(ctx context.Context, attempt int) error {
		if attempt == 1 {
			return errors.New("connection reset")
		}
		return nil
	})
	fmt.Print(p.Explain())
	// Output:
	// attempts: at most 3, the n-th retry after 0 to min(1ms x 2^(n-1), 10s), all within 2s
	// hints: a server is waited for up to 1m0s
	// nested: one attempt inside an attempt of a call outside
	// budget: 1 of max(0.1 x 1 call, 10) retries in 10s, 9 left
	// so far: 1 call, 2 attempts made by 1 of them (x 2.000)
	// calls ended: 1 answered
}

// An adapter of a protocol makes the attempts itself.
func ExamplePolicy_Begin() {
	p := &retry.Policy{Backoff: time.Millisecond}
	answers := []int{503, 502, 200}

	c := p.Begin(retry.Idempotent(context.Background()))
	for {
		_, cancel := c.Context()
		status := answers[c.Attempt()-1]
		cancel()
		stop := c.Again(retry.HTTPFault(status, http.Header{}, time.Now()))
		fmt.Println(c.Attempt(), status, stop)
		if stop != retry.NoStop {
			break
		}
	}
	// Output:
	// 2 503 retry
	// 3 502 retry
	// 3 200 answered
}

// A dependency that refuses everything is sent one call in ten.
func ExampleThrottle() {
	t := &retry.Throttle{}
	call := func() error {
		if t.Refuses() {
			return t.Err()
		}
		t.Refused() // 503: the server has refused it
		return errors.New("503")
	}
	kept := 0
	for range 1000 {
		if errors.Is(call(), retry.ErrThrottled) {
			kept++
		}
	}
	fmt.Println(kept > 800, t.Stats().Chance)
	// Output: true 0.9
}

// Policies that load the same service share a budget.
func ExampleBudget() {
	var budget retry.Budget
	read := &retry.Policy{Name: "read", Budget: &budget}
	write := &retry.Policy{Name: "write", Budget: &budget, Attempts: 2}

	fmt.Println(read.Stats().Budget)
	fmt.Println(write.Stats().Budget.Left)
	// Output:
	// 0 of max(0.1 x 0 calls, 10) retries in 10s
	// 10
}

// What a response allows: it was refused before anything was done.
func ExampleHTTPFault() {
	h := http.Header{"Goodput-Rejected": {"queue_full"}, "Retry-After": {"2"}}
	f := retry.HTTPFault(503, h, time.Now())
	fmt.Println(f.Verdict(), f.NotExecuted, f.Hint)
	// Output: retryable true to come back in 2s ("2")
}

// With a client of net/http: the response says what another attempt may do.
func ExampleFault_Mark() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Goodput-Attempt") == "1" {
			w.Header().Set("Goodput-Rejected", "queue_full")
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()

	p := &retry.Policy{Name: "orders", Total: 2 * time.Second}
	err := p.Do(context.Background(), func(ctx context.Context, attempt int) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, nil)
		if err != nil {
			return retry.Never(err)
		}
		req.Header.Set("Goodput-Attempt", strconv.Itoa(retry.AttemptFrom(ctx)))
		res, err := srv.Client().Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		fmt.Println(attempt, res.Status)
		if res.StatusCode >= 400 {
			return retry.HTTPFault(res.StatusCode, res.Header, time.Now()).Mark(errors.New(res.Status))
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 503 Service Unavailable
	// 2 200 OK
	// <nil>
}

// A fault that is not in the table as this client needs it.
func ExamplePolicy_classify() {
	p := &retry.Policy{Classify: func(f retry.Fault) retry.Verdict {
		if f.Status == 500 && f.Idempotent { // of this service, a moment and no defect
			return retry.VerdictRetry
		}
		return f.Verdict()
	}}
	fmt.Println(p.Classify(retry.Fault{Status: 500, Idempotent: true}), p.Classify(retry.Fault{Status: 501}))
	// Output: retryable final
}

func ExampleHTTPHint() {
	now := time.Now()
	fmt.Println(retry.HTTPHint(http.Header{"Retry-After": {"120"}}, now))
	fmt.Println(retry.HTTPHint(http.Header{
		"Retry-After": {"Sun, 06 Nov 1994 08:49:47 GMT"},
		"Date":        {"Sun, 06 Nov 1994 08:49:37 GMT"},
	}, now))
	fmt.Println(retry.GRPCHint("-1"))
	// Output:
	// to come back in 2m0s ("120")
	// to come back in 10s ("Sun, 06 Nov 1994 08:49:47 GMT")
	// not to come back ("-1")
}

// A server that was asked a second time says so to those that it asks.
func ExampleWithAttempt() {
	ctx := retry.WithAttempt(context.Background(), 2) // from Goodput-Attempt

	p := &retry.Policy{}
	_ = p.Do(ctx, func(ctx context.Context, attempt int) error {
		fmt.Println("attempt", attempt, "of this call, for the server", retry.AttemptFrom(ctx))
		return nil
	})
	// Output: attempt 1 of this call, for the server 2
}
