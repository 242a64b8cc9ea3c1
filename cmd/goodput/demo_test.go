package main

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/goodput/goodput/cmd/goodput/internal/demo"
)

// What a script reads. Whether the run is void is this machine's business, but
// the exit code and the report must agree on it.
func TestDemoJSON(t *testing.T) {
	for _, c := range []struct {
		load string
		runs []string
	}{
		{"0.5", []string{"unprotected", "goodput"}},
		{"4.1", []string{"goodput"}}, // more would wait than says anything new
	} {
		code, stdout, stderr := execute(t, nil, "demo", "--load", c.load, "--duration", "1s", "--seed", "77", "--limit", "50", "--format", "json")
		var got struct {
			Version, Seed, Limit int
			Skipped, Void        string
			Runs                 []map[string]any
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
		}
		if got.Version != 1 || got.Seed != 77 || got.Limit != 50 {
			t.Errorf("version %d, seed %d, limit %d", got.Version, got.Seed, got.Limit)
		}
		if want := map[bool]int{true: exitOK, false: exitVoid}[got.Void == ""]; code != want {
			t.Errorf("exit code %d, and void is %q", code, got.Void)
		}
		skipped := len(c.runs) == 1
		if strings.Contains(got.Skipped, "skipped above 4x") != skipped || strings.Contains(stderr, "skipped above 4x") != skipped {
			t.Errorf("load %s: skipped %q, stderr\n%s", c.load, got.Skipped, stderr)
		}
		var names []string
		for _, run := range got.Runs {
			names = append(names, run["name"].(string))
			for _, field := range []string{
				"offered_per_second", "capacity_per_second", "in_time_per_second", "goodput_ratio", "p50_seconds", "p99_seconds",
			} {
				if v, _ := run[field].(float64); v <= 0 {
					t.Errorf("load %s, %s: %s is %v", c.load, run["name"], field, run[field])
				}
			}
			if _, ok := run["rejected"].(map[string]any); !ok {
				t.Errorf("%s: rejected is %v", run["name"], run["rejected"])
			}
		}
		if !slices.Equal(names, c.runs) {
			t.Errorf("load %s: runs %q, want %q", c.load, names, c.runs)
		}
	}
}

// SIGINT ends a run, here after its first line of progress, as a shell expects it.
func TestDemoIsInterrupted(t *testing.T) {
	p := launch(t, "in time", "demo", "--load", "0.1", "--duration", "5m")
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if len(p.said("goodput: interrupted: no result")) != 1 {
		t.Errorf("%v", p.log)
	}
}

// A report without an answer is shown, and the exit code says that it is none.
func TestVoidDemoHasItsExitCode(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		err := (&demoCmd{Format: format}).tell(new(demo.Report), &out) // no run: it was cut
		var f *failure
		if !errors.As(err, &f) || f.code != exitVoid || !strings.Contains(err.Error(), "no answer") || !strings.Contains(out.String(), "void") {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
		if err := (&demoCmd{Format: format}).tell(new(demo.Report), full{}); err == nil || errors.As(err, &f) && f.code == exitVoid {
			t.Errorf("%s: a report that cannot be written ends with %v", format, err)
		}
	}
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
