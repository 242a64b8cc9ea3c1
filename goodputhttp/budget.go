package goodputhttp

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// HopMargin is what ForwardDeadline takes off for the way to the next hop and
// back. Peers count from the arrival of a request, so without it each hop works
// longer than its caller waits. 5 ms covers a network within a region (0.5-2 ms
// round trip) and the time that a busy process takes to run the goroutine.
const HopMargin = 5 * time.Millisecond

// A Budget is the time that a request was given, and who gave it. Server reads
// it at the door and puts it into the context of the request.
type Budget struct {
	// Deadline is when the caller stops caring. Zero: nobody said.
	Deadline time.Time

	// Source is what set Deadline: the canonical name of a header, "context",
	// "cap" or "default"; empty without a deadline.
	Source string

	given uint8 // bit i: header i of dialects came with a valid value
	came  uint8 // bit i: it came at all
	grpc  bool
}

// shorten takes deadline if it is earlier.
func (b *Budget) shorten(deadline time.Time, source string) {
	if b.Deadline.IsZero() || deadline.Before(b.Deadline) {
		b.Deadline, b.Source = deadline, source
	}
}

// read takes what h says at now, and counts in errs, if it is not nil, the headers that
// are malformed.
func (b *Budget) read(h http.Header, now time.Time, errs *[numDialects]atomic.Uint64) {
	for i := range dialects {
		d := &dialects[i]
		values := h[d.header]
		if len(values) == 0 || (i == grpcTimeout && !b.grpc) {
			continue
		}
		b.came |= 1 << i
		left, ok, clean := d.read(values)
		if !clean && errs != nil {
			errs[i].Add(1)
		}
		if !ok {
			continue
		}
		b.given |= 1 << i
		if left != forever {
			b.shorten(now.Add(left), d.header)
		}
	}
}

// budget returns what a request that arrived at now was given: the earliest of
// its headers, its context and the cap; the default if none of the first two
// says anything.
func (s *Server) budget(r *http.Request, now time.Time, grpc bool) Budget {
	b := Budget{grpc: grpc}
	b.read(r.Header, now, &s.books().deadlineErrors)
	if deadline, ok := r.Context().Deadline(); ok {
		b.shorten(deadline, "context")
	}
	if b.Deadline.IsZero() && s.Deadline > 0 {
		b.shorten(now.Add(s.Deadline), "default")
	}
	if s.DeadlineCap > 0 {
		b.shorten(now.Add(s.DeadlineCap), "cap")
	}
	return b
}

// Forward writes what is left at now, less margin, into h, the header of a
// request to the next hop. It rewrites the headers that the caller used, each
// in its own unit, rounded down, at least 1 unit; a grpc-timeout has at most 8
// digits and takes a coarser unit where it needs one. If the caller used none,
// it adds grpc-timeout to a gRPC request and x-envoy-expected-rq-timeout-ms,
// the most widely understood, to any other.
//
// A malformed grpc-timeout passes untouched, since its server has to answer it;
// the other headers are dropped if malformed, so that nobody downstream reads
// them differently. Without a deadline h stays as it is.
//
// Call it again for each retry: time has passed.
func (b Budget) Forward(h http.Header, now time.Time, margin time.Duration) {
	if b.Deadline.IsZero() {
		return
	}
	b.forward(h, b.Deadline.Sub(now)-margin, new([numDialects]string))
}

// forward is Forward for what is left. The values are kept in text.
func (b *Budget) forward(h http.Header, left time.Duration, text *[numDialects]string) {
	write := b.given
	if write == 0 {
		write = 1 << envoyTimeout
		if b.grpc {
			write = 1 << grpcTimeout
		}
	}
	if bad := uint8(1 << grpcTimeout); b.came&^b.given&bad != 0 {
		write &^= bad
	}
	for i := range dialects {
		d := &dialects[i]
		switch bit := uint8(1 << i); {
		case write&bit != 0:
			text[i] = d.format(left)
			h[d.header] = text[i : i+1 : i+1] // who appends to it gets a copy
		case b.came&bit != 0 && i != grpcTimeout:
			delete(h, d.header)
		}
	}
}

// visitKey is the key of the *visit in the context of a request.
type visitKey struct{}

// BudgetFrom returns the budget of the request that ctx belongs to. Where no
// Server has read one it is the deadline of ctx alone.
func BudgetFrom(ctx context.Context) Budget {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v.budget
	}
	var b Budget
	if deadline, ok := ctx.Deadline(); ok {
		b.shorten(deadline, "context")
	}
	return b
}

// ForwardDeadline writes the time that is left of the request of ctx into h,
// the header of a request to the next hop: see Budget.Forward, with HopMargin.
// In a reverse proxy it belongs into Rewrite:
//
//	goodputhttp.ForwardDeadline(pr.In.Context(), pr.Out.Header)
//
// A deadline of ctx that is earlier than the budget's wins, so a client that
// allows each attempt less than the whole passes the context of the attempt.
func ForwardDeadline(ctx context.Context, h http.Header) {
	b := BudgetFrom(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		b.shorten(deadline, "context")
	}
	b.Forward(h, time.Now(), HopMargin)
}
