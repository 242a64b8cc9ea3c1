package goodputhttp

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// A hedge costs what its request costs, on the same account, or is not sent.
func TestHedgeCostsWhatItsRequestCosts(t *testing.T) {
	for _, c := range []struct{ limit, cost, quota, hedges int }{
		{10, 4, 0, 1},
		{8, 4, 0, 1},
		{7, 4, 0, 0}, // three are free
		{2, 1, 0, 1},
		{10, 4, 8, 1},
		{10, 4, 7, 0}, // the tenant may not hold more
	} {
		synctest.Test(t, func(t *testing.T) {
			var cfg goodput.Config
			if c.quota > 0 {
				cfg.Tenants = &goodput.Tenants{Rows: []goodput.Tenant{{ID: "a", MaxInUse: c.quota}}}
			}
			lim := limiter(c.limit, cfg)
			var mu sync.Mutex
			most := 0
			dep := &Dependency{Limiter: lim, Hedge: &Hedge{}, Work: func(r *http.Request) goodput.Work {
				n, _ := strconv.Atoi(r.Header.Get("Cost"))
				return goodput.Work{Cost: n}
			}}
			dep.Hedge.delay.Store(int64(10 * time.Millisecond))
			res, err := to(dep, base(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				most = max(most, lim.Stats().InUse)
				mu.Unlock()
				return takes(func() time.Duration { return 20 * time.Millisecond })(r)
			})).RoundTrip(get(goodput.WithTenant(background, "a"), "Cost: "+strconv.Itoa(c.cost)))
			if err != nil {
				t.Fatal(err)
			}
			text(t, res)
			if n := dep.Stats().Hedges; int(n) != c.hedges || most != c.cost*(1+c.hedges) {
				t.Errorf("%+v: %d hedges, %d of the limit in use", c, n, most)
			}
			synctest.Wait()
			settled(t, lim)
		})
	}
}

// Once RoundTrip has returned, the request is its caller's again, also where a hedge is about
// to start or has just lost. This is for the race detector, and for the runtime, which ends a
// program that writes to a map while another goroutine walks it.
func TestHedgeLeavesTheRequestToItsCaller(t *testing.T) {
	dep := &Dependency{
		Hedge: &Hedge{Quantile: 0.5, Min: time.Microsecond},
		Retry: &retry.Policy{Budget: &retry.Budget{Ratio: 1, Reserve: 1000}},
	}
	dep.Hedge.delay.Store(int64(300 * time.Microsecond))
	tr := to(dep, base(func(r *http.Request) (*http.Response, error) {
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != "body" {
			t.Errorf("sent %q, %v", body, err)
		}
		res, err := takes(func() time.Duration { return 300 * time.Microsecond })(r)
		want := r.URL.Path[1:]
		for _, name := range []string{"Round", "Values"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("sent %q in the header of %q", got, want)
			}
		}
		return res, err
	}))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r := get(background)
			r.Method = http.MethodPut
			for i := range stressed(500, 20_000) {
				body := "body"
				r.Body = io.NopCloser(strings.NewReader(body))
				r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
				r.Header.Set("Round", strconv.Itoa(i))
				r.Header["Values"] = append(r.Header["Values"][:0], strconv.Itoa(i))
				r.URL.Path = "/" + strconv.Itoa(i)
				res, err := tr.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				if res.Request != r {
					t.Error("the response is that of another request")
				}
				res.Body.Close()
				r.Method, r.GetBody, body = http.MethodPut, nil, "another"
			}
		})
	}
	wg.Wait()
	until(t, "nothing under way", dep.idle)
	if dep.Stats().Hedges == 0 {
		t.Error("nothing was hedged")
	}
}

// What a hedge needs and does not get is no hedge, and leaves nothing.
func TestHedgeThatCannotBeSent(t *testing.T) {
	for _, c := range []struct {
		name    string
		getBody func() (io.ReadCloser, error)
		work    func(n int) goodput.Work
	}{
		{"no body", func() (io.ReadCloser, error) { return nil, errors.New("the file is gone") }, nil},
		{"GetBody panics", func() (io.ReadCloser, error) { panic("GetBody") }, nil},
		{"Work panics", nil, func(n int) goodput.Work {
			if n == 2 {
				panic("Work")
			}
			return goodput.Work{}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dep := &Dependency{Limiter: limiter(2, goodput.Config{}), Hedge: &Hedge{}, Retry: &retry.Policy{PerAttempt: time.Minute}}
				dep.Hedge.delay.Store(int64(10 * time.Millisecond))
				if n := 0; c.work != nil {
					dep.Work = func(*http.Request) goodput.Work { n++; return c.work(n) }
				}
				r := get(background)
				r.Method = http.MethodPut
				r.Body = io.NopCloser(strings.NewReader("body"))
				r.GetBody = c.getBody
				if c.getBody == nil {
					r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("body")), nil }
				}
				start := time.Now()
				res, err := to(dep, takes(func() time.Duration { return 50 * time.Millisecond })).RoundTrip(r)
				if err != nil || time.Since(start) != 50*time.Millisecond {
					t.Fatalf("%v after %v", err, time.Since(start))
				}
				if n := dep.Limiter.Stats().InUse; n != 1 {
					t.Errorf("%d slots held, want that of the answer", n)
				}
				text(t, res)
				if st := dep.Stats(); st.Hedges != 0 || st.Attempts != 1 {
					t.Errorf("%+v", st)
				}
				synctest.Wait()
				settled(t, dep.Limiter)
			})
		})
	}
}

// Where both fail, the next attempt comes no sooner than either of the two was told, and not
// at all if one was told so; the answer is that of the first.
func TestHedgeHeedsWhatEitherWasTold(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second *http.Response // nil is an error
		wait          time.Duration  // at least; 0: there is no other attempt
	}{
		{"the second", nil, refusedAfter("7"), 7 * time.Second},
		{"the first", refusedAfter("7"), nil, 7 * time.Second},
		{"both, the second longer", refusedAfter("2"), refusedAfter("7"), 7 * time.Second},
		{"both, the first longer", refusedAfter("7"), refusedAfter("2"), 7 * time.Second},
		{"the second: never", respond(503, ""), respond(503, "", "Goodput-Rejected: doomed"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dep := &Dependency{Hedge: &Hedge{}, Retry: &retry.Policy{}}
				dep.Hedge.delay.Store(int64(10 * time.Millisecond))
				s := &script{answers: []*http.Response{c.first, c.second}}
				begin := time.Now()
				res, err := to(dep, base(func(r *http.Request) (*http.Response, error) {
					res, err := s.RoundTrip(r)
					if s.sentSoFar() < 3 { // the first ends at 20 ms, the second at 25
						time.Sleep(20*time.Millisecond - time.Duration(s.sentSoFar()-1)*5*time.Millisecond)
					}
					return res, err
				})).RoundTrip(get(background))
				switch {
				case err != nil:
					t.Fatal(err)
				case c.wait == 0:
					if res.StatusCode != 503 || len(s.sent) != 2 {
						t.Errorf("%d, sent %d times", res.StatusCode, len(s.sent))
					}
				case len(s.sent) != 3 || s.at[2].Sub(begin) < c.wait:
					t.Errorf("sent %d times, the last after %v, want %v", len(s.sent), time.Since(begin), c.wait)
				}
				text(t, res)
			})
		})
	}
}

func (s *script) sentSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}
