package goodputhttp

import (
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
	kept   *kept         // body, once another attempt is to follow
	fault  error         // what the header said: the outcome, whatever the body does
	less   bool          // the service refused it for load
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
			a.less = unreached(err)
		}
		a.end(errBroken)
		return
	}
	res := a.res
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
		a.fault, a.less = errShed, aboutLoad(res.Header)
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
//   - dropped, if the header was a refusal for load, or there was no connection;
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
	case a.less:
		a.slot.Dropped()
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

// settle keeps the response of an attempt that another one is to follow, which may be
// returned all the same. See kept.
func (a *attempt) settle() {
	if a.body == nil { // there is none, or it has ended
		return
	}
	k := &kept{a: a, body: a.body, done: make(chan struct{})}
	a.body, a.kept = k, k
	k.timer = time.AfterFunc(settleTime, k.drop)
	go k.read()
}

// drained waits, at most settleTime since settle, until the service has no more to do with
// the attempt and its slot is back.
func (a *attempt) drained() {
	if a.kept != nil {
		<-a.kept.done
	}
}

// dropped reports whether the response is not there any more. It is asked after drained.
func (a *attempt) dropped() bool { return a.kept != nil && a.kept.dropped }

// discard drops the response of an attempt that another one follows.
func (a *attempt) discard() {
	if a.res != nil && a.res.Body != nil {
		_ = a.res.Body.Close()
	}
}

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
