package listen

import (
	"bufio"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// setBacklog calls listen(2) again, which changes the length of the accept queue of a
// socket that listens already: package net has no other way. The kernel cuts n to
// net.core.somaxconn.
func setBacklog(l net.Listener, n int) error {
	raw, err := l.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), n) }); err != nil {
		return err
	}
	return failed
}

// Overflows returns what the kernel has counted since it started, in this network
// namespace, over all listening sockets of all processes in it: connections that found a full accept
// queue, and all that were dropped before they were accepted, those included. ok is false
// where the kernel does not say, as anywhere but on Linux.
func Overflows() (overflows, drops uint64, ok bool) {
	f, err := os.Open("/proc/self/net/netstat")
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	return readOverflows(f)
}

// readOverflows finds two columns in pairs of lines, names and numbers:
//
//	TcpExt: SyncookiesSent ... ListenOverflows ListenDrops ...
//	TcpExt: 0 ... 17 23 ...
func readOverflows(r io.Reader) (overflows, drops uint64, ok bool) {
	lines := bufio.NewScanner(r)
	var names []string
	found := 0
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || f[0] != "TcpExt:" {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for i := range min(len(names), len(f)) {
			into := map[string]*uint64{"ListenOverflows": &overflows, "ListenDrops": &drops}[names[i]]
			if into == nil {
				continue
			}
			n, err := strconv.ParseUint(f[i], 10, 64)
			if err != nil {
				return 0, 0, false
			}
			*into = n
			found++
		}
	}
	if found != 2 {
		return 0, 0, false
	}
	return overflows, drops, true
}
