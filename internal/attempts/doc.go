// Package attempts decides whether and when a client makes another attempt: how long
// it backs off, what its budget of retries has left, and which calls it does not send
// at all because the server refuses most of them.
//
// It is pure: time and chance are arguments. Package retry brings the clock, the
// waiting and the lock; the simulator brings virtual time. Both run this code.
package attempts
