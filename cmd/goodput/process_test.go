package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/admin"
)

// patience bounds what a test waits for something that must happen.
const patience = 20 * time.Second

// binary is the program, built once: what these tests are about (exit codes,
// signals, flags, the environment) only a process has.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "goodput")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "goodput")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// execute runs the program to its end.
func execute(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() }) // it is a test that failed
	defer timer.Stop()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// A process is a running command, most often serve.
type process struct {
	*testing.T
	cmd    *exec.Cmd
	url    string // of the data path
	admin  string // URL, "" if off
	exited chan struct{}

	mu  sync.Mutex
	log []map[string]any
}

// serve starts the program before upstream, on free ports, and returns when it
// serves.
func serve(t *testing.T, upstream string, args ...string) *process {
	t.Helper()
	p := launch(t, `"msg":"serving"`, append([]string{
		"serve", "--upstream", upstream,
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json",
	}, args...)...)
	line := p.said("serving")[0]
	p.url = "http://" + line["addr"].(string)
	if a := line["admin"].(string); a != "off" {
		p.admin = "http://" + a
	}
	return p
}

// launch starts the program and returns when a line on stderr has the word.
func launch(t *testing.T, word string, args ...string) *process {
	t.Helper()
	p := &process{T: t, cmd: exec.Command(binary, args...), exited: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	go p.readLog(stderr, word, began)
	t.Cleanup(func() {
		p.cmd.Process.Kill() // it may have ended
		<-p.exited
	})
	select {
	case <-began:
	case <-p.exited:
		t.Fatalf("%q ended at once: %v: %v", args, p.cmd.ProcessState, p.log)
	case <-time.After(patience):
		t.Fatalf("%q does not say %s", args, word)
	}
	return p
}

func (p *process) readLog(r io.Reader, word string, began chan struct{}) {
	tell := sync.OnceFunc(func() { close(began) })
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var entry map[string]any
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			entry = map[string]any{"msg": lines.Text()} // a sentence, or not in JSON
		}
		p.mu.Lock()
		p.log = append(p.log, entry)
		p.mu.Unlock()
		if strings.Contains(lines.Text(), word) {
			tell()
		}
	}
	p.cmd.Wait() // the state has it
	close(p.exited)
}

// said returns the log entries with the message msg.
func (p *process) said(msg string) (found []map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.log {
		if e["msg"] == msg {
			found = append(found, e)
		}
	}
	return found
}

func (p *process) signal(s syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}

// exit waits for the end and returns the exit code.
func (p *process) exit() int {
	p.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.Fatal("the process does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) get(url string) (int, string) {
	p.Helper()
	res, err := http.Get(url)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// state reads /api/v1/state and checks that every arrival is accounted for.
func (p *process) state() admin.LimiterState {
	p.Helper()
	_, body := p.get(p.admin + "/api/v1/state")
	var s admin.State
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		p.Fatal(err)
	}
	l := s.Limiters[0]
	n := uint64(l.Waiting + l.Running)
	for _, e := range l.Counts.Ends {
		n += e.Count
	}
	if n != l.Counts.Arrivals {
		p.Errorf("%d arrivals, %d ended, waiting or running", l.Counts.Arrivals, n)
	}
	return l
}

// until polls the state until ok holds.
func (p *process) until(what string, ok func(admin.LimiterState) bool) admin.LimiterState {
	p.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		l := p.state()
		if ok(l) {
			return l
		}
		if time.Now().After(end) {
			p.Fatalf("never came true: %s: %+v", what, l)
		}
	}
}

// count returns the count of one way to end.
func count(l admin.LimiterState, outcome, reason string) uint64 {
	for _, e := range l.Counts.Ends {
		if e.Outcome == outcome && e.Reason == reason {
			return e.Count
		}
	}
	return 0
}

// backend serves handler in both protocols until the test ends.
func backend(t *testing.T, handler http.HandlerFunc) (url string, srv *http.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv = &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	go srv.Serve(l) // ends with Close
	t.Cleanup(func() { srv.Close() })
	return "http://" + l.Addr().String(), srv
}

func hello(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // whatever came
	fmt.Fprintf(w, "hello in %s\n", strings.TrimSpace(r.Proto))
}
