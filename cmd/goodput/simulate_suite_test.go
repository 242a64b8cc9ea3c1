package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Below capacity our law loses nothing, and the exit code is 0.
func TestSuite(t *testing.T) {
	code, stdout, stderr := simulate("--suite", "adaptive", "--quick", "--only", "load-0.5x", "--law", "auto", "--repeat", "1")
	if code != exitOK || stderr != "" {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	for _, want := range []string{"Suite adaptive, quick", "(seed 101)", "\nload-0.5x ", "met     ", "auto meets all of it."} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

// A law of others that reaches the same is nothing to be ahead of: with health probes AIMD
// keeps what there is as well. The answer is no then, the report is there, and a file
// has it as JSON.
func TestSuiteMissed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "suite.json")
	args := []string{"--suite", "adaptive", "--quick", "--only", "probes", "--law", "aimd", "--seed", "7", "--repeat", "2", "--door", "reject"}
	code, stdout, stderr := simulate(append(args, "--output", file)...)
	if code != exitNo || stdout != "" || stderr != "goodput: suite adaptive: auto misses 1 of 4 criteria\n" {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Command string
		Rows    []struct {
			Law   string
			Seeds []int
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.Command != "goodput simulate --suite adaptive --quick --law aimd --only probes --door reject --seed 7 --repeat 2" {
		t.Errorf("the command is %q", d.Command)
	}
	if len(d.Rows) != 3 || d.Rows[2].Law != "aimd" || len(d.Rows[2].Seeds) != 2 || d.Rows[2].Seeds[0] != 7 {
		t.Errorf("rows %+v, want fixed, auto and aimd with the seeds 7 and 8", d.Rows)
	}
	if _, again, _ := simulate(append(args, "--format", "json")...); again != string(text) {
		t.Error("the same command says something else on stdout")
	}
}

// The list has every scenario with its reason, and a quick suite has fewer.
func TestSuiteList(t *testing.T) {
	code, stdout, stderr := simulate("--suite", "adaptive", "--list")
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "\nslower-more     a dependency takes twice as long") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	for line := range strings.Lines(stdout) {
		if len(line)-1 > 80 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	if _, quick, _ := simulate("--suite", "adaptive", "--list", "--quick"); len(quick) >= len(stdout) || !strings.Contains(quick, "\nslower-more ") {
		t.Errorf("the quick suite has\n%s", quick)
	}
}

func TestSuiteUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--suite", "adaptiv"}, `suite "adaptiv" is unknown: adaptive`},
		{[]string{"--suite", "adaptive", "--builtin", "burst"}, "--suite has its own scenarios and laws"},
		{[]string{"--suite", "adaptive", "--policies", "fifo"}, "--suite has its own scenarios and laws"},
		{[]string{"--suite", "adaptive", "--format", "html"}, "a suite is text or json, not html"},
		{[]string{"--suite", "adaptive", "--repeat", "0"}, "--repeat 0 is out of range: 1 to 100"},
		{[]string{"--suite", "adaptive", "--law", "netflix"}, `law "netflix" is unknown: one of [fixed auto`},
		{[]string{"--suite", "adaptive", "--only", "x"}, `scenario "x" is unknown: one of [load-0.5x`},
		{[]string{"--builtin", "burst", "--quick"}, "--quick, --law, --only and --door are about a suite: --suite adaptive"},
		{[]string{"--builtin", "burst", "--law", "auto"}, "--quick, --law, --only and --door are about a suite"},
		{[]string{"--builtin", "burst", "--door", "reject"}, "--quick, --law, --only and --door are about a suite"},
	} {
		code, stdout, stderr := simulate(c.args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %q, %q; want %q", c.args, code, stdout, stderr, c.want)
		}
	}
}
