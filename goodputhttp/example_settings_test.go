package goodputhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// Callers that say how long they wait in a header of their own, a balancer in front that
// says when a request came to it, and a service behind that knows only Envoy's header.
func ExampleDeadlineHeader() {
	balancers := netip.MustParsePrefix("10.0.0.0/8")
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60), Objective: 400 * time.Millisecond})
	h := &goodputhttp.Server{
		Limiter:         func(*http.Request) *goodput.Limiter { return lim },
		DeadlineHeaders: []goodputhttp.DeadlineHeader{{Name: "X-Server-Timeout", Format: goodputhttp.FormatSeconds}},
		Trusted: func(r *http.Request) bool {
			peer, err := netip.ParseAddrPort(r.RemoteAddr)
			return err == nil && balancers.Contains(peer.Addr())
		},
		Forward:     goodputhttp.DialectEnvoy,
		ForwardOnly: true,
		Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			fmt.Println(goodputhttp.BudgetFrom(r.Context()).Source)
			out := http.Header{"X-Server-Timeout": r.Header["X-Server-Timeout"]} // of the next request
			goodputhttp.ForwardDeadline(r.Context(), out)
			for name, v := range out {
				fmt.Println(name, "has", len(v[0]), "digits")
			}
		}),
	}
	if err := h.Validate(); err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Server-Timeout", "300.0")
	r.RemoteAddr = "10.1.2.3:4711"
	r.Header.Set("X-Request-Start", fmt.Sprintf("t=%d", time.Now().UnixMilli()-2000))
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output:
	// X-Server-Timeout
	// X-Envoy-Expected-Rq-Timeout-Ms has 6 digits
}

// Event streams: a thousand may be open, each counts to its end, and the next is told to
// come back. What they take says nothing of the service, so nothing is learned from it.
func ExampleServer_stream() {
	open := goodput.New(goodput.Config{Name: "events", Limit: limit.Fixed(1000), Depth: goodput.NoQueue, Objective: time.Second})
	events := &goodputhttp.Server{
		Limiter: func(*http.Request) *goodput.Limiter { return open },
		Stream:  true,
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: hello\n\n")
		}),
	}
	w := httptest.NewRecorder()
	events.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/events", nil))
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	// Output: 200 data: hello
}
