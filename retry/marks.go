package retry

import (
	"context"
	"errors"
	"time"
)

// A marked error is one about which fn said more than the table can know.
type marked struct {
	err   error
	fault Fault
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// Mark returns err, of a function that Do calls, with what is known of the fault beside
// it: the status and the headers of a response, or the code of gRPC. nil stays nil.
//
//	return retry.HTTPFault(res.StatusCode, res.Header, time.Now()).Mark(errors.New(res.Status))
//	return retry.Fault{Code: retry.Code(status.Code(err))}.Mark(err)
//
// A mark around another one adds to it, and its hint goes first.
func (f Fault) Mark(err error) error {
	if err == nil {
		return nil
	}
	if in := (*marked)(nil); errors.As(err, &in) {
		f.executed = f.executed || in.fault.executed && !f.NotExecuted // the outer one knows better
		f.merge(in.fault)
	}
	f.Err = nil
	return &marked{err, f}
}

// Never marks err, of a function that Do calls, as one that every attempt would end with:
// there is no other. nil stays nil.
func Never(err error) error { return Fault{Hint: Hint{Never: true}}.Mark(err) }

// NotExecuted marks err, of a function that Do calls, as one after which nothing was
// done: another attempt is safe. nil stays nil.
func NotExecuted(err error) error { return Fault{NotExecuted: true}.Mark(err) }

// Executed marks err, of a function that Do calls, as one after which some of its work was
// done, whatever err says of itself: another attempt is safe only if the call is
// idempotent. It is for a function that does more than one thing: what the second one could
// not even dial, or was refused, says nothing of the first. nil stays nil.
//
//	if err := charge(ctx); err != nil {
//		return err
//	}
//	return retry.Executed(ship(ctx))
func Executed(err error) error { return Fault{executed: true}.Mark(err) }

// After marks err, of a function that Do calls, as one for which another attempt makes
// no sense before a time: a hint, as Retry-After is. nil stays nil.
func After(err error, wait time.Duration) error {
	return Fault{Hint: Hint{After: min(max(wait, 0), longest), Said: true, Capped: wait > longest}}.Mark(err)
}

type idempotentKey struct{}

// Idempotent marks the calls made with ctx: executing one twice does no more than
// executing it once. Without the mark a call is tried again only if it was certainly
// not executed: nothing was sent, or the server says so. That is taken of all that the
// function did: see Executed if it does more than one thing.
//
//	err := p.Do(retry.Idempotent(ctx), read)
func Idempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

// IsIdempotent reports whether ctx has the mark of Idempotent.
func IsIdempotent(ctx context.Context) bool { return ctx.Value(idempotentKey{}) != nil }
