package goodputhttp

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// A Budget is the time that a request was given, and who gave it. Server reads
// it at the door and puts it into the context of the request.
type Budget struct {
	// Deadline is when the caller stops caring. Zero: nobody said.
	Deadline time.Time

	// Source is what set Deadline: the canonical name of a header, "context",
	// "cap" or "default"; empty without a deadline.
	Source string

	given, came headers
	grpc        bool
	stamped     bool    // a trusted hop has said when it arrived
	server      *Server // that read it; nil: none did
	arrived     int64   // when the request entered the system: milliseconds since 1970; 0 unless somebody says it or is told
}

// headers is a set of those in which deadlines come: bit i is header i of dialects, and
// bit numDialects + i is header i of Server.DeadlineHeaders.
type headers uint16

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

// readFurther is read for the headers of s.DeadlineHeaders. The relative ones count from
// start, as those of dialects do.
func (b *Budget) readFurther(s *Server, h http.Header, start, now time.Time) {
	for i := range s.further() {
		f := &s.ready.further[i]
		values := h[f.name]
		if len(values) == 0 {
			continue
		}
		bit := headers(1) << (numDialects + i)
		b.came |= bit
		left, ok, clean := f.read(values, now)
		if !clean {
			f.errors.Add(1)
		}
		if !ok {
			continue
		}
		b.given |= bit
		switch {
		case left == forever:
		case f.isInstant():
			b.shorten(now.Add(left), f.name)
		default:
			b.shorten(start.Add(left), f.name)
		}
	}
}

// enter returns when r, whose header was complete at now, entered the system.
func (b *Budget) enter(r *http.Request, now time.Time) time.Time {
	start := now
	if trusted := b.server.Trusted; trusted != nil && trusted(r) {
		if age := b.server.books().age(r.Header, now); age > 0 {
			start, b.stamped = now.Add(-age), true
		}
	}
	b.arrived = start.UnixMilli()
	return start
}

// arrival returns that instant later. It is one of the wall clock, read a moment ago; as a
// distance from now it has a monotonic reading, and waits as long as it waits.
func (b *Budget) arrival() time.Time {
	now := time.Now()
	return now.Add(time.UnixMilli(b.arrived).Sub(now))
}

// budget returns what a request whose header was complete at now was given: the earliest
// of its headers, its context and the cap; the default if none of the first two
// says anything.
func (s *Server) budget(r *http.Request, now time.Time, grpc bool) Budget {
	b := Budget{grpc: grpc, server: s}
	start := now
	if s.Trusted != nil || s.ForwardStart {
		start = b.enter(r, now)
	}
	b.read(r.Header, start, &s.books().deadlineErrors)
	if len(s.DeadlineHeaders) > 0 {
		b.readFurther(s, r.Header, start, now)
	}
	if deadline, ok := r.Context().Deadline(); ok {
		b.shorten(deadline, "context")
	}
	said := !b.Deadline.IsZero()
	if !said && s.Deadline > 0 {
		b.shorten(start.Add(s.Deadline), "default")
	}
	if s.DeadlineCap > 0 && !(said && s.Extends != nil && s.Extends(r)) {
		b.shorten(start.Add(s.DeadlineCap), "cap")
	}
	return b
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
