package goodputhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Why small bodies are read before the request queues:
//
//   - While a body is unread, net/http does not notice that its client left
//     (golang/go#23262). Once it is read, it does.
//   - A body that trickles in holds no slot, only its connection.
//   - A refusal costs no more than it would otherwise: net/http reads up to
//     256 KiB behind an early answer anyway, to keep the connection.
//
// What must not be read: a body announced by Expect: 100-continue, since the
// first Read sends the 100; a gRPC stream and an HTTP/2 body of unknown length,
// whose client may wait for an answer before it goes on; what follows an upgrade; what
// belongs to a Stream.
func (v *visit) mayPreread() bool {
	r := v.r
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 || v.grpc || v.server.Stream ||
		len(r.Header["Expect"]) > 0 || v.place.state.Load() != placeNone {
		return false
	}
	if r.ContentLength < 0 && r.ProtoMajor != 1 {
		return false
	}
	if r.ContentLength > v.server.maxPreread() || v.server.maxPreread() < 0 {
		return false
	}
	_, interruptible := find[interface{ SetReadDeadline(time.Time) error }](v.w)
	return interruptible
}

const (
	// prereadTimeout and prereadRate bound a slow upload: an honest client on a
	// bad mobile network sends 16 KiB/s (128 kbit/s); 10 s more for the way.
	prereadTimeout = 10 * time.Second
	prereadRate    = 16 << 10
)

func (v *visit) prereadTime() time.Duration {
	t := v.server.PrereadTimeout
	if t <= 0 {
		t = prereadTimeout + time.Duration(max(v.r.ContentLength, 0)/prereadRate)*time.Second
	}
	if deadline := v.budget.Deadline; !deadline.IsZero() {
		t = min(t, time.Until(deadline))
	}
	return t
}

// preread reads what it may of the body. It returns false if it has answered
// the request, and otherwise the context to go on with. If the client hangs up
// it calls leave, and the limiter counts a request that was cancelled before it
// started.
func (v *visit) preread(ctx context.Context, leave func()) (context.Context, bool) {
	if !v.mayPreread() {
		return ctx, true
	}
	t := v.prereadTime()
	if t <= 0 {
		return ctx, true // the deadline has passed: the limiter refuses it
	}
	v.body = v.newBody()
	b := ring(v.w, t)
	err := v.fill()
	// http.Server.ReadTimeout is a bell as well.
	switch rang := b.stop() || errors.Is(err, os.ErrDeadlineExceeded); {
	case rang && v.late():
		// The read that failed has cancelled ctx, as if the client had left. It
		// is late: a context that says so.
		late, cancel := context.WithDeadline(context.WithoutCancel(ctx), v.budget.Deadline)
		cancel()
		return late, true
	case rang:
		v.server.books().slowBodies.Add(1)
		v.answer(slowBody, 0)
		return ctx, false
	case err == nil:
		return ctx, true
	case err == io.EOF:
		v.unread = false
		v.body.end = io.EOF
		return ctx, true
	case v.body.cut.Load():
		v.answer(largeBody, 0)
		return ctx, false
	case isTooLarge(err): // a http.MaxBytesReader around us: the handler answers
		v.body.end = err
		return ctx, true
	case v.left(ctx) || isHangup(err):
		leave()
		return ctx, true
	}
	v.server.books().badBodies.Add(1)
	v.answer(badBody, 0)
	return ctx, false
}

func (v *visit) late() bool {
	return !v.budget.Deadline.IsZero() && !time.Now().Before(v.budget.Deadline)
}

// A bell ends the reads of a request after a time. Only then does it set a read
// deadline, so in the usual case there is none to clear while net/http already
// reads behind the body (golang/go#70834). Once it has rung, the connection is
// good for one answer.
type bell struct {
	mu          sync.Mutex
	timer       *time.Timer
	rang, muted bool
}

// longAgo as a deadline ends whatever waits.
var longAgo = time.Unix(1, 0)

func ring(w http.ResponseWriter, after time.Duration) *bell {
	b := new(bell)
	b.timer = time.AfterFunc(after, func() { b.toll(w) })
	return b
}

func (b *bell) toll(w http.ResponseWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.muted {
		b.rang = true
		_ = http.NewResponseController(w).SetReadDeadline(longAgo)
	}
}

// stop mutes the bell and reports whether it rang. When it has returned, the
// bell does not touch the writer any more, which by then may be that of the next
// request.
func (b *bell) stop() bool {
	b.timer.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.muted = true
	return b.rang
}

// fill reads the body to its end or until as much is in memory as may be. What is held
// doubles as bytes arrive, so memory is held for what a client has sent, never for what it
// has announced.
func (v *visit) fill() error {
	b, s := v.body, v.server
	most := s.maxPreread()
	if v.r.ContentLength > 0 {
		most = v.r.ContentLength
	}
	for {
		if b.read.full() {
			more := min(max(b.read.held, 4<<10), most-b.read.held)
			if more == 0 {
				if v.r.ContentLength > 0 {
					return b.last() // all that was declared is here
				}
				return nil
			}
			if s.books().buffered.Add(more) > s.maxBuffered() {
				s.books().buffered.Add(-more)
				return nil
			}
			b.read.grow(more)
		}
		n, err := b.fetch(b.read.room())
		b.read.add(n)
		if err != nil {
			return err
		}
	}
}

// last reads the end behind the last byte, which HTTP/1 says with the byte. The server of
// HTTP/2 in net/http keeps what it had buffered of a stream, up to 16 KiB, until it has said so.
func (b *body) last() error {
	var none [1]byte
	if _, err := b.fetch(none[:]); err != nil {
		return err
	}
	return io.EOF
}

// forget gives back the memory of the body. A transport may still read a body
// after its handler has returned, so what it reads is taken away under the lock.
func (v *visit) forget() {
	if b := v.body; b != nil {
		b.mu.Lock()
		v.server.books().buffered.Add(-b.read.held)
		b.read, b.end = spool{}, http.ErrBodyReadAfterClose
		b.mu.Unlock()
	}
}

// A body is what was read in advance, and behind it the rest.
type body struct {
	source io.ReadCloser
	mu     sync.Mutex
	read   spool
	end    error // behind read; nil: source goes on

	// A body of unknown length ends after most bytes; 0: it has no such bound.
	most, taken int64
	cut         atomic.Bool // it was longer
	large       *atomic.Uint64
}

// newBody returns the body of the request, bounded by Server.MaxBody if its length is not
// known: who declares more than that is answered at the door.
func (v *visit) newBody() *body {
	b := &body{source: v.r.Body}
	if v.r.ContentLength < 0 {
		b.most, b.large = v.server.MaxBody, &v.server.books().largeBodies
	}
	return b
}

// bound gives a request that nothing was read of a body that ends where it has to.
func (v *visit) bound() {
	if v.body == nil && v.server.MaxBody > 0 && v.r.ContentLength < 0 && v.r.Body != nil {
		v.body = v.newBody()
	}
}

// fetch reads from the source, one byte more than may be to know that there is one.
func (b *body) fetch(p []byte) (int, error) {
	if b.most == 0 {
		return b.source.Read(p)
	}
	if b.cut.Load() {
		return 0, &http.MaxBytesError{Limit: b.most}
	}
	left := b.most - b.taken
	if int64(len(p)) > left {
		p = p[:left+1]
	}
	n, err := b.source.Read(p)
	if int64(n) <= left {
		b.taken += int64(n)
		return n, err
	}
	b.cut.Store(true)
	b.large.Add(1)
	return int(left), &http.MaxBytesError{Limit: b.most}
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.read.left > 0 {
		n := b.read.give(p)
		var err error
		if b.read.left == 0 {
			err = b.end // with the last bytes, which tells a transport that it has all
		}
		b.mu.Unlock()
		return n, err
	}
	err := b.end
	b.mu.Unlock()
	if err != nil || len(p) == 0 {
		return 0, err
	}
	return b.fetch(p)
}

func (b *body) Close() error { return b.source.Close() }

func isTooLarge(err error) bool {
	var tooLarge *http.MaxBytesError
	return errors.As(err, &tooLarge)
}

// isHangup reports whether the client broke off rather than sent nonsense.
func isHangup(err error) bool {
	var network net.Error
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}

// find looks for T in a writer and those that it wraps, as
// http.ResponseController does.
func find[T any](w http.ResponseWriter) (found T, ok bool) {
	for {
		if found, ok = w.(T); ok {
			return found, true
		}
		u, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return found, false
		}
		w = u.Unwrap()
	}
}
