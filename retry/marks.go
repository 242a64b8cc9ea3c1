package retry

import (
	"context"
	"errors"
	"time"
)

// A marked error is one about which fn said more than the table can know.
type marked struct {
	err         error
	notExecuted bool
	hint        Hint
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// Never marks err, of a function that Do calls, as one that another attempt repeats.
// nil stays nil.
func Never(err error) error { return mark(err, marked{hint: Hint{Never: true}}) }

// NotExecuted marks err, of a function that Do calls, as one after which nothing was
// done: another attempt is safe. nil stays nil.
func NotExecuted(err error) error { return mark(err, marked{notExecuted: true}) }

// After marks err, of a function that Do calls, as one for which another attempt makes
// no sense before a time: a hint, as Retry-After is. nil stays nil.
func After(err error, wait time.Duration) error {
	return mark(err, marked{hint: Hint{After: min(max(wait, 0), longest), Said: true, Capped: wait > longest}})
}

func mark(err error, m marked) error {
	if err == nil {
		return nil
	}
	if in := (*marked)(nil); errors.As(err, &in) { // two marks say both
		m.notExecuted = m.notExecuted || in.notExecuted
		if !m.hint.Said && !m.hint.Never {
			m.hint = in.hint
		}
	}
	m.err = err
	return &m
}

type idempotentKey struct{}

// Idempotent marks the calls made with ctx: executing one twice does no more than
// executing it once. Without the mark a call is tried again only if it was certainly
// not executed: nothing was sent, or the server says so.
//
//	err := p.Do(retry.Idempotent(ctx), read)
func Idempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotentKey{}, true)
}

// IsIdempotent reports whether ctx has the mark of Idempotent.
func IsIdempotent(ctx context.Context) bool { return ctx.Value(idempotentKey{}) != nil }
