//go:build linux

// Package rig starts the real programs that the tests need and ends them again:
// PostgreSQL, nginx, the service and goodput. Everything listens on loopback or
// a unix socket, keeps its data in a temporary directory, and dies with the
// test process, however that ends.
package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// logKept is how much of what a process says is kept: its first line, which
// names its address, and what it said last before a failure.
const logKept = 256 << 10

// A Process runs in a process group of its own.
type Process struct {
	Name string
	cmd  *exec.Cmd
	log  tail
	done chan struct{} // closed when it has ended; then cmd.ProcessState is valid
}

// spawner starts every process. The kernel ends a child when the *thread* that
// started it ends, so there is one thread for it, which never does.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// start runs cmd. If this process ends without ending it, the kernel sends it
// dies: what has children of its own must be able to end them.
func start(name string, cmd *exec.Cmd, dies syscall.Signal) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, done: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = dies
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.WaitDelay = 2 * time.Second // a grandchild may hold the output open
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		cmd.Wait() //nolint:errcheck // ProcessState says it
		close(p.done)
	}()
	return p, nil
}

// run is start for the length of a test. A failed test shows what it said last.
func run(t testing.TB, name string, cmd *exec.Cmd, dies syscall.Signal) *Process {
	t.Helper()
	p, err := start(name, cmd, dies)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the last that %s said:\n%s", name, p.log.last(4<<10))
		}
	})
	return p
}

// environment is ours without what would configure goodput behind our back.
func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GOODPUT_") && !strings.HasPrefix(kv, "PG") {
			env = append(env, kv)
		}
	}
	return env
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends sig to the process, not to its group.
func (p *Process) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.Pid(), sig); err != nil {
		t.Fatalf("%s: %v: %v", p.Name, sig, err)
	}
}

// Kill ends the process and its group at once, and waits for that.
func (p *Process) Kill() {
	if p.Running() { // else its id may be somebody else's by now
		syscall.Kill(-p.Pid(), syscall.SIGKILL) //nolint:errcheck // it may end by itself meanwhile
		<-p.done
	}
}

// terminate asks the process to end, and kills it if it does not.
func (p *Process) terminate(within time.Duration) {
	if p.Running() {
		syscall.Kill(p.Pid(), syscall.SIGTERM) //nolint:errcheck // it may end by itself meanwhile
	}
	select {
	case <-p.done:
	case <-time.After(within):
		p.Kill()
	}
}

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Exit waits for the end of the process and returns its exit code, -1 for a
// signal. Not ending within the time fails the test.
func (p *Process) Exit(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("%s still runs after %v", p.Name, within)
		return -1
	}
}

// Log returns what the process said, or the last part of it.
func (p *Process) Log() string { return p.log.last(logKept) }

// line waits for a line that match accepts.
func (p *Process) line(within time.Duration, match func(string) bool) error {
	deadline := time.Now().Add(within)
	for {
		ended := !p.Running() // read before the log: its last words count
		for l := range strings.Lines(p.Log()) {
			if match(strings.TrimSpace(l)) {
				return nil
			}
		}
		switch {
		case ended:
			return fmt.Errorf("%s ended: %v\n%s", p.Name, p.cmd.ProcessState, p.log.last(4<<10))
		case time.Now().After(deadline):
			return fmt.Errorf("%s is not up after %v\n%s", p.Name, within, p.log.last(4<<10))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A tail is a writer that keeps the last logKept bytes.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, b...)
	if over := len(l.buf) - logKept; over > logKept { // seldom, not at each write
		l.buf = append([]byte(nil), l.buf[over:]...)
	}
	return len(b), nil
}

func (l *tail) last(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.Clone(l.buf[max(0, len(l.buf)-n):]))
}

// Find returns the path of a program. Debian keeps some off a user's PATH.
func Find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err == nil && len(found) > 0 {
		return found[len(found)-1], nil
	}
	if path := "/usr/sbin/" + name; exec.Command("test", "-x", path).Run() == nil {
		return path, nil
	}
	return "", errors.New(name + " is not installed; ./run.sh does that")
}

// Need returns the path of a program. Without it the test is skipped, and fails
// if CI is set, where a skipped test would be one that never runs.
func Need(t testing.TB, name string) string {
	t.Helper()
	path, err := Find(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
	return ""
}
