package goodputhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// A request that says that it is a retry gives its place to a first attempt; who says
// nothing, or what cannot be read, is a first attempt.
func TestServerShedsRetriesFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		work   func(*http.Request) goodput.Work
		retry  bool
	}{
		{"nothing said", nil, nil, false},
		{"the first", []string{"Goodput-Attempt: 1"}, nil, false},
		{"the second", []string{"Goodput-Attempt: 2"}, nil, true},
		{"0", []string{"Goodput-Attempt: 0"}, nil, false},
		{"what is no number", []string{"Goodput-Attempt: two"}, nil, false},
		{"Work has other things to say", []string{"Goodput-Attempt: 2"}, func(*http.Request) goodput.Work { return goodput.Work{Cost: 1} }, true},
		{"Work knows better", []string{"Goodput-Attempt: 2"}, func(*http.Request) goodput.Work { return goodput.Work{Attempt: 1} }, false},
		{"Work says so", nil, func(*http.Request) goodput.Work { return goodput.Work{Attempt: 2} }, true},
		{"gRPC, the first", []string{grpcKind, "Grpc-Previous-Rpc-Attempts: 0"}, nil, false},
		{"gRPC, the second", []string{grpcKind, "Grpc-Previous-Rpc-Attempts: 1"}, nil, true},
		{"the header of gRPC without gRPC", []string{"Grpc-Previous-Rpc-Attempts: 1"}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := limiter(1, goodput.Config{Depth: 1})
				s := &Server{Limiter: one(lim), Next: http.NotFoundHandler(), Work: c.work}
				release := hold(t, lim, 1)
				waits, comes := httptest.NewRecorder(), httptest.NewRecorder()
				go s.ServeHTTP(waits, request(c.header...))
				synctest.Wait()
				go Handler(lim, s.Next).ServeHTTP(comes, request())
				synctest.Wait()
				release()
				synctest.Wait()
				refused, reason := comes, "queue_full"
				if c.retry {
					refused, reason = waits, "displaced"
				}
				if got := refused.Header().Get("Goodput-Rejected"); got != reason {
					t.Errorf("the one that waited: %v, the one that came: %v; want %s", waits.Header(), comes.Header(), reason)
				}
				outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 2, goodput.Rejected: 1})
			})
		})
	}
}

// What a handler calls for a retry is one as well, over any of the protocols: the numbers
// count on.
func TestRetriesCountOnThroughAServer(t *testing.T) {
	for _, c := range []struct {
		header []string
		want   int // of the handler
		sent   [2]string
	}{
		{nil, 0, [2]string{"", "2"}},
		{[]string{"Goodput-Attempt: 1"}, 0, [2]string{"", "2"}},
		{[]string{"Goodput-Attempt: 2"}, 2, [2]string{"2", "3"}},
		{[]string{"Goodput-Attempt: 999"}, 999, [2]string{"999", "999"}},
		{[]string{grpcKind, "Grpc-Previous-Rpc-Attempts: 2"}, 3, [2]string{"3", "4"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answers: []*http.Response{refusedAfter("0")}}
			tr := to(&Dependency{Retry: &retry.Policy{}}, s)
			h := Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if got := retry.AttemptFrom(r.Context()); got != c.want {
					t.Errorf("%q: attempt %d in the handler, want %d", c.header, got, c.want)
				}
				res, err := tr.RoundTrip(get(r.Context()))
				if err != nil {
					t.Error(err)
					return
				}
				text(t, res)
			}))
			h.ServeHTTP(httptest.NewRecorder(), request(c.header...))
			for i, want := range c.sent {
				if got := s.sent[i].Get("Goodput-Attempt"); got != want {
					t.Errorf("%q: attempt %d says %q, want %q", c.header, i+1, got, want)
				}
			}
		})
	}
}

// All of RoundTrip is time of the dependency, the wait between two attempts included; what
// its caller does after it is not, whoever is still under way.
func TestTransportWaitIsDownstream(t *testing.T) {
	for _, c := range []struct {
		name      string
		dep       func() *Dependency
		base      func(n int, r *http.Request) (*http.Response, error)
		elsewhere time.Duration // of it and 3 s
	}{
		{
			"refused for a second, then served",
			func() *Dependency { return &Dependency{Retry: &retry.Policy{}} },
			func(n int, _ *http.Request) (*http.Response, error) {
				if n%2 == 1 {
					return refusedAfter("1"), nil
				}
				return respond(200, "answer"), nil
			},
			time.Second,
		},
		{
			"a hedge that does not hear that it has lost",
			func() *Dependency {
				dep := &Dependency{Hedge: &Hedge{Min: 100 * time.Millisecond}, Retry: &retry.Policy{Budget: &retry.Budget{Ratio: 1}}}
				dep.Hedge.delay.Store(int64(100 * time.Millisecond))
				return dep
			},
			func(n int, r *http.Request) (*http.Response, error) {
				if r.Header.Get("Goodput-Attempt") == "2" {
					time.Sleep(time.Minute)
				}
				time.Sleep(time.Second)
				return respond(200, "answer"), nil
			},
			time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int32
				dep := c.dep()
				tr := to(dep, base(func(r *http.Request) (*http.Response, error) {
					return c.base(int(n.Add(1)), r)
				}))
				work := func(ctx context.Context) error {
					res, err := tr.RoundTrip(get(ctx))
					if err != nil {
						return err
					}
					b := make([]byte, 3)
					_, _ = res.Body.Read(b)
					time.Sleep(3 * time.Second)
					_, _ = res.Body.Read(b)
					return res.Body.Close()
				}
				calls, server := limiter(1, goodput.Config{Objective: time.Hour}), limiter(1, goodput.Config{Objective: time.Hour})
				h := Handler(server, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if err := work(r.Context()); err != nil {
						t.Error(err)
					}
				}))
				for range 20 { // the limiter times all of the first
					if err := calls.Do(background, work); err != nil {
						t.Fatal(err)
					}
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
				}
				time.Sleep(time.Minute) // for those who are still under way
				want := c.elsewhere.Seconds() / (c.elsewhere + 3*time.Second).Seconds()
				for name, lim := range map[string]*goodput.Limiter{"Limiter.Do": calls, "Server": server} {
					if got := lim.Stats().Elsewhere; got < want-1e-3 || got > want+1e-3 {
						t.Errorf("%s: %.3f of the time is elsewhere, want %.3f", name, got, want)
					}
				}
			})
		})
	}
}
