package attempts

import "time"

// Bound returns the longest wait before the attempt that follows the n-th (1 is the
// first): base doubled n-1 times, at most most, never less than 1 ns. It never falls
// with n, however large n is (exponential backoff; the wait itself is drawn from 0 to
// it: full jitter, Brooker, "Exponential Backoff And Jitter", 2015).
func Bound(base, most time.Duration, n int) time.Duration {
	d, most := max(base, 1), max(most, 1)
	for ; n > 1 && d < most; n-- {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return min(d, most)
}
