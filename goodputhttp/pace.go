package goodputhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// While a request holds a slot, its client can hold the slot too: by sending a
// body that was not read in advance a byte at a time, or by not reading a
// response that is larger than the buffers on the way. As many such clients as
// there are slots, and nobody else is served. Timeouts of net/http are of no
// use against it: set short they cut honest streams, and one that starts again
// with each byte is never over.
//
// So a client has SlowClient to spend. While the handler waits for it, to send
// or to take, it spends; each 16 KiB that go through earn a second, up to
// SlowClient. Who is on time never runs out, whoever is silent is cut off
// SlowClient later, and a byte now and then earns nothing. What the handler waits
// for elsewhere, its database or the next event of a stream, costs nothing.

// ErrSlowClient is what a handler gets from reading the body of a request whose
// client has used up Server.SlowClient.
var ErrSlowClient = errors.New("goodputhttp: the client was too slow while it held a slot")

const (
	// DefaultSlowClient is what a packet that was lost several times over takes.
	DefaultSlowClient = 10 * time.Second

	// PatientClient as Server.SlowClient says that clients may be as slow as
	// they like.
	PatientClient = -1

	// pacedWrite is how much is written at a time: two seconds' worth, so that
	// the credit for what is on its way is small beside SlowClient.
	pacedWrite = 32 << 10

	// unpaced bytes of a response cannot make a handler wait: net/http keeps as
	// many before it writes to the connection.
	unpaced = 2 << 10
)

// A pace adds up the time that one direction of a request waits for the client.
type pace struct {
	allowed time.Duration // Server.SlowClient; <= 0 for as long as it likes
	of      *response
	cut     func(*response) // ends what waits

	mu      sync.Mutex
	timer   *time.Timer
	since   time.Time     // zero while nothing waits
	spent   time.Duration // of allowed. Invariant: never negative, so credit does not pile up
	pending int64         // bytes on their way
	over    bool          // cut: too slow
	late    bool          // cut: the deadline has passed. Invariant: over and late are not both true
	unwatch func() bool   // ends what watches the deadline; nil: nothing does
	stopped bool
}

// begin says that n bytes are about to wait for the client.
func (p *pace) begin(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.pending = time.Now(), n
	if p.timer == nil {
		p.timer = time.AfterFunc(p.left(), p.ring)
	} else {
		p.timer.Reset(p.left())
	}
}

// end says that the wait is over and n bytes went through. It reports whether
// the client was cut off.
func (p *pace) end(n int64) (over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.spent = max(0, p.spent+time.Since(p.since)-earned(n))
	p.since, p.pending = time.Time{}, 0
	return p.over
}

// stop says that the writer may be that of another request from now on, or that the body has
// ended and what is read behind it is not of this request.
func (p *pace) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.unwatch != nil {
		p.unwatch()
	}
}

// isOver reports whether the client was cut off for being slow.
func (p *pace) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

func (p *pace) left() time.Duration { return p.allowed + earned(p.pending) - p.spent }

func earned(bytes int64) time.Duration {
	return time.Duration(bytes) * (time.Second / prereadRate) // 61 µs a byte
}

// ring may come late, when something else waits already, so it looks again.
func (p *pace) ring() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.over || p.late || p.since.IsZero() {
		return
	}
	if left := p.left() - time.Since(p.since); left > 0 {
		p.timer.Reset(left)
		return
	}
	p.over = true
	p.cut(p.of)
}

// paces sets up both directions of a request that is about to run. The body of a
// gRPC call may be a stream that is silent for hours, and that of a Stream is one; HTTP/1
// has no gRPC, whatever the content type says, and nobody need be slow to take an answer.
func (w *response) paces() {
	v := w.visit
	w.reading.of, w.writing.of = w, w
	allowed := or(v.server.SlowClient, DefaultSlowClient)
	if allowed < 0 {
		return
	}
	w.writing.allowed = allowed
	if (!v.grpc || v.r.ProtoMajor == 1) && !v.server.Stream {
		w.reading.allowed = allowed
	}
	w.reading.cut = (*response).cutReading // a closure for each request would be two allocations
	w.writing.cut = (*response).cutWriting
}

func (w *response) cutReading() {
	w.visit.server.books().slowClients.Add(1)
	_ = http.NewResponseController(w.visit.w).SetReadDeadline(longAgo)
}

func (w *response) cutWriting() {
	w.visit.server.books().slowClients.Add(1)
	_ = http.NewResponseController(w.visit.w).SetWriteDeadline(longAgo)
}

// stopPaces comes before the handler's writer is somebody else's.
func (w *response) stopPaces() {
	w.reading.stop()
	w.writing.stop()
}

// A pacedBody counts the time that its reader waits for the client, and ends with the deadline
// of ctx.
type pacedBody struct {
	io.ReadCloser
	pace *pace
	ctx  context.Context
}

func (b *pacedBody) Read(p []byte) (n int, err error) {
	b.pace.watch(b.ctx)
	over := false
	if b.pace.allowed > 0 {
		b.pace.begin(0)
		n, err = b.ReadCloser.Read(p)
		over = b.pace.end(int64(n))
	} else {
		n, err = b.ReadCloser.Read(p)
	}
	switch {
	case err == nil:
	case err == io.EOF:
		b.pace.stop()
	case !errors.Is(err, os.ErrDeadlineExceeded): // http.Server.ReadTimeout is one too
	case over:
		err = ErrSlowClient
	case b.pace.isLate():
		err = context.DeadlineExceeded
	}
	return n, err
}

// SlowClient reports whether the body of a request was cut off because its client has used up
// Server.SlowClient. ctx is the context of the request, or one below it. Over HTTP/1 that
// context is cancelled then, as if the client had left; but it may still read, so that an
// answer such as 408, with Connection: close, makes sense.
func SlowClient(ctx context.Context) bool {
	v, ok := ctx.Value(visitKey{}).(*visit)
	return ok && v.run != nil && v.run.reading.isOver()
}

// complete reports whether all of the body has been read in advance.
func (v *visit) complete() bool { return v.body != nil && v.body.end != nil }

// write writes p piece by piece, and counts the time that each waits.
func (w *response) write(p []byte) (written int, err error) {
	w.written += int64(len(p))
	if w.writing.allowed <= 0 || w.written <= unpaced {
		return w.ResponseWriter.Write(p)
	}
	for {
		piece := p[written:min(written+pacedWrite, len(p))]
		w.writing.begin(int64(len(piece)))
		n, err := w.ResponseWriter.Write(piece)
		w.writing.end(int64(n))
		if written += n; err != nil || written == len(p) {
			return written, err
		}
	}
}
