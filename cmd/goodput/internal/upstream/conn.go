package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// answerGrace is how long a failed write waits for the answer that explains it.
// It is a bound, not a delay: whatever the reader finds ends the wait.
const answerGrace = 250 * time.Millisecond

// A conn is a connection to the service that gives its answer the right of way.
//
// A service may answer before it has read the request (413, 401) and hang up.
// Our next write then fails, while the answer is there to be read.
// http.Transport takes whichever of the two it hears of first, and from the
// write it makes an error: a 502 that the service never sent. So a write that
// fails because the peer hung up reports it only after the reading side is done
// with what the peer had to say.
type conn struct {
	*net.TCPConn
	readOver func()
	read     chan struct{} // closed by readOver: nothing more will be read
}

// A dialing is the DialContext of a net.Dialer, or of a test.
type dialing func(ctx context.Context, network, addr string) (net.Conn, error)

// dial is that of all but tests.
var dial dialing = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext

// dialer returns the DialContext of a transport. dialed hears of each.
func dialer(dial dialing, dialed func(context.Context, error)) dialing {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		dialed(ctx, err)
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil
		}
		read := make(chan struct{})
		return &conn{tcp, sync.OnceFunc(func() { close(read) }), read}, nil
	}
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if err != nil {
		c.readOver()
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	c.listen(err)
	return n, err
}

// ReadFrom is what bodies take: without it, *net.TCPConn's would be used.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	n, err := c.TCPConn.ReadFrom(r)
	c.listen(err)
	return n, err
}

func (c *conn) Close() error {
	c.readOver()
	return c.TCPConn.Close()
}

func (c *conn) listen(err error) {
	if err == nil || !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return
	}
	grace := time.NewTimer(answerGrace)
	defer grace.Stop()
	select {
	case <-c.read:
	case <-grace.C:
	}
}
