package goodputhttp

import (
	"context"
	"io"
	"net/http"
)

// The deadline of a request ends the reading of its body, however long SlowClient is: nobody
// waits for the answer any more. That its context is over does not free the slot, since a Read
// of net/http knows nothing of it, and Close waits for the Read, and then for more of the body.
//
// Over HTTP/1 a read that fails makes net/http cancel the context of the request, as if the
// client had left. By then the context that the handler has is over for its deadline, and so it
// stays; late says why the one above it is.

// watch cuts what is read once the deadline of ctx has passed.
func (p *pace) watch(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := ctx.Deadline(); !ok || p.stopped || p.unwatch != nil {
		return
	}
	p.unwatch = context.AfterFunc(ctx, func() { p.expire(ctx) })
}

// expire is called when ctx is over, or may be. A handler that returns for its deadline comes
// here too, before the watch ends: a Read that it has left behind in another goroutine, as a
// reverse proxy does, would keep net/http from sending the answer.
func (p *pace) expire(ctx context.Context) {
	if ctx.Err() == context.DeadlineExceeded {
		p.pass()
	}
}

// pass ends what reads from the client now, and what will: also what net/http reads of a body
// to be able to close it, or before it sends the header of a response.
func (p *pace) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.over || p.unwatch == nil {
		return
	}
	p.late = true
	_ = http.NewResponseController(p.of.visit.w).SetReadDeadline(longAgo)
}

// isLate reports whether the deadline has ended the reading.
func (p *pace) isLate() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// paced wraps what is still to come of a body. Over HTTP/1 it is watched from now on, because
// net/http reads of it where nobody else does; over HTTP/2 from the first Read, since a request
// without a body has one there too.
func (w *response) paced(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	if body == nil || body == http.NoBody || w.visit.complete() {
		return body
	}
	if _, ends := ctx.Deadline(); !ends && w.reading.allowed <= 0 {
		return body
	}
	if w.visit.unread {
		w.reading.watch(ctx)
	}
	return &pacedBody{body, &w.reading, ctx}
}
