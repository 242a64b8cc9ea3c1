package proxy

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// C011 (kubernetes/kubernetes#83333, gofiber/fiber#4347): a service that does
// not notice that it was hung up on, and clients that give up long before it has
// answered. They are told in time, and never more than the limit runs.
func TestTrueConcurrencyHoldsWithFinish_C011(t *testing.T) {
	const limited, work = 4, 300 * time.Millisecond
	for name, finish := range map[string]time.Duration{"finish": patience, "cancel": 0} {
		t.Run(name, func(t *testing.T) {
			var now, peak atomic.Int64
			addr := backend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				n := now.Add(1)
				for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
				}
				<-time.After(work) // whoever waits for it
				now.Add(-1)
			}))
			w := start(t, addr, func(c *Config, g *goodput.Config) {
				c.Finish, g.Limit, g.Service = finish, limit.Fixed(limited), time.Millisecond
			})
			var clients sync.WaitGroup
			for range 2 * limited {
				clients.Go(func() {
					for range 5 {
						r, _ := http.NewRequest(http.MethodGet, w.url, nil)
						r.Header.Set("Expect-Within", "0.03")
						began := time.Now()
						res, err := w.h1.Do(r)
						if err != nil {
							t.Error(err)
							return
						}
						res.Body.Close()
						if took := time.Since(began); res.StatusCode < 500 || finish > 0 && took > work {
							t.Errorf("%d after %v", res.StatusCode, took)
						}
					}
				})
			}
			clients.Wait()
			if got := peak.Load(); (got > limited) != (finish == 0) {
				t.Errorf("%d ran at once, limit %d, finish %v", got, limited, finish)
			}
			w.settle("at rest", func(s goodput.Stats) bool { return s.InUse == 0 && s.Running == 0 })
			if n := w.proxy.Door().Held; n != 0 {
				t.Errorf("%d held at rest", n)
			}
		})
	}
}

// A service that never answers keeps the slot for as long as was said.
func TestFinishIsBounded(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	addr := backend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	w := start(t, addr, func(c *Config, g *goodput.Config) { c.Finish, c.Deadline = 200*time.Millisecond, 50*time.Millisecond })
	if res, err := w.h1.Get(w.url); err != nil || res.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("%v, %v", res, err)
	}
	if n := w.lim.Stats().InUse; n != 1 {
		t.Errorf("%d in use while the service may be at it", n)
	}
	w.settle("at rest", func(s goodput.Stats) bool { return s.InUse == 0 && s.Running == 0 })
}

// lastMoment is a service that answers when it is told to end.
type lastMoment struct{ closed atomic.Int64 }

func (s *lastMoment) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return &http.Response{StatusCode: http.StatusOK, Body: s}, nil
}

func (s *lastMoment) Read([]byte) (int, error) { return 0, io.EOF }
func (s *lastMoment) Close() error             { s.closed.Add(1); return nil }

// What comes at the very end of the time that work may go on is closed as well: its server
// would have it in flight for ever.
func TestFinishClosesWhatComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &lastMoment{}
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(1)})
		door := &goodputhttp.Server{
			Limiter:  func(*http.Request) *goodput.Limiter { return lim },
			Deadline: time.Second,
			Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if res, err := (&finisher{service, time.Second}).RoundTrip(r); err == nil {
					t.Errorf("answered %v", res)
				}
			}),
		}
		door.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		time.Sleep(2 * time.Second) // of the test: the grace is over
		synctest.Wait()
		if n := service.closed.Load(); n != 1 || lim.Stats().InUse != 0 {
			t.Errorf("closed %d times, %d in use", n, lim.Stats().InUse)
		}
	})
}

// What works without works with it: bodies, early hints, upgrades.
func TestFinishPassesEverything(t *testing.T) {
	with := func(c *Config, _ *goodput.Config) { c.Finish = patience }
	w := start(t, backend(t, echo), with)
	if res, err := w.h1.Get(w.url); err != nil || res.StatusCode != 200 {
		t.Errorf("%v, %v", res, err)
	}
	if res, err := w.h2.Get(w.url); err != nil || res.StatusCode != 200 {
		t.Errorf("%v, %v", res, err)
	}
	w.settle("at rest", func(s goodput.Stats) bool { return s.InUse == 0 && s.Running == 0 })
	up := start(t, backend(t, shout(t)), with)
	res, err := http.ReadResponse(bufio.NewReader(up.raw(upgradeRequest)), nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("%v, %v", res, err)
	}
}

// A trailer could name what the proxy drops or sets.
func TestTrailersAreDropped(t *testing.T) {
	trailer := make(chan http.Header, 1)
	addr := backend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for b := make([]byte, 64); ; {
			if _, err := r.Body.Read(b); err != nil {
				break
			}
		}
		trailer <- r.Trailer
	}))
	w := start(t, addr, nil)
	w.answer(w.raw("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-Forwarded-For, Expect-Within\r\n\r\n" +
		"1\r\nx\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\nExpect-Within: 9\r\n\r\n"))
	if got := <-trailer; len(got) != 0 {
		t.Errorf("the service got the trailer %v", got)
	}
}
