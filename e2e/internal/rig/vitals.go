//go:build linux

package rig

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Vitals are what a process holds, as the kernel sees it.
type Vitals struct {
	Files   int
	Threads int
	RSS     int64 // bytes
	PeakRSS int64 // bytes, since the start
}

// Vitals reads /proc.
func (p *Process) Vitals(t testing.TB) Vitals {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(p.Pid())
	files, err := os.ReadDir(dir + "/fd")
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	v := Vitals{Files: len(files)}
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		var n int64
		if _, err := fmt.Sscan(string(value), &n); err != nil {
			continue // not a number
		}
		switch string(name) {
		case "Threads":
			v.Threads = int(n)
		case "VmRSS":
			v.RSS = n << 10 // the kernel says kB and means KiB
		case "VmHWM":
			v.PeakRSS = n << 10
		}
	}
	return v
}
