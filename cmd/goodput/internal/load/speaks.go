package load

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2"
)

// speaksWithin bounds how long a server may take to say what it speaks: three round trips
// around the world, and time for a busy one.
const speaksWithin = 2 * time.Second

// Speaks reports whether the target of h speaks HTTP/2: over TLS if it chooses it by ALPN, and
// in clear text if it answers the preface of HTTP/2 as RFC 9113, section 3.4, asks. One that
// cannot be reached does not. It makes one connection and sends no request.
func Speaks(ctx context.Context, h HTTP) bool {
	ctx, cancel := context.WithTimeout(ctx, speaksWithin)
	defer cancel()
	conn, err := h.dial(ctx, "tcp", address(h.URL))
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if h.URL.Scheme == "https" {
		return chooses(ctx, conn, h)
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return false
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return false
	}
	first, err := framer.ReadFrame()
	if err != nil {
		return false
	}
	settings, ok := first.(*http2.SettingsFrame)
	return ok && !settings.IsAck()
}

// chooses reports whether the server at the other end of conn takes HTTP/2 if it may.
func chooses(ctx context.Context, conn net.Conn, h HTTP) bool {
	config := h.TLS.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName = h.URL.Hostname()
	}
	config.NextProtos = []string{"h2", "http/1.1"}
	c := tls.Client(conn, config)
	return c.HandshakeContext(ctx) == nil && c.ConnectionState().NegotiatedProtocol == "h2"
}
