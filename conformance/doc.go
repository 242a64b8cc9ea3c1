// Package conformance tells whoever writes or uses a limiter of concurrency what it does
// wrong. It is to limiters what testing/fstest is to file systems: a limiter is handed over
// by a few functions, and each check is a subtest that has a name, says what it proves and
// names the issues in which others have met that failure.
//
//	func TestConformance(t *testing.T) {
//		conformance.TestLimiter(t, func(limit int) conformance.Limiter {
//			sem := semaphore.NewWeighted(int64(limit))
//			return conformance.Limiter{
//				Acquire: func(ctx context.Context) (func(), error) {
//					if err := sem.Acquire(ctx, 1); err != nil {
//						return nil, err
//					}
//					return func() { sem.Release(1) }, nil
//				},
//			}
//		}, conformance.LimiterOptions{})
//	}
//
// TestLimiter is for what takes and gives back slots, TestHandler for what stands in front of
// an http.Handler. RunLimiter and RunHandler return the results instead, for a table.
//
// # What a verdict is worth
//
// A limiter that is right passes however slow it is and however busy the machine: a check
// waits for what must happen as long as somebody gets on, and gives up when nobody has for
// Patience; only what must not happen is looked for during a moment. So a failure is one, and
// a pass is as good as the moment was long and as what is random was lucky; in a bubble
// (LimiterOptions.Bubble) nothing is left to luck but the storms of limit, cancel-race,
// cancelled-front and lost-wakeup, which are worth running under the race detector. A check
// that has taken 10 s, as of a slow limiter, makes fewer rounds, and its result says how many.
//
// A check that meets a deadlock fails with the goroutines that hang. One in which a function
// or a handler that was handed over panics, or ends its goroutine as t.FailNow does, fails
// with the value and the line, on whichever goroutine of the checks that was; it ends neither
// the test nor the other checks. Nobody can do so for a goroutine that the limiter has started
// itself: a panic there ends the process, as anywhere.
//
// What is optional in a limiter is optional here: a check of a form that it has not is
// skipped, with the reason. Nothing is asked for that is a matter of taste: neither an order
// of the queue, nor that anybody waits at all.
//
// The checks of one call run one after the other and each has limiters of its own. Those
// that count goroutines and bytes (many-cancelled) do not go well with parallel tests.
package conformance
