// Package programs has what whoever starts programs on this machine needs of it: addresses for them,
// and what the system says of their memory. Package proxies and package soak do.
package programs

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Free returns n addresses on loopback where nobody listens. Somebody else may take one
// before it is used: then its program says so.
func Free(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at once, so that they differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

// Resident returns the bytes of memory that a process holds: the second field of
// /proc/PID/statm, in pages (proc(5)).
func Resident(pid int) (int64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm says %q", pid, statm)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
