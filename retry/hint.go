package retry

import (
	"net/http"
	"time"
)

// HTTPHint reads Retry-After of a response: delay-seconds, fractional ones too, and the
// three forms of an HTTP-date, of which it takes the distance from the Date of the response, or
// from now without one. What is absurd is capped, what is malformed is no hint.
func HTTPHint(h http.Header, now time.Time) Hint { panic("not built") }

// GRPCHint reads grpc-retry-pushback-ms: negative or malformed is never (gRFC A6).
func GRPCHint(value string) Hint { panic("not built") }
