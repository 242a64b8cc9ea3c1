package attempts

import (
	"math/bits"
	"time"
)

// Bound returns the longest wait before the attempt that follows the n-th (1 is the
// first): base doubled n-1 times, at most most, never less than 1 ns. It never falls
// with n, however large n is (exponential backoff; the wait itself is drawn from 0 to
// it: full jitter, Brooker, "Exponential Backoff And Jitter", 2015).
func Bound(base, most time.Duration, n int) time.Duration {
	base, most = max(base, 1), max(most, 1)
	doubled := max(n, 1) - 1
	// base < 2^Len64(base), so a shift by less than 64-Len64(base) bits, the sign one of
	// them, keeps all of it.
	if doubled >= 64-bits.Len64(uint64(base)) {
		return most
	}
	return min(base<<doubled, most)
}

// Wait draws the wait before the attempt that follows the n-th, draw being uniform in
// [0, 1): evenly from 1 ns to Bound, the ends included, so that a wait is never nothing.
func Wait(base, most time.Duration, n int, draw float64) time.Duration {
	b := Bound(base, most, n)
	return min(1+time.Duration(draw*float64(b)), b)
}
