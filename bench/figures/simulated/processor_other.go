//go:build !unix

package simulated

import "time"

var started = time.Now()

// processor is the time on the wall where the system does not tell that of the process.
func processor() time.Duration { return time.Since(started) }
