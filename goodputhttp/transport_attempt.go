package goodputhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
)

// An attempt is one request on its way to a dependency, with its slot, and the body of
// its response. The slot is held to the end of that body: EOF, an error, Close, or the
// end of the context for a body that was forgotten, whichever comes first.
//
// Close may be called while Read waits, and the context may end at any time, so the end
// of an attempt is whoever sets over: nobody else touches the slot from then on, and
// nobody before it once the body is out of hand.
type attempt struct {
	dep    *Dependency
	ctx    context.Context    // ends with the attempt: the caller's, or below it
	caller context.Context    // of the request
	cancel context.CancelFunc // ends ctx; nil if that is the caller's
	res    *http.Response
	body   io.ReadCloser // of res, as it came
	fault  error         // what the header said: the outcome, whatever the body does
	grpc   bool
	listed bool // in bodies, until it ends
	over   atomic.Bool
	slot   goodput.Slot

	prev, next *attempt // in bodies

	// What would be allocated beside it.
	req    http.Request
	values [numDialects]string
}

// answered takes the end of Base.RoundTrip with the response or err.
func (a *attempt) answered(r *http.Request, err error) {
	d := a.dep
	if err != nil {
		if a.caller.Err() == nil && a.ctx.Err() != context.Canceled { // who left says nothing about the server
			d.heard(false)
		}
		a.end(errBroken)
		return
	}
	res := a.res
	res.Request = r
	if res.StatusCode == http.StatusSwitchingProtocols || (r.Method == http.MethodConnect && res.StatusCode < 300 && res.StatusCode >= 200) {
		// A connection that lives for hours, as long as both sides like. Its context must
		// live as long, so that of an attempt with a bound of its own still ends it.
		d.heard(true)
		a.over.Store(true)
		a.slot.Detach()
		return
	}
	a.slot.Served()
	shed := refused(res, a.grpc)
	d.heard(!shed)
	if shed {
		d.counts.shed.Add(1)
		a.fault = errShed
	} else {
		a.fault = failure(res, a.grpc)
	}
	if bodiless(res, r) {
		a.end(nil)
		return
	}
	a.body, res.Body, a.listed = res.Body, a, true
	d.open.add(a)
}

// bodiless reports whether there is nothing to read, so that nobody need close it. In HTTP/1
// that is http.NoBody; in HTTP/2 it is a type without a name, and the length is 0.
func bodiless(res *http.Response, r *http.Request) bool {
	switch {
	case res.Body == nil, res.Body == http.NoBody, r.Method == http.MethodHead:
		return true
	case res.StatusCode == http.StatusNoContent, res.StatusCode == http.StatusNotModified:
		return true
	}
	return res.ProtoMajor == 2 && res.ContentLength == 0
}

// Read reads the body of the response. What it waits for is time in the dependency; the
// time between two calls is the caller's own.
func (a *attempt) Read(p []byte) (n int, err error) {
	returned := false
	span := goodput.Downstream(a.caller)
	defer func() {
		span.End()
		if !returned {
			a.end(errPanicked)
		}
	}()
	n, err = a.body.Read(p)
	returned = true
	if err != nil {
		a.end(err)
	}
	return n, err
}

// Close closes the body of the response. A caller that does not want the rest of it has
// had its answer.
func (a *attempt) Close() error {
	defer a.end(nil)
	return a.body.Close()
}

// errBroken is a response that ended before its end, or never began.
var errBroken = errors.New("goodputhttp: no answer, or a part of one")

// end ends the slot, once. err is how the body ended: nil and io.EOF are the same. The
// limiter is told
//
//   - failed, if the header or the trailers said so, whatever came of the body;
//   - abandoned, if the caller has left;
//   - late, if its deadline has passed: the time it took is a sample, without which the
//     limiter would never learn that the dependency became slow;
//   - failed, if the transport did, or if an attempt took longer than it may;
//   - else completed.
func (a *attempt) end(err error) {
	if !a.over.CompareAndSwap(false, true) {
		return
	}
	if a.listed {
		a.dep.open.remove(a)
	}
	if a.fault == nil && err == io.EOF && a.grpc {
		a.fault = grpcFailure(a.res.Trailer)
	}
	switch why := a.ctx.Err(); {
	case a.fault != nil:
		a.slot.Fail(a.fault)
	case err == errPanicked:
		a.slot.Fail(err)
	case why == context.Canceled:
		a.slot.Abandon()
	case why != nil && a.caller.Err() != nil:
		a.slot.Release()
	case why != nil || (err != nil && err != io.EOF):
		a.slot.Fail(errBroken)
	default:
		a.slot.Release()
	}
	a.stop()
}

func (a *attempt) stop() {
	if a.cancel != nil {
		a.cancel()
	}
}

// settle ends an attempt that failed, before the wait for the next one: the slot goes
// back at once, and the connection as soon as a small body is read, beside that wait. The
// response can still be returned, with its whole body.
func (a *attempt) settle() {
	a.end(nil)
	s := &prefetched{body: a.body, done: make(chan struct{})}
	a.body = s
	go s.read()
}

// drained waits a little for the rest of a small body: a new connection takes as long.
func (a *attempt) drained() {
	if s, ok := a.body.(*prefetched); ok {
		timer := time.NewTimer(settleTime)
		defer timer.Stop()
		select {
		case <-s.done:
		case <-timer.C:
		}
	}
}

// discard drops the response of an attempt that another one follows.
func (a *attempt) discard() {
	if a.res != nil && a.res.Body != nil {
		_ = a.res.Body.Close()
	}
}

// What is read of a response that another attempt may follow, so that its connection can
// be used again: as much as a refusal has.
const (
	settleBytes = 4 << 10
	settleTime  = 100 * time.Millisecond
)

// prefetched is a body whose first bytes are read in advance.
type prefetched struct {
	body io.ReadCloser
	done chan struct{} // closed when head and err are there
	head bytes.Buffer
	err  error // of body, after head
}

func (s *prefetched) read() {
	s.err = errPanicked // unless it returns
	defer func() {
		_ = recover() // it is reported by Read, as an error
		close(s.done)
	}()
	switch n, err := io.CopyN(&s.head, s.body, settleBytes); {
	case n == settleBytes:
		s.err = nil
	default:
		s.err = err
	}
}

func (s *prefetched) Read(p []byte) (int, error) {
	<-s.done
	switch {
	case s.head.Len() > 0:
		return s.head.Read(p)
	case s.err != nil:
		return 0, s.err
	}
	return s.body.Read(p)
}

func (s *prefetched) Close() error { return s.body.Close() }

// failure returns what the header of res says went wrong, or nil.
func failure(res *http.Response, grpc bool) error {
	if res.StatusCode >= 500 {
		return failedStatus(strconv.Itoa(res.StatusCode))
	}
	if grpc {
		return grpcFailure(res.Header)
	}
	return nil
}
