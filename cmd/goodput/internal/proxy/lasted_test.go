package proxy

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// C134: an upgraded connection that lasts, beside normal traffic, and streams: how long they took is
// in series of their own, and in none of the limiter's. Requests of a class of requests are in
// those, each once.
func TestWhatLastsHasItsOwnDurations_C134(t *testing.T) {
	const held = 50 * time.Millisecond
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			io.WriteString(w, "hello")
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(io.Discard, conn) // until the client closes
	}))
	modes(t, up, nil, func(w *world) {
		c, _ := w.upgrade("echo", "")
		const n = 20
		for range n {
			w.get(w.h1, "/")
		}
		time.Sleep(held) // wall clock: TCP
		c.Close()
		w.noTunnels()
		w.eventually("the upgraded connection was counted", func() bool { return w.proxy.Traffic()[0].Tunnelled.Count == 1 })
		got := w.proxy.Traffic()[0]
		if got.Tunnelled.Sum < held.Seconds() {
			w.Errorf("it lasted for %v s, want %v at least", got.Tunnelled.Sum, held)
		}
		streams, requests := uint64(n), uint64(0)
		if got.Mode == config.Request {
			streams, requests = 0, n
		}
		if got.Streamed.Count != streams {
			w.Errorf("%d streams, want %d", got.Streamed.Count, streams)
		}
		if w.lim == nil {
			return
		}
		s := w.settle("idle", idle)
		var served uint64
		for _, h := range s.Service {
			if h != nil {
				served += h.Count
			}
		}
		if s.Arrivals != n+1 || s.Latency.Count != requests || served != requests {
			w.Errorf("%d arrivals, %d latencies, %d service times, want %d, and %d of both", s.Arrivals, s.Latency.Count, served, n+1, requests)
		}
	})
}
