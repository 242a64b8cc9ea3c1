package goodputhttp

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// HopMargin is what ForwardDeadline takes off for the way to the next hop and back, unless
// Server.HopMargin says otherwise. Peers count from the arrival of a request, so without it
// each hop works longer than its caller waits. 5 ms covers a network within a region
// (0.5-2 ms round trip) and the time that a busy process takes to run the goroutine.
const HopMargin = 5 * time.Millisecond

// Forward writes what is left at now, less margin, into h, the header of a
// request to the next hop. It rewrites the headers that the caller used, each
// in its own unit, rounded down, at least 1 unit; a grpc-timeout has at most 8
// digits and takes a coarser unit where it needs one. If the caller used none,
// it adds grpc-timeout to a gRPC request and x-envoy-expected-rq-timeout-ms,
// the most widely understood, to any other. Server.Forward, ForwardOnly and
// ForwardStart say otherwise.
//
// A malformed grpc-timeout passes untouched, since its server has to answer it, and what
// is left is then told in x-envoy-expected-rq-timeout-ms, if it would have been there; the
// other headers are dropped if malformed, so that nobody downstream reads
// them differently. Without a deadline h stays as it is, but for ForwardStart.
//
// Call it again for each retry: time has passed.
func (b Budget) Forward(h http.Header, now time.Time, margin time.Duration) {
	if b.server != nil && b.server.ForwardStart && len(h[requestStart]) == 0 {
		var text [24]byte // "t=" and the 20 characters of any int64
		h[requestStart] = []string{string(strconv.AppendInt(append(text[:0], "t="...), b.arrived, 10))}
	}
	if b.Deadline.IsZero() {
		return
	}
	b.forward(h, b.chosen(), now, b.Deadline.Sub(now)-margin, new([numDialects]string))
}

// added is the header for who used none.
func (b *Budget) added() headers {
	if b.grpc {
		return 1 << grpcTimeout
	}
	return 1 << envoyTimeout
}

// chosen returns the headers to write: those that the caller used, else the one that is
// added, or that one in place of those.
func (b *Budget) chosen() headers {
	to, only := DialectOfCaller, false
	if b.server != nil {
		to, only = b.server.Forward, b.server.ForwardOnly
	}
	if b.given != 0 && !only {
		return b.given
	}
	var write headers
	switch to {
	case DialectOfCaller:
		return b.added()
	case DialectNone: // a gRPC call that has a time limit keeps it
		return b.given & b.grpcBit()
	default:
		write = 1 << (to - DialectGRPC)
	}
	switch {
	case only:
		return write | b.grpcBit()
	case b.grpc:
		return b.grpcBit()
	}
	return write
}

func (b *Budget) grpcBit() headers {
	if b.grpc {
		return 1 << grpcTimeout
	}
	return 0
}

// forward writes what is left at now into the headers of write, and drops the others that
// came. The values are kept in text.
func (b *Budget) forward(h http.Header, write headers, now time.Time, left time.Duration, text *[numDialects]string) {
	if bad := headers(1 << grpcTimeout); b.came&^b.given&bad != 0 {
		if write == bad { // a proxy on the way has the deadline all the same
			write = 1 << envoyTimeout
		}
		write &^= bad
	}
	for i := range dialects {
		d := &dialects[i]
		switch bit := headers(1 << i); {
		case write&bit != 0:
			text[i] = d.format(left)
			h[d.header] = text[i : i+1 : i+1] // who appends to it gets a copy
		case b.came&bit != 0 && i != grpcTimeout:
			delete(h, d.header)
		}
	}
	if (write|b.came)>>numDialects == 0 {
		return
	}
	for i := range b.server.further() {
		f := &b.server.ready.further[i]
		switch bit := headers(1) << (numDialects + i); {
		case write&bit != 0:
			h[f.name] = []string{f.text(left, now)}
		case b.came&bit != 0:
			delete(h, f.name)
		}
	}
}

// ForwardDeadline writes the time that is left of the request of ctx into h,
// the header of a request to the next hop: see Budget.Forward, with the HopMargin of
// the Server that the request came through. In a reverse proxy it belongs into Rewrite:
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
	margin := HopMargin
	if b.server != nil {
		margin = or(b.server.HopMargin, HopMargin)
	}
	b.Forward(h, time.Now(), margin)
}
