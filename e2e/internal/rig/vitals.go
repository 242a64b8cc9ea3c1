//go:build linux

package rig

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
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

// sockets lists the TCP connections of the process for a message about a leak:
// who is at the other end, and in which state.
func (p *Process) sockets() string {
	out, err := exec.Command("ss", "-Htanp").Output()
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "pid="+strconv.Itoa(p.Pid())+",") {
			b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
		}
	}
	return b.String()
}
