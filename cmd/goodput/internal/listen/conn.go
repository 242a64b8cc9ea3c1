package listen

import (
	"net"
	"sync/atomic"
)

// An opening is the place of one connection.
type opening struct {
	of   *Listener
	over atomic.Bool
}

// end gives the place back, once.
func (o *opening) end() {
	if o.over.CompareAndSwap(false, true) {
		o.of.counts.open.Add(-1)
		<-o.of.places
	}
}

// counted returns c with a Close that gives the place back. Both kinds keep their methods:
// CloseWrite for a half-close, SyscallConn for whoever asks the kernel, and ReadFrom, with
// which net/http sends files.
func counted(c net.Conn, o *opening) net.Conn {
	switch c := c.(type) {
	case *net.TCPConn:
		return &tcpConn{c, o}
	case *net.UnixConn:
		return &unixConn{c, o}
	}
	panic("listen: a listener that is neither TCP nor unix")
}

type tcpConn struct {
	*net.TCPConn
	opening *opening
}

// Close closes the connection. The place is free when the descriptor is.
func (c *tcpConn) Close() error {
	defer c.opening.end()
	return c.TCPConn.Close()
}

type unixConn struct {
	*net.UnixConn
	opening *opening
}

// Close closes the connection.
func (c *unixConn) Close() error {
	defer c.opening.end()
	return c.UnixConn.Close()
}
