//go:build unix

package simulated

import (
	"syscall"
	"time"
)

// processor returns the processor time of this process, user and system. Of it, the simulator
// makes all but what the garbage collector does beside it, which belongs to it as well.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
