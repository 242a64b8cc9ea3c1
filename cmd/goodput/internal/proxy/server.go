package proxy

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// The windows of an HTTP/2 connection: what it may send before somebody
// reads. A waiting upload fills its own, so 15 of them leave room for
// another that runs; with one window for all, the first would stop it.
const (
	connWindow   = 4<<20 - 1 // the most that net/http allows
	streamWindow = 256 << 10
)

// stuckConn is how long a connection of HTTP/2 may take nothing of what is written to it. A
// stream whose client does not read has a window of its own, and holds up nobody; a
// connection that is full holds up all of its streams, and GOAWAY. A minute is the longest
// time between two tries of TCP in which a lost packet is still worth waiting for (RFC 6298,
// 2.5, lets the timeout grow to 60 s).
const stuckConn = time.Minute

// Server returns a server for the connections of one listener. It has no timeout for bodies:
// uploads and streams last as long as their deadline lets them.
func (p *Proxy) Server(l config.Listener) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(l.HTTP1)
	protocols.SetHTTP2(l.HTTP2 && l.TLS != nil)
	protocols.SetUnencryptedHTTP2(l.HTTP2 && l.TLS == nil)
	return &http.Server{
		Handler:           p,
		Protocols:         protocols,
		ReadHeaderTimeout: l.HeaderTimeout,
		IdleTimeout:       l.IdleTimeout,
		MaxHeaderBytes:    l.MaxHeader,
		HTTP2: &http.HTTP2Config{
			// A balancer with one connection would queue at its side beyond this, where no
			// deadline is watched. It bounds what resetting streams costs: net/http closes a
			// connection once four times as many wait for a goroutine (CVE-2023-44487).
			MaxConcurrentStreams:          l.MaxStreams,
			MaxReceiveBufferPerConnection: connWindow,
			MaxReceiveBufferPerStream:     streamWindow,
			WriteByteTimeout:              stuckConn,
		},
		ConnState:   p.connState,
		ConnContext: p.retiring.connContext,
		ErrorLog:    log.New(&serverLog{p.log}, "", 0),
	}
}

// A serverLog takes what net/http says about its connections. Most of it is about what a
// client has done, a failed handshake or a frame that is none, and anybody can do that as
// often as they like: it is for who looks for it.
type serverLog struct{ log *slog.Logger }

func (l *serverLog) Write(line []byte) (int, error) {
	level, text := slog.LevelDebug, strings.TrimSpace(string(line))
	if strings.Contains(text, "panic serving") || strings.Contains(text, "Accept error") {
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, text)
	return len(line), nil
}
