// Package listen opens the listeners of the proxy, bounds what connects and counts it.
//
// The model: three places where a connection can be.
//
//	kernel    connected, not accepted: the accept queue, Listener.Backlog long
//	open      accepted, not closed: MaxConnections at most
//	refused   the accept queue is full: the kernel drops the handshake, and the client's
//	          kernel tries again after 1 s, 3 s, 7 s
//
// Nothing is dropped here. At MaxConnections nobody is accepted until somebody closes, so
// the accept queue fills, and clients wait in their kernels: that is the backpressure that
// TCP has. What the accept queue did not take is counted by the kernel: see Overflows.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// A Listener is one address where clients connect. It is a net.Listener for
// http.Server.Serve, with TLS if its configuration has it: then Accept returns *tls.Conn.
type Listener struct {
	cfg   config.Listener
	log   *slog.Logger
	inner net.Listener
	keys  *keys // nil without TLS

	// places holds one element for each connection that is open, and one more while
	// Accept waits for the kernel. Invariant: a connection gives its place back once, at
	// its first Close.
	places chan struct{}
	closed chan struct{}
	close  func() error

	pausing atomic.Bool
	counts  counts
	trouble trouble
}

// Open opens the listener that cfg describes. The error says what cannot be had, without
// the name of whoever asked. log gets at most one line a second about connections that
// cannot be accepted; nil is slog.Default().
func Open(cfg config.Listener, log *slog.Logger) (*Listener, error) {
	if log == nil {
		log = slog.Default()
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = config.DefaultMaxConnections
	}
	l := &Listener{
		cfg: cfg, log: log, places: make(chan struct{}, cfg.MaxConnections), closed: make(chan struct{}),
	}
	if cfg.TLS != nil {
		var err error
		if l.keys, err = newKeys(cfg); err != nil {
			return nil, err
		}
	}
	var err error
	switch cfg.Network {
	case "tcp":
		l.inner, err = new(net.ListenConfig).Listen(context.Background(), "tcp", cfg.Address)
	case "unix":
		l.inner, err = openUnix(cfg.Address)
	default:
		return nil, fmt.Errorf("cannot listen on a network %q: tcp or unix", cfg.Network)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", cfg.Address, plain(err))
	}
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		return l.inner.Close()
	})
	if cfg.Backlog > 0 {
		if err := setBacklog(l.inner, cfg.Backlog); err != nil {
			l.inner.Close()
			return nil, fmt.Errorf("cannot listen on %s with a backlog of %d: %w", cfg.Address, cfg.Backlog, plain(err))
		}
	}
	return l, nil
}

// plain drops what net says before the cause: the address is in our sentence already.
func plain(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	if sys := (*os.SyscallError)(nil); errors.As(err, &sys) {
		err = sys.Err
	}
	return err
}

// Addr returns the address, with the port that the kernel has chosen for port 0.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Config returns what l was opened with.
func (l *Listener) Config() config.Listener { return l.cfg }

// Close ends Accept. Connections that are open stay open; those that nobody has accepted
// are reset by the kernel. The file of a unix socket is removed.
func (l *Listener) Close() error { return l.close() }

// Reload reads the files of TLS again. New connections use what they say; the error is one
// sentence, and then the old ones stay in force. Without TLS there is nothing to read.
func (l *Listener) Reload() error {
	if l.keys == nil {
		return nil
	}
	return l.keys.read()
}

// Accept waits for a connection, while there are fewer than MaxConnections. It returns
// an error only when l is closed: whatever else goes wrong is tried again. net/http would
// do so for the errors that call themselves temporary, and end the program's service
// for others that pass as well (no memory, no buffers, a packet filter).
func (l *Listener) Accept() (net.Conn, error) {
	l.pause()
	if !l.takePlace() {
		return nil, net.ErrClosed
	}
	wait := firstRetry
	for {
		c, err := l.inner.Accept()
		if err == nil {
			return l.opened(c), nil
		}
		select {
		case <-l.closed:
			<-l.places
			return nil, net.ErrClosed
		default:
		}
		if errors.Is(err, net.ErrClosed) { // closed by somebody who has the socket
			<-l.places
			return nil, err
		}
		l.counts.errors.Add(1)
		l.trouble.tell(l.log, l.Addr().String(), plain(err))
		if !l.sleep(wait) {
			<-l.places
			return nil, net.ErrClosed
		}
		wait = min(2*wait, lastRetry)
	}
}

// The time between two tries to accept when descriptors or memory have run out: as
// net/http has it. Whoever is to close one needs the processor meanwhile.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Second
)

// takePlace waits until there is one, and reports whether l is still open.
func (l *Listener) takePlace() bool {
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	start := time.Now()
	l.counts.full.begin(start)
	defer func() { l.counts.full.end(time.Now()) }()
	select {
	case l.places <- struct{}{}:
		return true
	case <-l.closed:
		return false
	}
}

// opened counts c, whose place is taken already, and starts TLS.
func (l *Listener) opened(c net.Conn) net.Conn {
	l.counts.open.Add(1)
	l.counts.accepted.Add(1)
	c = counted(c, &opening{of: l})
	if l.keys == nil {
		return c
	}
	return tls.Server(c, l.keys.server)
}

// sleep reports whether l is open after d.
func (l *Listener) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.closed:
		return false
	}
}
