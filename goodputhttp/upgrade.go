package goodputhttp

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// An upgraded connection (a WebSocket, a CONNECT tunnel) lives for hours and
// does its work in bursts. As the holder of a slot it would block the limit,
// and as a service time it would poison the estimate. So it gives its slot back
// when the upgrade succeeds, and is counted among the open connections instead,
// until it is closed. A Server with Stream bounds just that, so there it is both.
type upgrades struct {
	places         atomic.Int64 // open, or being negotiated
	open           atomic.Int64
	total, refused atomic.Uint64
}

var errUpgradesFull = errors.New("goodputhttp: as many upgraded connections are open as Server.MaxUpgraded allows")

// A place is one of the connections that may be open. Its state only ever goes
// forward, whatever the order and number of the calls, so that the counters can
// neither drift nor go below zero.
type place struct {
	of    *upgrades
	state atomic.Int32
}

const (
	placeNone int32 = iota
	placeReserved
	placeOpen     // until ServeHTTP returns
	placeHijacked // until the connection is closed
	placeGone
)

func (p *place) reserve(most int64) bool {
	if p.of.places.Add(1) > most {
		p.of.places.Add(-1)
		p.of.refused.Add(1)
		return false
	}
	p.state.Store(placeReserved)
	return true
}

// enter counts the connection as open. Without a reservation (a handler that
// hijacks what did not ask for an upgrade) it takes a place if there is one.
func (p *place) enter(most int64) bool {
	if p.state.Load() == placeNone && !p.reserve(most) {
		return false
	}
	if p.state.CompareAndSwap(placeReserved, placeOpen) {
		p.of.open.Add(1)
		p.of.total.Add(1)
	}
	return true
}

// leave is called when ServeHTTP returns, close when a connection that was
// hijacked is closed.
func (p *place) leave() {
	if p.state.CompareAndSwap(placeReserved, placeGone) {
		p.of.places.Add(-1)
	} else if p.state.CompareAndSwap(placeOpen, placeGone) {
		p.gone()
	}
}

func (p *place) close() {
	if p.state.CompareAndSwap(placeHijacked, placeGone) {
		p.gone()
	}
}

func (p *place) gone() {
	p.of.open.Add(-1)
	p.of.places.Add(-1)
}

// wantsUpgrade reports whether r asks for another protocol: CONNECT, in HTTP/2
// also its extended form, or an Upgrade that Connection names.
func wantsUpgrade(r *http.Request) bool {
	if r.Method == http.MethodConnect {
		return true
	}
	if r.ProtoMajor != 1 || len(r.Header["Upgrade"]) == 0 {
		return false
	}
	for _, line := range r.Header["Connection"] {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return false
}

// counted returns conn with a Close that calls gone, each time. The two types that
// net/http hands out keep all their methods: CloseWrite for a half-close, and
// ReadFrom, with which io.Copy moves bytes within the kernel. One that a listener has
// wrapped keeps CloseWrite, if it has it.
func counted(conn net.Conn, gone func()) net.Conn {
	switch c := conn.(type) {
	case *net.TCPConn:
		return &tcpConn{c, gone}
	case *tls.Conn:
		return &tlsConn{c, gone}
	}
	if half, ok := conn.(halfCloser); ok {
		return &halfConn{otherConn{conn, gone}, half}
	}
	return &otherConn{conn, gone}
}

type tcpConn struct {
	*net.TCPConn
	gone func()
}

func (c *tcpConn) Close() error {
	c.gone()
	return c.TCPConn.Close()
}

type tlsConn struct {
	*tls.Conn
	gone func()
}

func (c *tlsConn) Close() error {
	c.gone()
	return c.Conn.Close()
}

type otherConn struct {
	net.Conn
	gone func()
}

func (c *otherConn) Close() error {
	c.gone()
	return c.Conn.Close()
}

// A halfCloser can end its sending half alone.
type halfCloser interface{ CloseWrite() error }

type halfConn struct {
	otherConn
	halfCloser
}
