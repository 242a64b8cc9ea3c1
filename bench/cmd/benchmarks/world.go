package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/bench/figures"
)

// A world is what parts measure in.
type world struct {
	setup   *setup
	dir     string // of what is built, and of results on their way
	machine figures.Machine
	commit  string   // of the tree
	busy    *float64 // the load average when the part began
	program string   // goodput, once it is built
}

func (w *world) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

func (w *world) head(part string, begun time.Time, command string) figures.Head {
	return figures.Head{
		Part: part, Command: command, Commit: w.commit, Day: begun.UTC().Format(time.DateOnly), Busy: w.busy,
		Seconds: time.Since(begun).Round(time.Second).Seconds(), Quick: w.setup.quick, Machine: w.machine,
	}
}

// readCommit notes the version of the tree that this is run in, with a + if a file that is not
// written by this command is not as it was committed.
func (w *world) readCommit(ctx context.Context) {
	w.commit = "unknown"
	head, err := w.output(ctx, "", "git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return
	}
	changed, err := w.output(ctx, "..", "git", "status", "--porcelain", "--", ".", ":!docs", ":!bench/"+published)
	if err != nil {
		return
	}
	if w.commit = strings.TrimSpace(string(head)); len(changed) > 0 {
		w.commit += "+"
	}
}

// busy returns the load average of the last minute, nil where the system does not tell.
func busy() *float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil
	}
	return average(string(text))
}

// average reads /proc/loadavg.
func average(text string) *float64 {
	first, _, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil
	}
	return &v
}

// machine is what this runs on.
func machine() figures.Machine {
	m := figures.Machine{
		CPU: "unknown processor", Cores: runtime.NumCPU(), Kernel: runtime.GOOS,
		Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = model(string(info))
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-") // what follows is whose kernel it is
		m.Kernel = "Linux " + release
	}
	return m
}

// model returns the name of the processor in /proc/cpuinfo.
func model(info string) string {
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// output runs a program in a folder, "" being this one, and returns what it writes to stdout.
// What it writes to stderr is shown as it comes; its last line is part of the error. An
// interrupt is passed on, so that a program can end what it started.
func (w *world) output(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(os.Stderr, &said)
	if err := cmd.Run(); err != nil {
		if last := lastLine(out.String() + said.String()); last != "" {
			return out.Bytes(), fmt.Errorf("%s: %w: %s", filepath.Base(program), err, last)
		}
		return out.Bytes(), fmt.Errorf("%s: %w", filepath.Base(program), err)
	}
	return out.Bytes(), nil
}

// lastLine returns the last line that says something: go test ends with one that does not.
func lastLine(s string) string {
	last := ""
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && line != "FAIL" && !strings.HasPrefix(line, "--- FAIL") {
			last = line
		}
	}
	return last[:min(len(last), 300)]
}

// build builds a command of this module.
func (w *world) build(ctx context.Context, what string) (string, error) {
	bin := filepath.Join(w.dir, filepath.Base(what))
	_, err := w.output(ctx, "", "go", "build", "-o", bin, what)
	return bin, err
}

// goodput builds the program.
func (w *world) goodput(ctx context.Context) (string, error) {
	if w.program != "" {
		return w.program, nil
	}
	bin := filepath.Join(w.dir, "goodput")
	if _, err := w.output(ctx, program, "go", "build", "-o", bin, "."); err != nil {
		return "", err
	}
	w.program = bin
	return bin, nil
}

// versions are those of the rivals' modules.
func (w *world) versions(ctx context.Context) (map[string]string, error) {
	out, err := w.output(ctx, "", "go", append([]string{"list", "-m", "-f", "{{.Path}} {{.Version}}"}, modules...)...)
	if err != nil {
		return nil, err
	}
	v := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			v[module] = version
		}
	}
	return v, nil
}
