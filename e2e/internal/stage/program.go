//go:build linux

// Package stage runs goodput demo --web and drives its page in Chromium, as a person at a keyboard
// does: for the test of the page, and for the pictures of the README, which thereby are of what the
// test has seen.
package stage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A Program is a running demo.
type Program struct {
	URL string // of the page
	cmd *exec.Cmd
	end chan error
}

// starting is how long the program has to say where its page is, and ending how long to end.
const (
	starting = 10 * time.Second
	ending   = 5 * time.Second
)

// Run starts the program that is at path.
func Run(path string) (*Program, error) {
	p := &Program{cmd: exec.Command(path, "demo", "--web", "--listen", "127.0.0.1:0"), end: make(chan error, 1)}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GOODPUT_") {
			p.cmd.Env = append(p.cmd.Env, kv)
		}
	}
	said, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	first := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(said)
		line, _ := lines.ReadString('\n') // "" if it has ended
		first <- line
		io.Copy(io.Discard, lines) //nolint:errcheck // until it ends
		p.end <- p.cmd.Wait()
	}()
	var line string
	select {
	case line = <-first:
	case <-time.After(starting):
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "open ")
	if !ok {
		p.cmd.Process.Kill() //nolint:errcheck // it may have ended
		return nil, fmt.Errorf("%s demo --web does not say where its page is, but %q", path, line)
	}
	p.URL = url
	return p, nil
}

// Stop ends the program as Ctrl-C does. An error means that it did not end well.
func (p *Program) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case err := <-p.end:
		return err
	case <-time.After(ending):
		p.cmd.Process.Kill() //nolint:errcheck // it may have ended
		return errors.New("demo --web does not end after SIGINT")
	}
}
