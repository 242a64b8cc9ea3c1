package goodputhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

func ExampleHandler() {
	lim := goodput.New(goodput.Config{
		Limit:     limit.Fixed(60),        // what may run at once
		Objective: 400 * time.Millisecond, // p99 of wait + service
	})
	search := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "found")
	})
	http.Handle("/search", goodputhttp.Handler(lim, search))

	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/search", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 found
}

// Two classes with a limiter each, and streams with none.
func ExampleServer() {
	checkout := goodput.New(goodput.Config{Name: "checkout", Limit: limit.Fixed(20), Objective: 300 * time.Millisecond})
	rest := goodput.New(goodput.Config{Name: "rest", Limit: limit.Fixed(40), Objective: time.Second})

	h := &goodputhttp.Server{
		Limiter: func(r *http.Request) *goodput.Limiter {
			switch {
			case strings.HasPrefix(r.URL.Path, "/events/"):
				return nil
			case strings.HasPrefix(r.URL.Path, "/checkout/"):
				return checkout
			}
			return rest
		},
		Work: func(r *http.Request) goodput.Work {
			if strings.HasPrefix(r.URL.Path, "/report/") {
				return goodput.Work{Cost: 4, Priority: goodput.Background}
			}
			return goodput.Work{}
		},
		Deadline:    2 * time.Second,  // of who brings none
		DeadlineCap: 10 * time.Second, // whatever anybody brings
		Next:        http.NotFoundHandler(),
	}
	srv := &http.Server{
		Handler:     h,
		ConnContext: goodputhttp.ConnContext, // notices clients that leave while they wait
	}
	_ = srv // srv.ListenAndServe()

	// A caller whose time is over on arrival.
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Expect-Within", "0")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Goodput-Rejected"))
	fmt.Print(w.Body)
	// Output:
	// 504 deadline
	// The time limit of the request passed before it could start.
}

// A reverse proxy tells its upstream how much of the caller's time is left.
func ExampleForwardDeadline() {
	upstream, _ := url.Parse("http://127.0.0.1:9000")
	proxy := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(upstream)
			goodputhttp.ForwardDeadline(pr.In.Context(), pr.Out.Header)
		},
	}
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	_ = goodputhttp.Handler(lim, proxy)
}

// What is left is written in the way in which the caller said it, less what the
// next hop needs for the answer.
func ExampleBudget_Forward() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	h := goodputhttp.Handler(lim, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		budget := goodputhttp.BudgetFrom(r.Context())
		later := budget.Deadline.Add(-300 * time.Millisecond) // 700 ms have passed
		out := http.Header{}
		budget.Forward(out, later, goodputhttp.HopMargin)
		fmt.Println(budget.Source, out)
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Connect-Timeout-Ms", "1000")
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: Connect-Timeout-Ms map[Connect-Timeout-Ms:[295]]
}
