// Package retry says whether, when and how often a failed call is made again, so that a
// client helps the service that it depends on instead of finishing it off.
//
//	p := &retry.Policy{} // three attempts, full jitter from 50 ms, one retry per ten calls
//
//	err := p.Do(ctx, func(ctx context.Context, attempt int) error {
//		return charge(ctx, order)
//	})
package retry
