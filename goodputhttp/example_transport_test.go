package goodputhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/retry"
)

// A service that is called: 20 requests at once, three attempts each as far as the retry
// budget goes, and the time that is left in a header that it understands.
func ExampleTransport() {
	var attempts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attempts.Add(1) == 1 {
			w.Header().Set("Goodput-Rejected", "queue_full") // not executed
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "paid, at attempt "+r.Header.Get("Goodput-Attempt"))
	}))
	defer server.Close()

	payments := &goodputhttp.Dependency{
		Limiter: goodput.New(goodput.Config{
			Name: "payments", Limit: limit.Fixed(20), Objective: 500 * time.Millisecond,
		}),
		Retry:    &retry.Policy{Backoff: 10 * time.Millisecond},
		Deadline: goodputhttp.DialectSeconds, // Expect-Within
	}
	client := &http.Client{Transport: &goodputhttp.Transport{
		Dependency: func(*http.Request) *goodputhttp.Dependency { return payments },
	}}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
	res, err := client.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	fmt.Printf("%d %s\n", res.StatusCode, body)
	fmt.Println(payments.Stats().Shed, "refused")
	// Output:
	// 200 paid, at attempt 2
	// 1 refused
}

// What was not sent says so: nothing was executed, and nothing reached the service.
func ExampleUnsent() {
	search := &goodputhttp.Dependency{Name: "search"}
	client := &http.Client{Transport: &goodputhttp.Transport{
		Dependency: func(*http.Request) *goodputhttp.Dependency { return search },
	}}
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://search.internal/", nil)
	_, err := client.Do(r)

	var unsent *goodputhttp.Unsent
	fmt.Println(errors.As(err, &unsent), errors.Is(err, goodput.ErrRejected), errors.Is(err, context.DeadlineExceeded))
	fmt.Println(unsent)
	// Output:
	// true true true
	// goodputhttp: the request to search was not sent: its deadline has passed
}

// One limiter for each host, and what has become of each.
func ExampleByHost() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	hosts := goodputhttp.ByHost(func(host string) *goodputhttp.Dependency {
		return &goodputhttp.Dependency{
			Limiter: goodput.New(goodput.Config{Name: host, Limit: limit.Fixed(4)}),
			Retry:   &retry.Policy{},
		}
	}, goodputhttp.DefaultMaxHosts)
	client := &http.Client{Transport: &goodputhttp.Transport{Dependency: hosts.Dependency}}

	for range 3 {
		res, err := client.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = res.Body.Close()
	}
	for host, dep := range hosts.All() { // in the order of their names
		fmt.Println(host == server.Listener.Addr().String(), dep.Stats().Attempts)
	}
	// Output: true 3
}

// The slowest 5 % of the reads are sent a second time.
func ExampleHedge() {
	reads := &goodputhttp.Dependency{
		Limiter: goodput.New(goodput.Config{Name: "reads", Limit: limit.Fixed(50)}),
		Retry:   &retry.Policy{Budget: &retry.Budget{Ratio: 0.06}}, // hedges are spent from it too
		Hedge:   &goodputhttp.Hedge{Quantile: 0.95},
	}
	client := &http.Client{Transport: &goodputhttp.Transport{
		Dependency: func(r *http.Request) *goodputhttp.Dependency { return reads },
	}}
	_ = client
	fmt.Println(reads.Hedge.Delay()) // nothing is known yet
	// Output: 0s
}

// A reverse proxy between two limits: the front door's, and that of the upstream.
func ExampleProxyError() {
	upstream, _ := url.Parse("http://127.0.0.1:9000")
	dep := &goodputhttp.Dependency{
		Limiter: goodput.New(goodput.Config{Name: "upstream", Limit: limit.Fixed(0)}), // nothing may run there
	}
	front := goodputhttp.Handler(
		goodput.New(goodput.Config{Limit: limit.Fixed(60)}),
		&httputil.ReverseProxy{
			Rewrite:      func(pr *httputil.ProxyRequest) { pr.SetURL(upstream) },
			Transport:    &goodputhttp.Transport{Dependency: func(*http.Request) *goodputhttp.Dependency { return dep }},
			ErrorHandler: goodputhttp.ProxyError,
		})

	w := httptest.NewRecorder()
	front.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Code, w.Header().Get("Goodput-Rejected"))
	// Output: 503 unavailable
}

// A handler that has written an order and is refused a connection for the next step. Its client
// learns when to come back, and not that nothing was done.
func ExampleRefuse() {
	stock := goodput.New(goodput.Config{Name: "stock", Limit: limit.Fixed(0)}) // nothing may run there
	orders := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// an order is written here
		slot, err := stock.Acquire(r.Context())
		if err != nil {
			if !goodputhttp.Refuse(w, r, err) {
				http.Error(w, "no stock", http.StatusInternalServerError)
			}
			return
		}
		defer slot.Release()
		fmt.Fprintln(w, "ordered")
	})

	w := httptest.NewRecorder()
	orders.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", nil))
	fmt.Println(w.Code, w.Header().Get("Retry-After") != "", w.Header().Get("Goodput-Rejected") == "")
	fmt.Print(w.Body)
	// Output:
	// 503 true true
	// Overloaded: the request was not completed. A part of it may have been done.
}

func ExampleDependency_Explain() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	search := &goodputhttp.Dependency{Name: "search", Hedge: &goodputhttp.Hedge{}, Retry: &retry.Policy{}}
	client := &http.Client{Transport: &goodputhttp.Transport{
		Dependency: func(*http.Request) *goodputhttp.Dependency { return search },
	}}
	for _, within := range []time.Duration{10 * time.Second, -time.Second} {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if res, err := client.Do(r); err == nil {
			_ = res.Body.Close()
		}
		cancel()
	}
	fmt.Print(search.Explain())
	// Output:
	// search: 2 calls, 1 attempt sent, 0 bodies open
	//   again    0 retries sent, 0 hedges sent of which 0 won; a hedge starts once 100 answers are known
	//   refused  0 of the attempts sent, by the service or one behind it
	//   kept     1 attempt here and not sent: 0 by the throttle, 0 by the limiter, 1 with no time left
	//   retry    attempts: at most 3, the n-th retry after 0 to min(50ms x 2^(n-1), 10s)
	//            hints: a server is waited for up to 1m0s
	//            nested: one attempt inside an attempt of a call outside
	//            budget: 0 of max(0.1 x 1 call, 10) retries in 10s, 10 left
	//            so far: 2 calls, 1 attempt made by 1 of them (x 1.000), 1 attempt kept here and not sent
	//            calls ended: 1 answered, 1 kept
}
