//go:build linux

package rig

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// builds are the programs built for this run.
var builds = struct {
	sync.Mutex
	dir  string
	done map[string]string
}{done: map[string]string{}}

// build returns the program that the environment names, else builds it, once
// for all tests.
func build(t testing.TB, env, dir string) string {
	t.Helper()
	if path := os.Getenv(env); path != "" {
		return path
	}
	builds.Lock()
	defer builds.Unlock()
	if path := builds.done[dir]; path != "" {
		return path
	}
	if builds.dir == "" {
		tmp, err := os.MkdirTemp("", "goodput-bin-")
		if err != nil {
			t.Fatal(err)
		}
		builds.dir = tmp
	}
	path := builds.dir + "/" + strings.ReplaceAll(strings.Trim(dir, "./"), "/", "-")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", dir, err, out)
	}
	builds.done[dir] = path
	return path
}

// Clean removes what was built. It is for the end of TestMain.
func Clean() {
	if builds.dir != "" {
		os.RemoveAll(builds.dir) //nolint:errcheck // a temporary directory
	}
}
