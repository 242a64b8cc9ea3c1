package proxies

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goodput/goodput/bench/programs"
)

// startTime is how long a program may take until it listens.
const startTime = 10 * time.Second

// tick is what /proc counts processor time in: USER_HZ, which is 100 on every Linux that
// Go runs on.
const tick = 10 * time.Millisecond

// A process is a program that was started, with its children.
type process struct {
	cmd   *exec.Cmd
	said  bytes.Buffer // what it wrote, for when it fails
	ended chan struct{}
}

// start runs a program, and returns when it listens on all of addrs.
func start(cmd *exec.Cmd, addrs ...string) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.said, &p.said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of ours is not theirs: stop ends them
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // it is killed: what it says of that is no news
		close(p.ended)
	}()
	for _, addr := range addrs {
		if err := p.listens(addr); err != nil {
			p.stop()
			return nil, err
		}
	}
	return p, nil
}

// listens waits until somebody listens on addr.
func (p *process) listens(addr string) error {
	for deadline := time.Now().Add(startTime); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended before it listened: %s", filepath.Base(p.cmd.Path), bytes.TrimSpace(p.said.Bytes()))
		default:
		}
	}
	return fmt.Errorf("%s does not listen on %s after %v", filepath.Base(p.cmd.Path), addr, startTime)
}

// stop ends the program and its children. Nothing that they hold is worth an orderly end.
func (p *process) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended by itself
	<-p.ended
}

// family returns the ids of the program and of its children: nginx works in those.
func (p *process) family() []int {
	pid := p.cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	ids := []int{pid}
	if err != nil {
		return ids
	}
	for _, f := range strings.Fields(string(children)) {
		if id, err := strconv.Atoi(f); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// cpu returns the processor time that the program and its children have used.
func (p *process) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, id := range p.family() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			return 0, err
		}
		t, err := statTime(string(stat))
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

// statTime returns utime + stime of a line of /proc/PID/stat, with those of children that
// were waited for: fields 14 to 17 of proc(5), the second of which is a name in
// parentheses that may hold anything.
func statTime(line string) (time.Duration, error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 15 {
		return 0, fmt.Errorf("a line of /proc/PID/stat has %d fields behind the name: %q", len(fields), line)
	}
	sum := 0
	for _, f := range fields[11:15] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, fmt.Errorf("a line of /proc/PID/stat has %q where a time is: %q", f, line)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}

// resident returns the bytes of memory that the program and its children hold.
func (p *process) resident() (int64, error) {
	sum := int64(0)
	for _, id := range p.family() {
		n, err := programs.Resident(id)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
