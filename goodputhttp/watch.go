package goodputhttp

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// net/http does not notice that an HTTP/1 client left while the body of its
// request is unread, or when it has already sent a second request
// (golang/go#23262). A request that waits because of us has to: nobody wants
// its answer, and it holds a place in the queue, and later a slot. So we look at
// the state of its TCP connection, which says that the peer has closed even if
// bytes before that are unread, until its handler returns or the connection is
// upgraded.
//
// What this cannot see: a client that has closed in an orderly way, and whose
// kernel still has more to send than our receive buffer takes (about 64 KiB).
// Its last packet is behind the rest. That is why bodies of up to
// Server.MaxPreread are read, and for a larger one the client is noticed when
// the handler reads the body.

// watchEvery: a client is noticed within a second, with four looks to spare. A
// look is one system call of about 0.5 µs, so 10,000 requests that wait or run
// cost 2.5 % of a core.
const watchEvery = 200 * time.Millisecond

type connKey struct{}

// ConnContext belongs into http.Server.ConnContext. Without it, and on other
// systems than Linux, a client that leaves is noticed only if net/http notices:
// if its request has no body or one that was read, as those of up to
// Server.MaxPreread are. It needs TCP; TLS above it makes no difference.
//
//	srv := &http.Server{Handler: h, ConnContext: goodputhttp.ConnContext}
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn() // under TLS
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return ctx
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, connKey{}, raw)
}

// A watch looks at one connection until it is stopped or the client has left.
type watch struct {
	conn  syscall.RawConn
	leave context.CancelFunc
	mu    sync.Mutex
	timer *time.Timer
	over  bool // stopped, or the client has left
}

// watchClient calls leave once the client of r has left, unless it is stopped
// before. It returns nil, which can be stopped, if there is nothing to watch.
func watchClient(r *http.Request, leave context.CancelFunc) *watch {
	if r.ProtoMajor != 1 {
		return nil // HTTP/2 says so itself
	}
	conn, ok := r.Context().Value(connKey{}).(syscall.RawConn)
	if !ok {
		return nil
	}
	w := &watch{conn: conn, leave: leave}
	w.mu.Lock()
	w.timer = time.AfterFunc(watchEvery, w.look)
	w.mu.Unlock()
	return w
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
	case peerLeft(w.conn):
		w.over = true
		w.leave()
	default:
		w.timer.Reset(watchEvery)
	}
}

// stop ends the watch. When it has returned, leave will not be called any more.
func (w *watch) stop() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}
