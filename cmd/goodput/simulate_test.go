package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goodput/goodput/cmd/goodput/internal/builtin"
	"github.com/goodput/goodput/cmd/goodput/internal/scenario"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// simulate runs the command in this process.
func simulate(args ...string) (code int, stdout, stderr string) {
	return command(append([]string{"simulate"}, args...)...)
}

// The arithmetic, as everybody can repeat it: each built-in scenario
// meets its criteria, which are about the right values, and says in words what the
// rule of thumb is and why it fails.
func TestBuiltinsHold(t *testing.T) {
	for i, name := range builtin.Names() {
		if testing.Short() && i > 0 {
			break
		}
		t.Run(name, func(t *testing.T) {
			f := loadBuiltin(t, name)
			if f.About == "" || f.Rule == "" || f.Why == "" || len(f.Expect) < 2 {
				t.Error("about, rule, why or criteria are missing")
			}
			if f.Name != name {
				t.Errorf("it is called %s in its file", f.Name)
			}
			ours := func(c scenario.Compared) bool { return strings.HasPrefix(c.Name, "goodput") }
			if !slices.ContainsFunc(f.Compare, ours) {
				t.Error("goodput is not among the policies")
			}
			code, stdout, stderr := simulate("--builtin", name)
			if code != exitOK || stderr != "" {
				t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
			}
			if n := strings.Count(stdout, "✓ met: "); n != len(f.Expect) {
				t.Errorf("%d criteria are met of %d", n, len(f.Expect))
			}
			for line := range strings.Lines(stdout) {
				if n := utf8.RuneCountInString(line) - 1; n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

func loadBuiltin(t *testing.T, name string) *scenario.File {
	t.Helper()
	file, src, err := builtin.File(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := scenario.Load(file, src)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The list is what a newcomer chooses from. To write it again:
// goodput simulate --list > internal/builtin/testdata/list.txt
func TestSimulateList(t *testing.T) {
	want, err := os.ReadFile("internal/builtin/testdata/list.txt")
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := simulate("--list")
	if code != exitOK || stderr != "" || stdout != string(want) {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	for line := range strings.Lines(stdout) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}

const good = `version: 1
name: small
length: 2s
policy: {limit: 6, objective: 400ms}
slots: 6
service: 50ms exponential
load: 3x
deadline: 2s
compare: [goodput, fifo]
`

func scenarioFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Whatever is wrong is said with the file, the line and what is allowed, before
// anything is played.
func TestSimulateRefuses(t *testing.T) {
	file := scenarioFile(t, good)
	write := func(text string) string { return scenarioFile(t, text) }
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{nil, exitUsage, []string{"no scenario", "--builtin", "--list"}},
		{[]string{write("")}, exitUsage, []string{"s.yaml: the file is empty"}},
		{[]string{write("\x7fELF\x02\x01\x00\x00")}, exitUsage, []string{"s.yaml: ", "not a text file"}},
		{[]string{write(strings.Replace(good, "length", "lengt", 1))}, exitUsage, []string{"s.yaml:3:1: lengt is unknown, did you mean length?", "    3 | lengt: 2s\n      | ^\n"}},
		{[]string{write(strings.Replace(good, "3x", "-3/s", 1))}, exitUsage, []string{`s.yaml:7:7: load "-3/s"`, "1200/s", "      |       ^"}},
		{[]string{write("objective: 1"), write("- a")}, exitUsage, []string{"version is missing", "s.yaml:1:1"}}, // both files
		{[]string{t.TempDir()}, exitUsage, []string{"is a directory"}},
		{[]string{"/nowhere/s.yaml"}, exitUsage, []string{"/nowhere/s.yaml", "no such file"}},
		{[]string{"burst"}, exitUsage, []string{"no such file", "--builtin burst"}},
		{[]string{"/dev/zero"}, exitUsage, []string{"/dev/zero is larger"}}, // it has no end
		{[]string{write(good + "#" + strings.Repeat("-", strictyaml.MaxBytes))}, exitUsage, []string{"s.yaml is larger", "1048576 bytes"}},
		{[]string{"--builtin", "brust"}, exitUsage, []string{`"brust"`, "did you mean burst?"}},
		{[]string{"--list", file}, exitUsage, []string{"--list"}},
		{[]string{file, "--repeat", "0"}, exitUsage, []string{"--repeat 0", "1 to 100"}},
		{[]string{file, "--repeat", "101"}, exitUsage, []string{"--repeat 101", "1 to 100"}},
		{[]string{file, "--seed", "-1"}, exitUsage, []string{"--seed", `"-1"`}},
		{[]string{file, "--format", "xml"}, exitUsage, []string{"--format", "xml"}},
		{[]string{file, "--policies", "fif"}, exitUsage, []string{`s.yaml: policy "fif"`, "did you mean fifo?"}},
		{[]string{file, "--policies", "fifo,fifo"}, exitUsage, []string{"fifo", "twice"}},
		{[]string{file, file, "--format", "html"}, exitUsage, []string{"html", "one scenario", "2"}},
		{[]string{file, "--output", "/nowhere/r.txt"}, exitRun, []string{"/nowhere/r.txt", "no such file"}},
	} {
		code, stdout, stderr := simulate(c.args...)
		if code != c.code || stdout != "" || !strings.HasPrefix(stderr, "goodput: ") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		for _, word := range c.want {
			if !strings.Contains(stderr, word) {
				t.Errorf("%q: %q does not say %q", c.args, stderr, word)
			}
		}
	}
}

// A criterion that is not met is exit code 3, too few requests are 4, and the report
// is there in both cases: it shows why.
func TestSimulateExitCodes(t *testing.T) {
	for _, c := range []struct {
		text string
		args []string
		code int
		want string // on stderr
		show string // on stdout
	}{
		{good + "expect: [goodput.ratio >= 0.5]\n", nil, exitOK, "", "✓ met: goodput.ratio >= 0.5"},
		{good + "expect: [goodput.ratio >= 1.9, fifo.late == 0]\n", nil, exitNo, "1 of 2 criteria are not met", "✗ not met: goodput.ratio >= 1.9"},
		{good + "expect: [goodput.ratio >= 1.9]\n", []string{"--policies", "fifo"}, exitOK, "", "fifo"},
		{good, []string{"--policies", "codel,fifo"}, exitOK, "", "\ncodel "}, // it is not in the file
		{strings.Replace(good, "3x", "40/s", 1), nil, exitVoid, "no answer: ", "requests came in the window"},
		{strings.Replace(good, "3x", "0/s", 1) + "expect: [goodput.ratio >= 1]\n", nil, exitVoid, "no answer: ", "0 requests came"},
		{strings.Replace(good, "3x", "0/s", 1) + "trace: [{at: 1s}, {at: 1100ms}]\nexpect: [goodput.in_time == 2]\n", nil, exitOK, "", "✓ met"},
	} {
		code, stdout, stderr := simulate(append(c.args, scenarioFile(t, c.text))...)
		if code != c.code || !strings.Contains(stderr, c.want) || (c.want == "") != (stderr == "") || !strings.Contains(stdout, c.show) {
			t.Errorf("%s\nexit code %d, want %d; %s\n%s", c.text, code, c.code, stderr, stdout)
		}
	}
}

// One seed is one result, to the last byte, whatever the machine is doing; another
// seed is another.
func TestSimulateIsRepeatable(t *testing.T) {
	file := scenarioFile(t, good)
	for _, format := range []string{"text", "json", "html"} {
		args := []string{file, "--format", format, "--seed", "7", "--repeat", "3"}
		_, first, _ := simulate(args...)
		_, second, _ := simulate(args...)
		if first != second || first == "" {
			t.Errorf("%s: seed 7 twice differs:\n%s\n%s", format, first, second)
		}
		_, other, _ := simulate(file, "--format", format, "--seed", "8", "--repeat", "3")
		if other == first {
			t.Errorf("%s: seed 8 has the result of seed 7", format)
		}
	}
}

// JSON is one document per scenario and line, and each says which version it is of.
func TestSimulateJSON(t *testing.T) {
	file := scenarioFile(t, good)
	code, stdout, stderr := simulate(file, file, "--format", "json", "--policies", "fifo,goodput", "--repeat", "2")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	documents := 0
	for line := range strings.Lines(stdout) {
		var got struct {
			Version, Runs int
			Seed          uint64
			Scenario      string
			Command       string
			Policies      []struct{ Name string }
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		want := "goodput simulate " + file + " --seed 1 --repeat 2 --policies fifo,goodput"
		if got.Version != 1 || got.Runs != 2 || got.Seed != 1 || got.Scenario != "small" || got.Command != want {
			t.Errorf("%+v", got)
		}
		if len(got.Policies) != 2 || got.Policies[0].Name != "fifo" || got.Policies[1].Name != "goodput" {
			t.Errorf("policies %v", got.Policies)
		}
		documents++
	}
	if documents != 2 {
		t.Errorf("%d documents of two scenarios", documents)
	}
}

// The format goes by the name of the output, and a file is written as a whole.
func TestSimulateOutput(t *testing.T) {
	file, dir := scenarioFile(t, good), t.TempDir()
	for name, begin := range map[string]string{"r.html": "<!doctype html>", "r.json": `{"version":1,`, "r.txt": "small\n"} {
		path := filepath.Join(dir, name)
		code, stdout, stderr := simulate(file, "--output", path)
		if code != exitOK || stdout != "" || stderr != "" {
			t.Errorf("%s: exit code %d, %q, %q", name, code, stdout, stderr)
		}
		got, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(strings.ToLower(string(got)), begin) || !strings.Contains(string(got), "fifo") {
			t.Errorf("%s: %v: %.200s", name, err, got)
		}
	}
}

// What --print prints is a file that plays to the same figures, also from stdin.
func TestSimulatePrint(t *testing.T) {
	const name = "unbounded-minute"
	_, src, err := builtin.File(name)
	if err != nil {
		t.Fatal(err)
	}
	code, printed, stderr := simulate("--builtin", name, "--print")
	if code != exitOK || printed != string(src) {
		t.Fatalf("exit code %d, %s\n%s", code, stderr, printed)
	}
	figures := func(args ...string) string {
		code, stdout, stderr := simulate(append(args, "--format", "json")...)
		if code != exitOK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "command") // it names the file
		text, _ := json.Marshal(got)
		return string(text)
	}
	if code, printed, _ := simulate("--print"); code != exitOK || printed != string(scenario.Reference) {
		t.Errorf("without a scenario: exit code %d, %.80s", code, printed)
	}
	file := scenarioFile(t, printed)
	if figures(file) != figures("--builtin", name) {
		t.Error("the file that was printed has another result")
	}
	old := os.Stdin
	defer func() { os.Stdin = old }()
	if os.Stdin, err = os.Open(file); err != nil {
		t.Fatal(err)
	}
	defer os.Stdin.Close()
	if figures("-") != figures("--builtin", name) {
		t.Error("the same from stdin has another result")
	}
}
