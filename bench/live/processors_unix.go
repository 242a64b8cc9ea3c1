//go:build unix

package live

import (
	"syscall"
	"time"
)

// processors returns the processor time that this process has used, its children not
// included.
func processors() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
