package conformance

import (
	"net/http"
	"strconv"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/goodput/goodput"
	kit "github.com/goodput/goodput/conformance"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// A handler is a contestant that stands in front of an http.Handler.
type handler struct {
	name, what, path string // as of a limiter
	of, none         func(limit int, next http.Handler) http.Handler
	opts             kit.HandlerOptions // what it needs beside these
}

var handlers = []handler{
	{
		name: "goodput", what: "`goodputhttp.Handler`, and `ConnContext` in the server",
		of:   func(n int, next http.Handler) http.Handler { return oursHTTP(n, requests, next) },
		none: func(n int, next http.Handler) http.Handler { return oursHTTP(n, goodput.NoQueue, next) },
		opts: kit.HandlerOptions{
			Server:         func(s *http.Server) { s.ConnContext = goodputhttp.ConnContext },
			DeadlineHeader: "Expect-Within", Milliseconds: seconds,
		},
	},
	{
		name: "channel", what: "a buffered channel and a `select` on it and the context of the request, with a `defer`",
		of: channelHTTP, none: noChannelHTTP,
	},
	{
		name: "chi", what: "`middleware.ThrottleBacklog` of chi, and `middleware.Throttle` without a queue", path: "github.com/go-chi/chi/v5",
		of: func(n int, next http.Handler) http.Handler {
			return middleware.ThrottleBacklog(n, requests, patient)(next)
		},
		none: func(n int, next http.Handler) http.Handler { return middleware.Throttle(n)(next) },
	},
	{
		name: "bulkhead", what: "`failsafehttp.NewHandler` with a bulkhead with `WithMaxWaitTime`, and one without", path: "github.com/failsafe-go/failsafe-go",
		of: func(n int, next http.Handler) http.Handler {
			return failsafehttp.NewHandler(next, bulkhead.NewBuilder[*http.Response](uint(n)).WithMaxWaitTime(patient).Build())
		},
		none: func(n int, next http.Handler) http.Handler {
			return failsafehttp.NewHandler(next, bulkhead.New[*http.Response](uint(n)))
		},
	},
	{
		name: "adaptive", what: "`failsafehttp.NewHandler` with an adaptive limiter with `WithLimits(n, n, n)` and `WithQueueing`, and one without", path: "github.com/failsafe-go/failsafe-go",
		of: func(n int, next http.Handler) http.Handler {
			return failsafehttp.NewHandler(next, bounded(n).WithQueueing(requests, requests).Build())
		},
		none: func(n int, next http.Handler) http.Handler {
			return failsafehttp.NewHandler(next, bounded(n).Build())
		},
	},
}

func bounded(n int) adaptivelimiter.Builder[*http.Response] {
	return adaptivelimiter.NewBuilder[*http.Response]().WithLimits(uint(n), uint(n), uint(n))
}

func oursHTTP(n, depth int, next http.Handler) http.Handler {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(n), Objective: patient, Depth: depth})
	return goodputhttp.Handler(lim, next)
}

func channelHTTP(n int, next http.Handler) http.Handler {
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}

func noChannelHTTP(n int, next http.Handler) http.Handler {
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}

// seconds is how Expect-Within is written.
func seconds(ms int) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }
