package retry

import "fmt"

// A Stop says why there is no further attempt.
type Stop uint8

// Stops. NoStop is none.
const (
	NoStop           Stop = iota
	StopPermanent         // the fault does not allow it
	StopExhausted         // there have been as many attempts as Policy.Attempts allows
	StopRetriesSpent      // too many calls are being retried already: see Budget
	StopTooLate           // the deadline of the call has passed, or would have after the wait
	StopTooLong           // the server says to come back later than MaxAfter
	StopPushback          // the server says not to come back
	StopNoRewind          // the body of the request cannot be sent again
	StopGone              // the caller has left
	StopNested            // a call outside makes the attempts: see Policy.Multiply
	StopAnswered          // the attempt ended as an answer, whatever it says
	StopKept              // the attempt was kept here and not sent: see Call.Kept
	Stops                 // how many there are
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
