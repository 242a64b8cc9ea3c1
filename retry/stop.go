package retry

import "fmt"

// A Stop says why there is no further attempt.
type Stop uint8

// Stops. Retry is none.
const (
	Retry        Stop = iota
	Permanent         // the fault does not allow it
	Exhausted         // there have been as many attempts as Policy.Attempts allows
	RetriesSpent      // too many calls are being retried already: see Budget
	TooLate           // the deadline of the call has passed, or would have after the wait
	TooLong           // the server says to come back later than MaxAfter
	Pushback          // the server says not to come back
	NoRewind          // the body of the request cannot be sent again
	Gone              // the caller has left
	Nested            // a call outside makes the attempts: see Policy.Multiply
	Answered          // the attempt ended as an answer, whatever it says
	Kept              // the attempt was kept here and not sent: see Call.Kept
	Stops             // how many there are
)

var stops = [Stops]string{
	"retry", "permanent", "exhausted", "retries_spent", "too_late", "too_long", "pushback",
	"no_rewind", "gone", "nested", "answered", "kept",
}

// String returns the word for metrics.
func (s Stop) String() string {
	if s < Stops {
		return stops[s]
	}
	return fmt.Sprintf("stop(%d)", s)
}
