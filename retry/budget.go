package retry

import "time"

// A Budget bounds the retries of all calls that share it to a part of their number, so
// that an outage is not made worse by its victims. The zero value is ready to use: one
// retry per ten calls of the last ten seconds, and ten in reserve. It is safe for
// concurrent use.
type Budget struct {
	Ratio   float64       // retries per call: 0.001 to 1, default 0.1
	Reserve int           // retries per window that need no calls: 1 to 1000, default 10
	Window  time.Duration // how long a call counts: 1 s to 10 min, default 10 s
}

// Left returns how many retries there are now.
func (b *Budget) Left() float64 { panic("not built") }
