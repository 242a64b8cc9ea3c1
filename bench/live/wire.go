package live

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	workHeader   = "Work-Us"
	budgetHeader = "X-Envoy-Expected-Rq-Timeout-Ms"

	// 4 HTTP/2 connections: each has a lock and a writer, and takes 3,000 requests a
	// second at the most.
	conns = 4

	// More requests than that on a connection would wait at the client's side. 12,000
	// a second that are given up after 2 s are 6,000 on each.
	streams = 1 << 15
)

// A wire is a server on the loopback interface and a client of it.
type wire struct {
	server *http.Server
	conns  []*http.ClientConn
	base   *http.Request
	turn   atomic.Uint32
}

// An answer is what a request ended with.
type answer struct {
	status int // 0: none
	err    error
}

// dial serves limited, in front of which "/ready" answers at once, and connects.
func dial(limited http.Handler, deadline time.Duration) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	clear := new(http.Protocols)
	clear.SetUnencryptedHTTP2(true)
	mux := http.NewServeMux()
	mux.Handle("/work", limited)
	mux.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) {})
	w := &wire{server: &http.Server{
		Handler: mux, Protocols: clear,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: streams},
	}}
	go func() { _ = w.server.Serve(l) }() // ends with close, and has nothing else to say

	w.base, err = http.NewRequest(http.MethodGet, "http://"+l.Addr().String()+"/work", nil)
	if err != nil {
		return nil, err
	}
	w.base.Header = http.Header{
		"User-Agent": {"live"},
		budgetHeader: {strconv.FormatInt(deadline.Milliseconds(), 10)},
	}
	transport := &http.Transport{Protocols: clear, DisableCompression: true}
	for range conns {
		c, err := transport.NewClientConn(context.Background(), "http", l.Addr().String())
		if err != nil {
			w.close()
			return nil, err
		}
		w.conns = append(w.conns, c)
		if err := settle(c, l.Addr().String()); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// settle waits until c has heard how many streams the server allows: before that, the
// client keeps what is above 100 to itself.
func settle(c *http.ClientConn, addr string) error {
	for range 100 {
		req, err := http.NewRequest(http.MethodGet, "http://"+addr+"/ready", nil)
		if err != nil {
			return err
		}
		resp, err := c.RoundTrip(req)
		if err != nil {
			return fmt.Errorf("connect to the service: %w", err)
		}
		resp.Body.Close()
		if c.Available() >= streams {
			return nil
		}
	}
	return fmt.Errorf("the service allows %d requests on a connection, not %d", c.Available(), streams)
}

// send performs one request of so much work.
func (w *wire) send(ctx context.Context, work time.Duration) answer {
	r := w.base.WithContext(ctx)
	r.Header = http.Header{
		"User-Agent": w.base.Header["User-Agent"],
		budgetHeader: w.base.Header[budgetHeader],
		workHeader:   {strconv.FormatInt(work.Microseconds(), 10)},
	}
	resp, err := w.conns[w.turn.Add(1)%conns].RoundTrip(r)
	if err != nil {
		return answer{err: err}
	}
	resp.Body.Close()
	return answer{status: resp.StatusCode}
}

func (w *wire) close() {
	for _, c := range w.conns {
		_ = c.Close()
	}
	_ = w.server.Close()
}

// work is the service behind the limiter.
func work(b *Backend) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		us, err := strconv.ParseInt(r.Header.Get(workHeader), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = b.Do(r.Context(), time.Duration(us)*time.Microsecond) // who has left reads no answer
	})
}
