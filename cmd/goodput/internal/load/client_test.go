package load

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// target starts a server that speaks HTTP/1.1 and HTTP/2 in clear text and takes
// so many requests at once on one HTTP/2 connection.
func target(t *testing.T, streams int, h http.HandlerFunc) (*httptest.Server, *url.URL) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	s.Start()
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s, u
}

func dial(t *testing.T, h HTTP) *Client {
	t.Helper()
	c, err := Dial(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestClientAnswers(t *testing.T) {
	_, u := target(t, 250, func(w http.ResponseWriter, r *http.Request) {
		if word := r.URL.Query().Get("reason"); word != "" {
			w.Header().Set("Goodput-Rejected", word)
		}
		var status int
		fmt.Sscan(r.URL.Query().Get("status"), &status)
		w.WriteHeader(status)
		fmt.Fprint(w, strings.Repeat("x", 100_000)) // more than one read
	})
	for _, http2 := range []bool{true, false} {
		for _, tc := range []struct {
			query string
			want  Answer
		}{
			{"status=200", Answer{Status: 200}},
			{"status=404", Answer{Status: 404}},
			{"status=500", Answer{Status: 500}},
			{"status=503&reason=queue_full", Answer{Status: 503, Reason: "queue_full", Marked: true}},
			{"status=504&reason=deadline", Answer{Status: 504, Reason: "deadline", Marked: true}},
			{"status=503", Answer{Status: 503, Reason: "status_503"}}, // another proxy's word
			{"status=429", Answer{Status: 429, Reason: "status_429"}},
		} {
			at := *u
			at.RawQuery = tc.query
			c := dial(t, HTTP{URL: &at, HTTP2: http2})
			got := c.Send(t.Context())
			if got.Content.Size != 100_000 || got.Content.Type != "text/plain" || got.Content.Sum == 0 {
				t.Errorf("HTTP/2 %v, %s: content %+v", http2, tc.query, got.Content)
			}
			got.Content = Content{}
			if got != tc.want {
				t.Errorf("HTTP/2 %v, %s: got %+v, want %+v", http2, tc.query, got, tc.want)
			}
		}
	}
}

func TestClientSaysWhatItMust(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		_, u := target(t, 250, func(w http.ResponseWriter, r *http.Request) {
			major := 1
			if http2 {
				major = 2
			}
			if r.ProtoMajor != major || r.Method != "PUT" || r.Header.Get("X-A") != "b" ||
				r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms") != "2000" {
				t.Errorf("HTTP/%d %s %v", r.ProtoMajor, r.Method, r.Header)
			}
		})
		c := dial(t, HTTP{URL: u, Method: "PUT", Header: http.Header{"X-A": {"b"}}, Budget: 2 * time.Second, HTTP2: http2})
		if a := c.Send(t.Context()); a.Status != 200 {
			t.Errorf("%+v", a)
		}
	}
}

// A server that allows few requests on a connection gets more connections; no
// request waits at the client's side for another one to end.
func TestClientOpensConnectionsForMoreThanOneTakes(t *testing.T) {
	const all, each = 60, 10
	var arrived sync.WaitGroup
	arrived.Add(all)
	_, u := target(t, each, func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait() // answers nobody before all are here
	})
	c := dial(t, HTTP{URL: u, HTTP2: true, Conns: 1})
	var sends sync.WaitGroup
	for range all {
		sends.Go(func() {
			if a := c.Send(t.Context()); a.Status != 200 {
				t.Errorf("%+v", a)
			}
		})
	}
	sends.Wait()
	if n := len(*c.via.(*pool).conns.Load()); n < all/each || n > maxConns {
		t.Errorf("%d connections for %d requests, %d each", n, all, each)
	}
}

func TestClientReplacesBrokenConnections(t *testing.T) {
	s, u := target(t, 250, func(http.ResponseWriter, *http.Request) {})
	c := dial(t, HTTP{URL: u, HTTP2: true, Conns: 3})
	s.CloseClientConnections()
	for tries := 0; c.Send(t.Context()).Err != nil; tries++ {
		if tries == 1000 {
			t.Fatal("never recovered")
		}
	}
}

func TestTargetIsGone(t *testing.T) {
	s, u := target(t, 250, func(http.ResponseWriter, *http.Request) {})
	open := dial(t, HTTP{URL: u, HTTP2: true})
	plain := dial(t, HTTP{URL: u})
	s.Close()
	if _, err := Dial(t.Context(), HTTP{URL: u, HTTP2: true}); err == nil || !strings.Contains(err.Error(), u.Host) {
		t.Errorf("connected to nobody: %v", err)
	}
	for _, c := range []*Client{open, plain} {
		r := offer(t, Plan{Rate: 100, Duration: 100 * time.Millisecond, Constant: true, Deadline: time.Second, Tolerance: time.Minute}, c.Send)
		if r.Errors != r.Sent || !strings.Contains(r.Void(), "answered nothing") {
			t.Errorf("errors %d of %d, void %q", r.Errors, r.Sent, r.Void())
		}
	}
}

// Over a real connection, too, whoever is not answered is given up on at its
// deadline, and the server is told: its Close waits for the handlers.
func TestClientGivesUp(t *testing.T) {
	_, u := target(t, 1000, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, http2 := range []bool{true, false} {
		c := dial(t, HTTP{URL: u, HTTP2: http2})
		p := Plan{Rate: 200, Duration: 200 * time.Millisecond, Seed: 5, Deadline: 50 * time.Millisecond}
		r := offer(t, p, c.Send)
		if r.TimedOut != r.Sent || r.Sent == 0 {
			t.Errorf("HTTP/2 %v: timed out %d of %d, first error %v", http2, r.TimedOut, r.Sent, r.FirstError)
		}
	}
}

func TestPoolGivesUpWaitingForAConnection(t *testing.T) {
	_, u := target(t, 250, func(http.ResponseWriter, *http.Request) {})
	p := newPool(&http.Transport{}, u)
	p.opening <- struct{}{} // somebody dials, and does not get through
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.grow(ctx); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// Each attempt tells what is left of the deadline since the request was due, and so less than
// the one before by the time that this one and the backoff took: 200 ms and more.
//
// wall clock: a network. A machine that is slow makes what is left less, never more.
func TestEachAttemptTellsWhatIsLeft(t *testing.T) {
	var mu sync.Mutex
	var told []int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ms, err := strconv.Atoi(r.Header.Get(budgetHeader))
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		told = append(told, ms)
		mu.Unlock()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), HTTP{URL: u, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g, err := New(Plan{
		Rate: 1, Duration: time.Second, Constant: true, Deadline: time.Minute, Attempts: 3,
		Backoff: func(int, Answer) time.Duration { return 200 * time.Millisecond },
	}, c.Send)
	if err != nil {
		t.Fatal(err)
	}
	g.Run(t.Context())
	if len(told) != 3 || told[0] != 60_000 || told[1] > 59_800 || told[2] > told[1]-200 || told[2] < 1 {
		t.Errorf("told %v ms", told)
	}
}
