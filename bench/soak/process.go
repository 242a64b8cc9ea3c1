package soak

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/goodput/goodput/bench/programs"
)

// startTime is how long a program may take until it listens.
const startTime = 10 * time.Second

// A process is a program that was started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	err   error         // of its end; read after ended
}

// start runs a program and returns when it listens on addr.
func start(cmd *exec.Cmd, addr string) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of ours is not theirs: stop ends them
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	for end := time.Now().Add(startTime); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return p, c.Close()
		}
		if !p.alive() {
			return nil, fmt.Errorf("%s ended before it listened: %v", cmd.Path, p.err)
		}
	}
	p.kill()
	return nil, fmt.Errorf("%s does not listen on %s after %v", cmd.Path, addr, startTime)
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends it without asking.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// signal sends it s.
func (p *process) signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// resident returns the bytes of memory that it holds, and files how many it has open.
func (p *process) resident() (int64, error) { return programs.Resident(p.cmd.Process.Pid) }

func (p *process) files() (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(entries), err
}

// lines counts the lines that are written to it, and hands each on.
type lines struct {
	begun []byte // a line that has no end yet
	each  func(line []byte)
}

func (l *lines) Write(b []byte) (int, error) {
	l.begun = append(l.begun, b...)
	for {
		i := bytes.IndexByte(l.begun, '\n')
		if i < 0 {
			return len(b), nil
		}
		l.each(l.begun[:i])
		l.begun = append(l.begun[:0], l.begun[i+1:]...)
	}
}
