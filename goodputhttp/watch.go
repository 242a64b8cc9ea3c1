package goodputhttp

import (
	"context"
	"math/rand/v2"
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

// watchEvery: a client is noticed within a second, with three looks to spare. A
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

// lookouts are more than one, so that a round of one, which holds its lock, is short: 0.3 ms
// of looks where 10,000 requests are watched.
var lookouts [16]lookout

// A lookout looks at connections in rounds, as long as there are any: a timer for each
// request would cost more than its look, which most requests are too short to have.
type lookout struct {
	mu    sync.Mutex
	first *watch
	going bool // another round is to come
}

// A watch looks at one connection until it is stopped or the client has left. The zero
// value watches nothing and can be stopped.
//
// Invariant: it is in the list of its lookout from begin to stop, and what is below that is
// the lookout's, under its lock.
type watch struct {
	conn  syscall.RawConn
	leave context.CancelFunc
	by    *lookout

	next, prev *watch
	old        bool // it was there a round ago
	over       bool // the client has left
}

// begin calls leave once the client of r has left, unless the watch is stopped before.
func (w *watch) begin(r *http.Request, leave context.CancelFunc) {
	if r.ProtoMajor != 1 {
		return // HTTP/2 says so itself
	}
	conn, ok := r.Context().Value(connKey{}).(syscall.RawConn)
	if !ok {
		return
	}
	w.conn, w.leave, w.by = conn, leave, &lookouts[rand.IntN(len(lookouts))]
	w.by.add(w)
}

// stop ends the watch. When it has returned, leave will not be called any more.
func (w *watch) stop() {
	if w.by != nil {
		w.by.remove(w)
	}
}

// hasLeft reports whether it has seen that the client left.
func (w *watch) hasLeft() bool {
	if w.by == nil {
		return false
	}
	w.by.mu.Lock()
	defer w.by.mu.Unlock()
	return w.over
}

func (l *lookout) add(w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.next = l.first; w.next != nil {
		w.next.prev = w
	}
	l.first = w
	if !l.going {
		l.going = true
		time.AfterFunc(watchEvery, l.round)
	}
}

// remove takes w out, once.
func (l *lookout) remove(w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.conn == nil {
		return
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.conn, w.next, w.prev = nil, nil, nil
}

// round looks, and says when the next one is to be.
func (l *lookout) round() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look()
	if l.going = l.first != nil; l.going {
		time.AfterFunc(watchEvery, l.round)
	}
}

// look looks at all that have been there since the last time, so a client that leaves is
// noticed after two rounds at the latest. The caller holds the lock.
func (l *lookout) look() {
	for w := l.first; w != nil; w = w.next {
		switch {
		case w.over:
		case !w.old:
			w.old = true
		case peerLeft(w.conn):
			w.over = true
			w.leave()
		}
	}
}
