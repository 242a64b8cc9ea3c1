package retry

// A Stop says why there is no further attempt.
type Stop uint8

// Stops. Retry is none.
const (
	Retry     Stop = iota
	Permanent      // the fault does not allow it
	Attempts       // there have been enough
	NoBudget       // too many calls are being retried already
	TooLate        // the deadline of the call has passed, or would have after the wait
	TooLong        // the server says to come back later than MaxAfter
	Pushback       // the server says not to come back
	NoRewind       // the body of the request cannot be sent again
	Gone           // the caller has left
	Nested         // a call outside makes the attempts: see Policy.Multiply
	Answered       // the attempt ended as an answer, whatever it says
	Stops          // how many there are
)

var stops = [Stops]string{
	"retry", "permanent", "attempts", "no_budget", "too_late", "too_long", "pushback",
	"no_rewind", "gone", "nested", "answered",
}

// String returns the word for metrics.
func (s Stop) String() string { return stops[s] }
