package retry

import "context"

// An attemptContext is the context of one attempt: it has its number, and the call that
// makes it.
type attemptContext struct {
	context.Context
	call   *Call // nil if it came over the network
	number int   // from 1
}

type attemptKey struct{}

// Value makes the attempt visible below.
func (a *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// inside reports whether a call of this process waits for what is done with the context.
func (a *attemptContext) inside() bool { return a.call != nil && !a.call.over.Load() }

func attemptOf(ctx context.Context) *attemptContext {
	a, _ := ctx.Value(attemptKey{}).(*attemptContext)
	return a
}

// mostNumber is the highest number of an attempt that is taken from others: three digits, as
// in the headers.
const mostNumber = 999

// WithAttempt returns a context for the work of a request that came as the n-th attempt
// of its client, n from 1 to 999 or what is nearest: what is called with it counts on from
// there, so that those further down know a retry when they see one. What is called inside an
// attempt of a call of this process stays so.
func WithAttempt(ctx context.Context, n int) context.Context {
	a := &attemptContext{Context: ctx, number: min(max(n, 1), mostNumber)}
	if outer := attemptOf(ctx); outer != nil {
		a.call = outer.call
	}
	return a
}

// AttemptFrom returns the number of the attempt that ctx belongs to, from 1: of Do, of
// Call.Context or of WithAttempt. 0 is none.
func AttemptFrom(ctx context.Context) int {
	if a := attemptOf(ctx); a != nil {
		return a.number
	}
	return 0
}
