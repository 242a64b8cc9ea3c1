package goodputhttp

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// What a call through Transport costs beside one through Base alone: in memory, where the
// difference is all there is, and over loopback.

// whole is a dependency with everything on that costs each call something.
func whole() *Dependency {
	return &Dependency{Limiter: limiter(64, goodput.Config{}), Retry: &retry.Policy{}, Throttle: &retry.Throttle{}}
}

// canned answers with a body of one byte and allocates what any base has to.
type canned struct{}

type oneByte struct{ done bool }

func (o *oneByte) Read(p []byte) (int, error) {
	if o.done {
		return 0, io.EOF
	}
	o.done = true
	p[0] = 'x'
	return 1, nil
}

func (o *oneByte) Close() error { return nil }

func (canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, ContentLength: 1, Body: &oneByte{}, Header: http.Header{}}, nil
}

// trip makes one call, reads the answer and closes it.
func trip(rt http.RoundTripper, r *http.Request, buf []byte) error {
	res, err := rt.RoundTrip(r)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = res.Body.Read(buf)
	}
	return res.Body.Close()
}

// timely is a request with a deadline, so that there is a budget to forward, and the
// headers that requests have. Below 10 s what is left is written without an allocation.
func timely(b testing.TB, url string) *http.Request {
	ctx, cancel := context.WithTimeout(background, 9*time.Second)
	b.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header = http.Header{"Accept": {"*/*"}, "User-Agent": {"bench"}, "Authorization": {"Bearer x"}}
	return r
}

func benchTrips(b *testing.B, rt http.RoundTripper, url string) {
	r, buf := timely(b, url), make([]byte, 512)
	b.ReportAllocs()
	for b.Loop() {
		if err := trip(rt, r, buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMemoryBare(b *testing.B) { benchTrips(b, canned{}, "http://upstream.test/") }

func BenchmarkMemoryTransport(b *testing.B) {
	benchTrips(b, to(whole(), canned{}), "http://upstream.test/")
}

func BenchmarkMemoryHedged(b *testing.B) {
	dep := whole()
	dep.Hedge = &Hedge{Min: time.Minute}
	benchTrips(b, to(dep, canned{}), "http://upstream.test/")
}

// A call inside a handler of a Server: its time is not the handler's own.
func BenchmarkMemoryInAHandler(b *testing.B) {
	tr, buf := to(whole(), canned{}), make([]byte, 512)
	h := Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		out := timely(b, "http://upstream.test/").WithContext(r.Context())
		for b.Loop() {
			if err := trip(tr, out, buf); err != nil {
				b.Fatal(err)
			}
		}
	}))
	b.ReportAllocs()
	h.ServeHTTP(&nowhere{header: http.Header{}}, request("Expect-Within: 9"))
}

func BenchmarkMemoryRefused(b *testing.B) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(b, lim, 1)
	tr, r := to(&Dependency{Limiter: lim}, canned{}), timely(b, "http://upstream.test/")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tr.RoundTrip(r); err == nil {
			b.Fatal("not refused")
		}
	}
}

// Over loopback the network is 20 times the difference, so both take turns, and the medians
// are compared.
func BenchmarkLoopbackPair(b *testing.B) {
	srv := start(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }))
	bare := bases(b)["HTTP/1.1"]
	pair := []http.RoundTripper{bare, to(whole(), bare)}
	took := make([][]time.Duration, len(pair))
	r, buf := timely(b, srv.URL), make([]byte, 512)
	for b.Loop() {
		for i, rt := range pair {
			begin := time.Now()
			if err := trip(rt, r, buf); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	for i, name := range []string{"bare-ns", "transport-ns"} {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2]), name)
	}
}

// At most four allocations more than Base alone, whatever machine it runs on.
func TestTransportAllocatesLittle(t *testing.T) {
	r, buf := timely(t, "http://upstream.test/"), make([]byte, 512)
	count := func(rt http.RoundTripper) float64 {
		runtime.GC()
		return testing.AllocsPerRun(1000, func() {
			if err := trip(rt, r, buf); err != nil {
				t.Fatal(err)
			}
		})
	}
	bare, ours := count(canned{}), count(to(whole(), canned{}))
	if ours-bare > 4 {
		t.Errorf("%v allocations more than the %v of Base, want at most 4", ours-bare, bare)
	}
}
