package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/goodput/goodput/goodputhttp"
)

// A finisher lets the service finish what it has begun. When a client leaves or
// a deadline passes, the request is usually cancelled: the connection to the
// service is closed, and its slot is free. Many services do not notice (a worker
// of PHP, Ruby or Python that waits for its database), go on, and run more than
// the limit, most of all in an overload, when clients give up. With a finisher
// the client is answered just as soon, but the request goes on and keeps its
// slot until the service has answered, for grace at most.
type finisher struct {
	http.RoundTripper
	grace time.Duration
}

// RoundTrip sends r and returns the response or, when the context of r is over,
// its error.
func (f *finisher) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	release, ok := goodputhttp.Hold(ctx)
	if !ok {
		return f.RoundTripper.RoundTrip(r)
	}
	if err := ctx.Err(); err != nil {
		release()
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	type answer struct {
		res *http.Response
		err error
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answered := make(chan answer, 1)
	go func() {
		res, err := f.RoundTripper.RoundTrip(r.WithContext(work))
		answered <- answer{res, err}
	}()
	select {
	case a := <-answered:
		release()
		context.AfterFunc(ctx, cancel) // at the latest when the handler returns
		return a.res, a.err
	case <-ctx.Done():
	}
	go func() {
		defer release()
		grace := time.AfterFunc(f.grace, cancel)
		defer grace.Stop()
		// An answer may have come just before the end of the grace: nobody else closes it.
		if a := <-answered; a.err == nil {
			a.res.Body.Close()
		}
		cancel()
	}()
	return nil, ctx.Err()
}
