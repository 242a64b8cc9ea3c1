package goodputhttp_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/conformance"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// Handler, Server and Transport do what any limiter must.

// fixed has so many slots; callers wait for a minute, and as many as the checks have at once.
func fixed(n, depth int) *goodput.Limiter {
	return goodput.New(goodput.Config{Limit: limit.Fixed(n), Objective: time.Minute, Depth: depth})
}

// taught counts what the limits of all limiters of a test have learnt from: what was served,
// in time or not. The times of those that left are recorded apart.
type taught struct {
	mu       sync.Mutex
	limiters []*goodput.Limiter
}

func (c *taught) limiter(n, depth int) *goodput.Limiter {
	lim := fixed(n, depth)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limiters = append(c.limiters, lim)
	return lim
}

func (c *taught) samples() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.limiters {
		s := l.Stats()
		for _, o := range []goodput.Outcome{goodput.Completed, goodput.Late} {
			if h := s.Service[o]; h != nil {
				n += int(h.Count)
			}
		}
	}
	return n
}

func seconds(ms int) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }

func TestHandlerConformance(t *testing.T) {
	for name, of := range map[string]func(*goodput.Limiter, http.Handler) http.Handler{
		"Handler": goodputhttp.Handler,
		"Server": func(lim *goodput.Limiter, next http.Handler) http.Handler {
			return &goodputhttp.Server{
				Limiter: func(*http.Request) *goodput.Limiter { return lim }, Next: next,
				DeadlineCap: time.Hour, ServerTiming: true, Markers: goodputhttp.EnvoyMarkers | goodputhttp.FinagleMarkers,
				Trusted: func(*http.Request) bool { return true }, Extends: func(*http.Request) bool { return true },
				DeadlineHeaders: []goodputhttp.DeadlineHeader{{Name: "X-Deadline", Format: goodputhttp.FormatMillis}},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c taught
			conformance.TestHandler(t, func(n int, next http.Handler) http.Handler {
				return of(c.limiter(n, 4096), next)
			}, conformance.HandlerOptions{
				NoQueue: func(n int, next http.Handler) http.Handler {
					return of(c.limiter(n, goodput.NoQueue), next)
				},
				Server:         func(s *http.Server) { s.ConnContext = goodputhttp.ConnContext },
				DeadlineHeader: "Expect-Within", Milliseconds: seconds,
				Samples: c.samples, Part: 8,
			})
		})
	}
}

// A slot of a Transport is a response whose body is open.
func TestTransportConformance(t *testing.T) {
	conformance.TestLimiter(t, func(n int) conformance.Limiter {
		lim := fixed(n, 1<<17)
		dep := &goodputhttp.Dependency{Limiter: lim}
		tr := &goodputhttp.Transport{
			Base: answer{}, Dependency: func(*http.Request) *goodputhttp.Dependency { return dep },
		}
		return conformance.Limiter{
			Acquire: func(ctx context.Context) (func(), error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://upstream.test/", nil)
				if err != nil {
					return nil, err
				}
				res, err := tr.RoundTrip(req)
				if err != nil {
					return nil, err
				}
				return func() { _ = res.Body.Close() }, nil
			},
			InUse:   func() int { return lim.Stats().InUse },
			Waiting: func() int { return lim.Stats().Waiting },
			Resize: func(n int) {
				if err := lim.SetLimit(n); err != nil {
					panic(err)
				}
			},
		}
	}, conformance.LimiterOptions{Part: 20})
}

// answer is a service that answers at once.
type answer struct{}

func (answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ok")), ContentLength: -1,
	}, nil
}
