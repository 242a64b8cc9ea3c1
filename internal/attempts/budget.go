package attempts

import "time"

// A Budget bounds how many retries there are for each first attempt: a share of the
// requests of the last window, and a reserve, so that a client with little traffic can
// retry at all. It is not safe for concurrent use.
//
//	retries in the window <= Ratio x requests in the window + Reserve
type Budget struct {
	Ratio   float64       // retries per request: 0 to 1
	Reserve int           // retries per window that need no requests
	Window  time.Duration // how long a request counts; in buckets of a tenth of it

	buckets [buckets]bucket
	last    time.Duration // start of the latest bucket
}

const buckets = 10

type bucket struct{ requests, retries float64 }

// Request counts a first attempt at now.
func (b *Budget) Request(now time.Duration) { panic("not built") }

// Spend takes one retry at now and reports whether there was one.
func (b *Budget) Spend(now time.Duration) bool { panic("not built") }

// Left returns how many retries there are at now.
func (b *Budget) Left(now time.Duration) float64 { panic("not built") }
