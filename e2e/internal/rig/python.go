//go:build linux

package rig

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// python is Debian's own, which has the modules that Debian installs. Another one may
// be the first on the PATH.
const python = "/usr/bin/python3"

// A Script is a running server in Python.
type Script struct {
	*Process
	Addr string
}

// URL returns where the server is.
func (s *Script) URL() string { return "http://" + s.Addr }

// listening is what servers in Python say once they listen, http.server among them.
var listening = regexp.MustCompile(`(?:listening|Serving HTTP) on (\S+) port (\d+)`)

// Python starts a server. Its module, if it is not Python's own, is installed by ./run.sh.
func Python(t testing.TB, module, dir string, args ...string) *Script {
	t.Helper()
	_, err := os.Stat(python)
	if err == nil && module != "" {
		_, err = os.Stat("/usr/lib/python3/dist-packages/" + module)
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(errors.New("python3 or its module " + module + " is not installed; ./run.sh does that"))
	}
	cmd := exec.Command(python, append([]string{"-u"}, args...)...)
	cmd.Dir = dir
	s := &Script{Process: run(t, "python", cmd, syscall.SIGKILL)}
	err = s.line(10*time.Second, func(l string) bool {
		found := listening.FindStringSubmatch(l)
		if found == nil {
			return false
		}
		s.Addr = found[1] + ":" + found[2]
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
