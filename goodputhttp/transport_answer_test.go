package goodputhttp

import (
	"bufio"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/retry"
)

// Whatever a server answers, the call ends, with the response as it came, and each
// attempt in one outcome.
func FuzzTransportReadsAnyResponse(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
		"HTTP/1.1 503 Busy\r\nGoodput-Rejected: queue_full\r\nRetry-After: 99999999999\r\n\r\nx",
		"HTTP/1.1 503 Busy\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nGrpc-Status: 14\r\nGrpc-Retry-Pushback-Ms: -9223372036854775809\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nx",
		"HTTP/1.1 429 \r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nGrpc-Status: 13\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
	} {
		f.Add(s, "2", true)
		f.Add(s, "99999", false)
	}
	f.Fuzz(func(t *testing.T, raw, attempt string, grpc bool) {
		if strings.Contains(raw, "100") { // a bare 100 is for the transport below
			return
		}
		synctest.Test(t, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			dep := &Dependency{Limiter: lim, Retry: &retry.Policy{}, Throttle: &retry.Throttle{}}
			r := get(background, "Goodput-Attempt: "+attempt, "Grpc-Previous-Rpc-Attempts: "+attempt)
			if grpc {
				r.Header.Set("Content-Type", "application/grpc")
			}
			status := 0
			res, err := to(dep, base(func(r *http.Request) (*http.Response, error) {
				for _, name := range []string{attemptHeader, grpcAttemptHeader} {
					if n, ok := digits(r.Header.Get(name), 3); r.Header.Get(name) != attempt && (!ok || n < 1 || n > maxAttempt) {
						t.Errorf("%s: %q", name, r.Header.Get(name))
					}
				}
				res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(raw)), r)
				if err == nil {
					status = res.StatusCode
				}
				return res, err
			})).RoundTrip(r)
			if err == nil {
				if res.StatusCode != status {
					t.Errorf("%d, want %d", res.StatusCode, status)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			st := settled(t, lim)
			if st.Arrivals != dep.Stats().Attempts {
				t.Errorf("%d arrivals, %d attempts", st.Arrivals, dep.Stats().Attempts)
			}
		})
	})
}

// Every bound of a Dependency, at both ends, with its sentence.
func TestDependencyValidate(t *testing.T) {
	for _, c := range []struct {
		dep  *Dependency
		want string
	}{
		{&Dependency{}, ""},
		{&Dependency{HopMargin: 1}, ""},
		{&Dependency{HopMargin: time.Minute}, ""},
		{&Dependency{Deadline: DialectNone}, ""},
		{&Dependency{HopMargin: -1}, "hop margin -1ns is out of range: 1ns to 1m, or 0 for 5ms"},
		{&Dependency{HopMargin: time.Minute + 1}, "hop margin 1m0.000000001s is out of range: 1ns to 1m, or 0 for 5ms"},
		{&Dependency{Deadline: DialectNone + 1}, "deadline dialect 6 does not exist: 0 to 5"},
		{&Dependency{Retry: &retry.Policy{Attempts: 11}}, (&retry.Policy{Attempts: 11}).Validate().Error()},
		{&Dependency{Throttle: &retry.Throttle{K: math.NaN()}}, (&retry.Throttle{K: math.NaN()}).Validate().Error()},
	} {
		got := ""
		if err := c.dep.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	defer func() {
		if p := recover(); p != "goodputhttp: dependency x: hop margin -1ns is out of range: 1ns to 1m, or 0 for 5ms" {
			t.Errorf("%v", p)
		}
	}()
	_, _ = to(&Dependency{Name: "x", HopMargin: -1}, base(nil)).RoundTrip(get(background))
}

// What is offered to the limiter says what Work said, and that a retry is one.
func TestTransportDescribesItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limiter(10, goodput.Config{})
		inUse := []int{}
		dep := &Dependency{
			Limiter: lim, Retry: &retry.Policy{}, Idempotent: func(*http.Request) bool { return true },
			Work: func(*http.Request) goodput.Work { return goodput.Work{Cost: 3} },
		}
		s := &script{answers: []*http.Response{respond(503, "")}}
		res, err := to(dep, base(func(r *http.Request) (*http.Response, error) {
			inUse = append(inUse, lim.Stats().InUse)
			return s.RoundTrip(r)
		})).RoundTrip(get(background))
		if err != nil {
			t.Fatal(err)
		}
		text(t, res)
		if len(inUse) != 2 || inUse[0] != 3 || inUse[1] != 3 {
			t.Errorf("%v units in use, want 3 and 3", inUse)
		}
		if w := dep.work(get(background), 2); w.Attempt != 2 || w.Cost != 3 {
			t.Errorf("%+v", w)
		}
		dep.Work = func(*http.Request) goodput.Work { return goodput.Work{Attempt: 7} }
		if w := dep.work(get(background), 2); w.Attempt != 7 {
			t.Errorf("%+v", w)
		}
	})
}

// A call is one of its policy, however it ends.
func TestTransportEndsItsCalls(t *testing.T) {
	full := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, full, 1)
	dep := &Dependency{Retry: &retry.Policy{Backoff: 1}, Limiter: full}
	status := 200
	tr := to(dep, base(func(*http.Request) (*http.Response, error) { return respond(status, ""), nil }))
	_, _ = tr.RoundTrip(get(background))
	open := &Dependency{Retry: dep.Retry}
	for _, status = range []int{200, 404, 500, 503} {
		if _, err := to(open, tr.Base).RoundTrip(get(background)); err != nil {
			t.Fatal(err)
		}
	}
	st := dep.Retry.Stats()
	var ended uint64
	for _, n := range st.Stops {
		ended += n
	}
	if st.Calls != 5 || ended != 5 || st.Stops[retry.StopAnswered] != 2 || st.Stops[retry.StopPermanent] != 1 || st.Stops[retry.StopExhausted] != 1 {
		t.Errorf("%+v", st)
	}
}
