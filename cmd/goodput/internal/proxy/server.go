package proxy

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/goodput/goodput/goodputhttp"
)

const (
	// headerTimeout bounds the slow reading of a request's header: 64 KiB in
	// 10 s is 6.4 KiB/s, slower than any modem still in use.
	headerTimeout = 10 * time.Second

	// idleTimeout is above the idle time of the balancers in front of us (AWS
	// and nginx 60 s, Google 600 s), so that they hang up first.
	idleTimeout = 620 * time.Second

	// maxHeader is above what common servers behind us accept (nginx 32 KiB,
	// Node.js 16 KiB); Go's default of 1 MiB is memory that any client may ask for.
	maxHeader = 64 << 10

	// maxStreams is how many requests one HTTP/2 connection may have in flight.
	// With Go's 250, a balancer with one connection would queue at its side,
	// where no deadline is watched; a queue that is worth having is below this.
	// It bounds what resetting streams costs: net/http closes a connection once
	// four times as many wait for a goroutine (CVE-2023-44487).
	maxStreams = 1 << 12

	// The windows of an HTTP/2 connection: what it may send before somebody
	// reads. A waiting upload fills its own, so 15 of them leave room for
	// another that runs; with one window for all, the first would stop it.
	connWindow   = 4<<20 - 1 // the most that net/http allows
	streamWindow = 256 << 10
)

// Server returns a server for p that listens on addr: HTTP/1.1, and HTTP/2
// without TLS. It has no timeout for bodies: uploads and streams last as long
// as their deadline lets them.
func (p *Proxy) Server(addr string) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Addr:              addr,
		Handler:           p,
		Protocols:         protocols,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReceiveBufferPerConnection: connWindow,
			MaxReceiveBufferPerStream:     streamWindow,
		},
		ConnState:   p.connState,
		ConnContext: goodputhttp.ConnContext,
		ErrorLog:    slog.NewLogLogger(p.cfg.Logger.Handler(), slog.LevelWarn),
	}
}
