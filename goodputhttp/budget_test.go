package goodputhttp

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

const grpcKind = "Content-Type: application/grpc"

// Every source of a deadline, and who wins. The choice is in Budget.Source.
func TestBudget(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name          string
		header        []string
		context       time.Duration // 0: none
		deadline, cap time.Duration
		left          time.Duration // 0: no deadline; -1: over on arrival
		source        string
		errors        int
	}{
		{name: "nothing"},
		{name: "default", deadline: 2, left: 2, source: "default"},
		{name: "a header beats the default", header: []string{"Expect-Within: 9"}, deadline: 2, left: 9, source: "Expect-Within"},
		{name: "so does a context", context: 9, deadline: 2, left: 9, source: "context"},
		{name: "cap alone", cap: 5, left: 5, source: "cap"},
		{name: "cap shortens a header", header: []string{"Connect-Timeout-Ms: 9000"}, cap: 5, left: 5, source: "cap"},
		{name: "cap shortens the default", deadline: 9, cap: 5, left: 5, source: "cap"},
		{name: "a header within the cap", header: []string{"Connect-Timeout-Ms: 1000"}, cap: 5, left: 1, source: "Connect-Timeout-Ms"},
		{name: "the earliest of several", header: []string{grpcKind, "Grpc-Timeout: 4S", "Expect-Within: 3", "Connect-Timeout-Ms: 8000"}, left: 3, source: "Expect-Within"},
		{name: "context before header", header: []string{"Expect-Within: 3"}, context: 2, left: 2, source: "context"},
		{name: "grpc-timeout", header: []string{grpcKind, "Grpc-Timeout: 4S"}, left: 4, source: "Grpc-Timeout"},
		{name: "grpc-timeout without gRPC", header: []string{"Grpc-Timeout: 4S"}},
		{name: "grpc-timeout 0", header: []string{grpcKind, "Grpc-Timeout: 0n"}, left: -1, source: "Grpc-Timeout"},
		{name: "expect-within 0", header: []string{"Expect-Within: 0"}, left: -1, source: "Expect-Within"},
		{name: "connect 0", header: []string{"Connect-Timeout-Ms: 0"}, left: -1, source: "Connect-Timeout-Ms"},
		{name: "Envoy 0 gives none, so the default", header: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 0"}, deadline: 2, left: 2, source: "default"},
		{name: "Envoy 0 and the cap", header: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 0"}, cap: 2, left: 2, source: "cap"},
		{name: "Envoy 0", header: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 0"}},
		{name: "malformed is ignored", header: []string{"Expect-Within: NaN"}, deadline: 2, left: 2, source: "default", errors: 1},
		{name: "duplicates", header: []string{"Expect-Within: 5", "Expect-Within: 3"}, left: 3, source: "Expect-Within", errors: 1},
		// C051 (envoyproxy/envoy#8586): a negative value hides nothing.
		{name: "C051", header: []string{"X-Envoy-Expected-Rq-Timeout-Ms: -1", "Connect-Timeout-Ms: 20000"}, deadline: 15, left: 20, source: "Connect-Timeout-Ms", errors: 1},
		{name: "C051 both", header: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 30000", "Connect-Timeout-Ms: 20000"}, deadline: 15, left: 20, source: "Connect-Timeout-Ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Server{Deadline: c.deadline * time.Second, DeadlineCap: c.cap * time.Second}
			r := request(c.header...)
			if c.context > 0 {
				ctx, cancel := context.WithDeadline(background, now.Add(c.context*time.Second))
				defer cancel()
				r = r.WithContext(ctx)
			}
			b := s.budget(r, now, isGRPC(r.Header))
			var want time.Time
			if c.left != 0 {
				want = now.Add(max(c.left, 0) * time.Second)
			}
			if !b.Deadline.Equal(want) || b.Source != c.source {
				t.Errorf("%v by %q, want %v by %q", b.Deadline.Sub(now), b.Source, c.left*time.Second, c.source)
			}
			var errors uint64
			for _, n := range s.Stats().DeadlineErrors {
				errors += n
			}
			if errors != uint64(c.errors) {
				t.Errorf("%d errors counted, want %d", errors, c.errors)
			}
		})
	}
}

func TestForward(t *testing.T) {
	now := time.Now()
	const margin = 5 * time.Millisecond
	for _, c := range []struct {
		name   string
		server *Server
		header []string
		after  time.Duration // waited
		want   http.Header
	}{
		{name: "nothing is given, nothing is added", want: http.Header{}},
		{
			name: "the default is told to the next hop", server: &Server{Deadline: 2 * time.Second}, after: time.Second,
			want: http.Header{"X-Envoy-Expected-Rq-Timeout-Ms": {"995"}},
		},
		{
			name: "in gRPC's own way", server: &Server{Deadline: 2 * time.Second}, header: []string{grpcKind}, after: time.Second,
			want: http.Header{"Content-Type": {"application/grpc"}, "Grpc-Timeout": {"995000u"}},
		},
		{
			name: "the header that came, after 300 ms in the queue", header: []string{"Connect-Timeout-Ms: 1000"}, after: 300 * time.Millisecond,
			want: http.Header{"Connect-Timeout-Ms": {"695"}},
		},
		{
			name: "rounded down", header: []string{"Expect-Within: 1"}, after: 300*time.Millisecond + 1,
			want: http.Header{"Expect-Within": {"0.694"}},
		},
		{
			name: "all that came, and the cap binds all of them", server: &Server{DeadlineCap: time.Second},
			header: []string{"Expect-Within: 3", "X-Envoy-Expected-Rq-Timeout-Ms: 0"},
			want:   http.Header{"Expect-Within": {"0.995"}, "X-Envoy-Expected-Rq-Timeout-Ms": {"995"}},
		},
		{
			name: "0 without a deadline stays", header: []string{"X-Envoy-Expected-Rq-Timeout-Ms: 0"},
			want: http.Header{"X-Envoy-Expected-Rq-Timeout-Ms": {"0"}},
		},
		{
			name: "duplicates become one", header: []string{"Expect-Within: 3", "Expect-Within: 2"},
			want: http.Header{"Expect-Within": {"1.995"}},
		},
		{
			name: "malformed ones are dropped", server: &Server{Deadline: time.Second}, header: []string{"Expect-Within: NaN"},
			want: http.Header{"X-Envoy-Expected-Rq-Timeout-Ms": {"995"}},
		},
		{
			name: "but not gRPC's: its server answers", server: &Server{Deadline: time.Second}, header: []string{grpcKind, "Grpc-Timeout: 5s"},
			want: http.Header{"Content-Type": {"application/grpc"}, "Grpc-Timeout": {"5s"}, "X-Envoy-Expected-Rq-Timeout-Ms": {"995"}},
		},
		{
			name: "nine digits are too many", server: &Server{DeadlineCap: 2 * time.Second}, header: []string{grpcKind, "Grpc-Timeout: 100000000n"}, after: time.Second,
			want: http.Header{"Content-Type": {"application/grpc"}, "Grpc-Timeout": {"100000000n"}, "X-Envoy-Expected-Rq-Timeout-Ms": {"995"}},
		},
		{
			name: "beside another header it is told there", header: []string{grpcKind, "Grpc-Timeout: 5s", "Connect-Timeout-Ms: 1000"},
			want: http.Header{"Content-Type": {"application/grpc"}, "Grpc-Timeout": {"5s"}, "Connect-Timeout-Ms": {"995"}},
		},
		{
			name: "and nowhere if nothing is to be told", server: &Server{Deadline: time.Second, Forward: DialectNone}, header: []string{grpcKind, "Grpc-Timeout: 5s"},
			want: http.Header{"Content-Type": {"application/grpc"}, "Grpc-Timeout": {"5s"}},
		},
		{
			name: "nothing left: the least there is", header: []string{grpcKind, "Grpc-Timeout: 1m"}, after: time.Second,
			want: http.Header{"Content-Type": {"application/grpc"}, "Grpc-Timeout": {"1n"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.server == nil {
				c.server = new(Server)
			}
			r := request(c.header...)
			b := c.server.budget(r, now, isGRPC(r.Header))
			for range 2 { // a retry at the same instant says the same
				b.Forward(r.Header, now.Add(c.after), margin)
				if len(r.Header) != len(c.want) {
					t.Errorf("%v, want %v", r.Header, c.want)
				}
				for name, v := range c.want {
					if got := r.Header[name]; len(got) != 1 || got[0] != v[0] {
						t.Errorf("%v, want %v", r.Header, c.want)
					}
				}
			}
		})
	}
}

// C049 for every header: what is forwarded is never longer than what is left,
// whatever the margin.
func TestC049ForwardNeverExtends(t *testing.T) {
	now := time.Now()
	for _, left := range []time.Duration{
		1, 99 * time.Millisecond, 100 * time.Millisecond, time.Hour, 100_080 * time.Second, 30 * 24 * time.Hour, maxBudget,
	} {
		b := Budget{Deadline: now.Add(left), given: 1<<numDialects - 1, grpc: true}
		h := http.Header{}
		b.Forward(h, now, 0)
		for i := range dialects {
			value := h.Get(dialects[i].header)
			got, ok := dialects[i].parse(value)
			least := time.Millisecond // 0 would mean for ever
			if i == grpcTimeout {
				least = 1
			}
			if !ok || got > max(left, least) {
				t.Errorf("%s: %v left, %q is longer", dialects[i].header, left, value)
			}
		}
	}
}

// C053 (envoyproxy/envoy#7358): two of ours in a row. The client gives 200 ms,
// the second hop allows 5 s and works with what is left of the 200 ms.
func TestC053TwoHops(t *testing.T) {
	for name, client := range clients(t) {
		t.Run(name, func(t *testing.T) {
			type seen struct {
				left   time.Duration
				source string
			}
			got := make(chan seen, 1)
			second := start(t, &Server{
				Limiter:     one(limiter(1, goodput.Config{})),
				DeadlineCap: 5 * time.Second,
				Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					deadline, _ := r.Context().Deadline()
					got <- seen{time.Until(deadline), BudgetFrom(r.Context()).Source}
				}),
			})
			target, _ := url.Parse(second.URL)
			first := start(t, &Server{
				Limiter: one(limiter(1, goodput.Config{})),
				Next: &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) {
					pr.SetURL(target)
					ForwardDeadline(pr.In.Context(), pr.Out.Header)
				}},
			})
			// A budget that a loaded machine may use up says nothing: again.
			for range 20 {
				r, _ := http.NewRequest(http.MethodGet, first.URL, nil)
				r.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", "200")
				res, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					continue
				}
				s := receive(t, "second hop", got)
				if s.left > 195*time.Millisecond || s.source != "X-Envoy-Expected-Rq-Timeout-Ms" {
					t.Errorf("second hop has %v by %s, want at most 200 ms - 5 ms", s.left, s.source)
				}
				return
			}
			t.Fatal("no request came through in 200 ms")
		})
	}
}

// C056 (grpc/grpc-java#6514): a deadline in the past is expired on arrival, and
// nothing negative is measured.
func TestC056ExpiredOnArrival(t *testing.T) {
	for name, client := range clients(t) {
		for _, header := range []string{"Expect-Within", "Connect-Timeout-Ms"} {
			lim := limiter(1, goodput.Config{})
			srv := start(t, Handler(lim, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("it ran")
			})))
			r, _ := http.NewRequest(http.MethodGet, srv.URL, nil)
			r.Header.Set(header, "0")
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != 504 || res.Header.Get("Goodput-Rejected") != "deadline" || res.Header.Get("Retry-After") != "" {
				t.Errorf("%s %s: %d %v", name, header, res.StatusCode, res.Header)
			}
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Expired: 1})
		}
	}

	lim := limiter(1, goodput.Config{})
	past := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithDeadline(r.Context(), time.Now().Add(-2*time.Second))
		defer cancel()
		Handler(lim, http.NotFoundHandler()).ServeHTTP(w, r.WithContext(ctx))
	})
	res, err := clients(t)["HTTP/1.1"].Get(start(t, past).URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 504 {
		t.Errorf("2 s late: %d", res.StatusCode)
	}
	st := settled(t, lim)
	if st.Outcomes[goodput.Expired] != 1 {
		t.Errorf("%v", st.Outcomes)
	}
	for i := range st.Wait {
		if mean, ok := st.Wait[i].Mean(); ok && mean < 0 {
			t.Errorf("a negative wait: %v", mean)
		}
	}
}

// C048 over the wire: 99999999 hours, minutes and seconds are very long, and
// the request runs.
func TestC048HugeTimeoutsRun(t *testing.T) {
	srv := start(t, Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if deadline, ok := r.Context().Deadline(); !ok || time.Until(deadline) < 3*365*24*time.Hour {
			t.Errorf("deadline %v, %v", deadline, ok)
		}
	})))
	for _, client := range clients(t) {
		for _, unit := range "HMS" {
			r, _ := http.NewRequest(http.MethodPost, srv.URL, nil)
			r.Header.Set("Content-Type", "application/grpc")
			r.Header.Set("Grpc-Timeout", "99999999"+string(unit))
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.Header.Get("Goodput-Rejected") != "" {
				t.Errorf("%c: refused for %q", unit, res.Header.Get("Goodput-Rejected"))
			}
		}
	}
}

// The budget that remains is on the context of the handler.
func TestDeadlineReachesTheHandler(t *testing.T) {
	s := &Server{Limiter: one(limiter(1, goodput.Config{})), DeadlineCap: time.Hour}
	s.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := BudgetFrom(r.Context())
		deadline, ok := r.Context().Deadline()
		if !ok || !deadline.Equal(b.Deadline) || b.Source != "cap" || time.Until(deadline) > time.Hour {
			t.Errorf("%v %v, budget %v by %q", deadline, ok, b.Deadline, b.Source)
		}
	})
	if res, err := http.Get(start(t, s).URL); err != nil || res.StatusCode != 200 {
		t.Error(res, err)
	}
	if b := BudgetFrom(background); !b.Deadline.IsZero() || b.Source != "" {
		t.Errorf("%v", b)
	}
}
