package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/goodput/goodput/conformance"
)

// In a test of the limiter:
//
//	func TestConformance(t *testing.T) {
//		conformance.TestLimiter(t, limiters, conformance.LimiterOptions{})
//	}
//
// Here the results of a semaphore that is a channel, as one often sees it.
func ExampleRunLimiter() {
	limiters := func(limit int) conformance.Limiter {
		slots := make(chan struct{}, limit)
		return conformance.Limiter{
			Acquire: func(ctx context.Context) (release func(), err error) {
				select {
				case slots <- struct{}{}:
					return func() { <-slots }, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
			Do: func(ctx context.Context, fn func(context.Context) error) error {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return ctx.Err()
				}
				err := fn(ctx)
				<-slots // and if fn panics?
				return err
			},
		}
	}
	skip := map[string]string{"deadline-waiting": "a race, which fails at times"}
	for _, r := range conformance.RunLimiter(limiters, conformance.LimiterOptions{Part: 20, Patience: time.Second, Skip: skip}) {
		if r.Verdict == conformance.Failed {
			fmt.Println(r.Check.Name)
		}
	}
	// Output:
	// panic
	// double-release
	// cancelled-before
}

// A handler as it is often written. In a test of it, TestHandler in the place of RunHandler.
func ExampleRunHandler() {
	handlers := func(limit int, next http.Handler) http.Handler {
		slots := make(chan struct{}, limit)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case slots <- struct{}{}:
				next.ServeHTTP(w, r)
				<-slots // and if it panics?
			default:
				w.Header().Set("Retry-After", "0") // everybody at once
				http.Error(w, "busy", http.StatusServiceUnavailable)
			}
		})
	}
	skip := map[string]string{"deadline-waiting": "a race, which fails at times"}
	for _, r := range conformance.RunHandler(handlers, conformance.HandlerOptions{NoQueue: handlers, Part: 20, Skip: skip}) {
		if r.Verdict == conformance.Failed {
			fmt.Println(r.Check.Name)
		}
	}
	// Output:
	// panic
	// retry-after
}

func ExampleLimiter() {
	errBusy := errors.New("busy")
	slots := make(chan struct{}, 60)
	try := func() (release func(), ok bool) {
		select {
		case slots <- struct{}{}:
			return func() { <-slots }, true
		default:
			return nil, false
		}
	}
	// One that never waits has a Try and no Acquire.
	l := conformance.Limiter{
		Try: try,
		Do: func(ctx context.Context, fn func(context.Context) error) error {
			release, ok := try()
			if !ok {
				return errBusy
			}
			defer release()
			return fn(ctx)
		},
		InUse: func() int { return len(slots) },
	}
	_ = l
	// Output:
}
