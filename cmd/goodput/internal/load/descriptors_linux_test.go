package load

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// After makeRoom the kernel has room for as many descriptors as were asked for, or allowed.
func TestMakeRoom(t *testing.T) {
	const n = 5000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	makeRoom(n)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	var size uint64
	_, after, _ := strings.Cut(string(status), "FDSize:")
	if _, err := fmt.Sscan(after, &size); err != nil || size < min(n, limit.Cur) {
		t.Errorf("room for %d, want %d; %v", size, min(n, limit.Cur), err)
	}
}
