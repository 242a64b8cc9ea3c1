// Package retry says whether, when and how often a failed call is made again, so that a
// client helps the service that it depends on instead of finishing it off.
//
//	p := &retry.Policy{} // three attempts, full jitter from 50 ms, one retry per ten calls
//
//	err := p.Do(ctx, func(ctx context.Context, attempt int) error {
//		return charge(ctx, order)
//	})
//
// A call is made again only after an attempt that was certainly not executed: nothing
// was sent, or the server says so. A call that may be executed twice is marked,
// p.Do(retry.Idempotent(ctx), read), and is made again after most failures that may
// pass. Do knows of the function only its error, so the function is one call, or marks with
// Executed what fails after it has done something. The table of what each status, gRPC code
// and error allows is in table.go, with its reasons; Policy.Classify replaces it.
//
// # How much is added
//
// A call makes at most Attempts attempts: 3. All calls of a Budget together make at
// most 1.1 attempts each, once there are twelve per second: a Budget grants
// max(0.1 x calls, 10) retries in ten seconds. When everything fails, the service
// that is down gets a tenth more than its usual traffic, and not three times as much.
//
// Layers multiply: three of them with four attempts each are 4 x 4 x 4 = 64 for one
// request. So a call that is made with the context of an attempt of another call makes
// one attempt, and the outermost call repeats: 4. Policy.Multiply changes that. Between
// processes there is no such context, and the budgets hold: 1.1 x 1.1 x 1.1 = 1.33.
//
// # When
//
// The wait before the n-th retry is drawn evenly from 0 to Backoff x 2^(n-1), and is
// never less than what the server said (Retry-After, grpc-retry-pushback-ms). No wait
// begins that would end after the deadline of the call, which all its attempts share:
// the call ends at once, and its Error has what the server said.
//
// # Beside it
//
// A Throttle keeps calls at home while the server refuses most of them. Work that must
// be done although it was refused for longer than a call lasts belongs in a table of
// its own, and not in a longer loop.
package retry
