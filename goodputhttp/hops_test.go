package goodputhttp

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// C053 with everything that may differ between two hops: the header that each speaks, and
// the protocol. The second works with what is left of what the client said, and knows when
// the request arrived at the first.
func TestC053TwoHopsInTheirOwnDialects(t *testing.T) {
	type seen struct {
		source string
		left   time.Duration
		start  string
		header http.Header
	}
	got := make(chan seen, 1)
	second := &Server{
		Limiter: one(limiter(1, goodput.Config{})), DeadlineCap: 5000 * time.Second,
		Trusted: func(*http.Request) bool { return true },
		Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			b := BudgetFrom(r.Context())
			got <- seen{b.Source, time.Until(b.Deadline), r.Header.Get("X-Request-Start"), r.Header}
		}),
	}
	for _, back := range overAll(t, second) {
		target, _ := url.Parse(back.url)
		first := &Server{
			Limiter: one(limiter(1, goodput.Config{})), DeadlineHeaders: []DeadlineHeader{{"X-Mine", FormatGo}},
			Forward: DialectSeconds, ForwardOnly: true, ForwardStart: true, HopMargin: time.Second,
			Next: &httputil.ReverseProxy{Transport: back.client.Transport, Rewrite: func(pr *httputil.ProxyRequest) {
				pr.SetURL(target)
				ForwardDeadline(pr.In.Context(), pr.Out.Header)
			}},
		}
		for _, front := range overAll(t, first) {
			r, _ := http.NewRequest(http.MethodGet, front.url, nil)
			r.Header.Set("X-Mine", "200s")
			before := time.Now()
			res, err := front.client.Do(r)
			if err != nil {
				t.Fatal(front.name, back.name, err)
			}
			text(t, res)
			s := receive(t, "second hop", got)
			if s.source != "Expect-Within" || !about(s.left.Seconds(), 199) || s.header.Get("X-Mine") != "" {
				t.Errorf("%s, %s: %v by %q, %v", front.name, back.name, s.left, s.source, s.header)
			}
			ms, err := strconv.ParseInt(strings.TrimPrefix(s.start, "t="), 10, 64)
			if arrived := time.UnixMilli(ms); err != nil || arrived.Before(before.Add(-time.Millisecond)) || arrived.After(time.Now()) {
				t.Errorf("%s, %s: arrived at %s", front.name, back.name, s.start)
			}
		}
	}
}

// Whoever refuses further down, in whatever dialect, is passed on as it is, with its
// Retry-After; it is a drop and no sample. Without a marker 503 and 429 are answers of the
// service: it may be broken, or the caller have used up what its plan allows, and a client
// that sends too much must not be able to lower the limit of all. Transport, which knows
// that it called a service, takes 429 and 503 with Retry-After for the same as a marker.
func TestRefusedFurtherDown(t *testing.T) {
	for _, c := range []struct {
		header http.Header
		status int
		drop   bool
	}{
		{http.Header{"Goodput-Rejected": {"queue_full"}}, 503, true},
		{http.Header{"Goodput-Rejected": {"doomed"}}, 503, true},
		{http.Header{"Goodput-Rejected": {"quota"}}, 429, false},
		{http.Header{"X-Envoy-Overloaded": {"true"}}, 503, true},
		{http.Header{"Finagle-Http-Nack": {"true"}}, 503, true},
		{http.Header{"Finagle-Http-Nonretryable-Nack": {"true"}}, 503, true},
		{http.Header{"Admission-Control": {"true"}}, 503, true},
		{http.Header{"Content-Type": {"application/grpc"}, "Grpc-Status": {"14"}, "Goodput-Rejected": {"shed"}, "Grpc-Retry-Pushback-Ms": {"2000"}}, 200, true},
		{http.Header{"X-Envoy-Ratelimited": {"true"}}, 429, false},
		{http.Header{}, 503, false},
		{http.Header{}, 429, false},
	} {
		t.Run(fmt.Sprint(c.status, c.header), func(t *testing.T) {
			grpc := c.header.Get("Grpc-Status") != ""
			if !grpc {
				c.header.Set("Retry-After", "7")
			}
			backend := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for name, v := range c.header {
					w.Header()[name] = v
				}
				w.WriteHeader(c.status)
			}))
			target, _ := url.Parse(backend.URL)
			lim := limiter(1, goodput.Config{})
			s := &Server{Limiter: one(lim), Markers: EnvoyMarkers | FinagleMarkers, Next: &httputil.ReverseProxy{
				Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(target) },
			}}
			n := 0
			for _, p := range overAll(t, s) {
				n++
				r, _ := http.NewRequest(http.MethodPost, p.url, nil)
				if grpc {
					r.Header.Set("Content-Type", "application/grpc")
				}
				res, err := p.client.Do(r)
				if err != nil {
					t.Fatal(p.name, err)
				}
				p.isTheirs(t, res)
				text(t, res)
				for name, v := range c.header {
					if got := res.Header[name]; len(got) != 1 || got[0] != v[0] {
						t.Errorf("%s: %s is %q, and was %q", p.name, name, got, v)
					}
				}
				for _, marker := range []string{"Goodput-Rejected", "X-Envoy-Overloaded", "X-Envoy-Ratelimited", "Finagle-Http-Nack", "Finagle-Http-Nonretryable-Nack"} {
					if got := res.Header.Get(marker); got != c.header.Get(marker) {
						t.Errorf("%s: %s was added to what somebody else has answered: %q", p.name, marker, got)
					}
				}
				settled(t, lim)
			}
			if c.drop {
				drops(t, lim, n)
			} else {
				noDrops(t, lim)
			}
		})
	}
}
