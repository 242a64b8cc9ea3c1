//go:build unix

package load

import (
	"os"

	"golang.org/x/sys/unix"
)

// makeRoom lets the kernel make room for n file descriptors now. It would do so whenever twice
// as many are open, and then a process with several threads waits for all processors to have
// seen it (expand_fdtable in fs/file.c of Linux): 10 to 30 ms on a busy machine, for which one
// core sends nothing. A room that is not to be had is not missed either.
func makeRoom(n int) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		return
	}
	defer f.Close()
	last := int(min(uint64(limit.Cur), uint64(n))) - 1 // which may be signed, and is no more than n
	if fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, last); err == nil {
		unix.Close(fd)
	}
}
