package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planned runs plan and fails if it says anything on stderr that it should not.
func planned(t *testing.T, wantCode int, args ...string) string {
	t.Helper()
	args = append([]string{"plan"}, args...)
	code, stdout, stderr := execute(t, nil, args...)
	if code != wantCode {
		t.Fatalf("%q: exit code %d, want %d: %s", args, code, wantCode, stderr)
	}
	if code == exitNo {
		oneSentence(t, args, stderr)
		says(t, stderr, "the answer is no")
	} else if stderr != "" {
		t.Errorf("%q: %s", args, stderr)
	}
	return stdout
}

// says fails unless text has the words, however its lines break.
func says(t *testing.T, text string, want ...string) {
	t.Helper()
	text = strings.Join(strings.Fields(text), " ")
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in: %s", w, text)
		}
	}
}

var sixtySlots = []string{"--limit", "60", "--service", "50ms", "--objective", "400ms", "--deadline", "2s"}

func TestPlanText_F38(t *testing.T) {
	out := planned(t, exitOK, sixtySlots...)
	says(t, out, "1200/s 60 slots / 50ms mean service", "2400 1200/s x 2s deadline: no time left for the work",
		"480 1200/s x 400ms: that is the mean wait; p99 would be 634ms", "DERIVED DEPTH 201", "2105 the same for 2s",
		"9 / 2 / 1 at 1.5x / 3x / 10x", "The shape of the service is assumed")
	if strings.Contains(planned(t, exitOK, append(sixtySlots, "--service", "50ms:exp")...), "assumed") {
		t.Error("a shape that was said is called assumed")
	}
	if again := planned(t, exitOK, sixtySlots...); again != out {
		t.Error("two plans of the same differ")
	}
}

// The interview question: 10,000 waiting, raise it to 50,000?
func TestPlanDeeperQueue_F38(t *testing.T) {
	out := planned(t, exitNo, append(sixtySlots, "--depth", "10000", "--proposed-depth", "50000", "--request-bytes", "100kB")...)
	says(t, out, "the last in line waits 8.33s (10000 / 1200/s)", "waits 41.7s instead of 8.33s", "none instead of none", "5GB instead of 1GB")
	planned(t, exitOK, append(sixtySlots, "--depth", "10000", "--proposed-depth", "201")...)
	planned(t, exitNo, append(sixtySlots, "--depth", "202")...) // 201 meets the objective, and no more does
	planned(t, exitOK, append(sixtySlots, "--depth", "201")...)
}

// The keys that scripts may rely on, with their values.
func TestPlanJSON_F38(t *testing.T) {
	decode := func(out string) (v map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return v
	}
	out := planned(t, exitOK, append(sixtySlots, "--format", "json")...)
	v := decode(out)
	for key, want := range map[string]any{
		"version": 1.0, "ok": true, "completion_rate": 1200.0, "ceiling_depth": 2400.0, "rule_of_thumb_depth": 480.0, "depth": 201.0,
		"deadline_depth": 2105.0, "service_shape_assumed": true, "objective_reachable": true,
	} {
		if v[key] != want {
			t.Errorf("%s is %v, want %v", key, v[key], want)
		}
	}
	// The last in a queue of the derived depth uses the objective up: 201 of 201.3.
	if p99, _ := v["p99_response_seconds"].(float64); p99 > 0.4 || p99 < 0.398 {
		t.Errorf("p99_response_seconds is %v", v["p99_response_seconds"])
	}
	if reason, _ := v["depth_reason"].(string); !strings.Contains(reason, "-> 201 deep (rule of thumb 480: p99 would be 634ms)") {
		t.Errorf("depth_reason is %q", reason)
	}
	if !strings.HasPrefix(out, "{\n  \"version\": 1,\n") {
		t.Errorf("it does not begin with the version: %.60s", out)
	}
	v = decode(planned(t, exitNo, append(sixtySlots, "--service", "50ms:lognormal:2", "--format", "json")...))
	if v["ok"] != false || v["objective_reachable"] != false {
		t.Errorf("unreachable, and ok is %v, reachable %v", v["ok"], v["objective_reachable"])
	}
	v = decode(planned(t, exitNo, topologyFile(t), "--format", "json"))
	if v["version"] != 1.0 || v["ok"] != false || v["waits_seconds"] != 2.4 || v["retry_amplification"] != 64.0 {
		t.Errorf("a topology: %v", v)
	}
}

func TestPlanMarkdownAndComment_F38(t *testing.T) {
	out := planned(t, exitOK, append(sixtySlots, "--format", "markdown")...)
	says(t, out, "# Agreement", "| 1.5x | 1800/s |", "| 3x | 3600/s |", "| 10x | 12000/s |", "| owner of the service | | |",
		"`goodput plan --limit 60 --service 50ms --objective 400ms --deadline 2s --format markdown`")
	out = planned(t, exitOK, append(sixtySlots, "--percentile", "99.9", "--format", "go-comment")...)
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "//") {
			t.Errorf("in a comment: %q", line)
		}
	}
	says(t, out, "60 slots / 50ms mean = 1200/s", "// goodput plan --limit 60 --service 50ms --objective 400ms --percentile 99.9 --deadline 2s")
}

// topologyFile is C193, with retries.
func topologyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "three.yaml")
	const file = `version: 1
deadline: 2s
layers:
  - name: pods
    limit: 20
    replicas: 460
    wait: 800ms
    attempts: 4
    resource: pooler
  - name: pooler
    wait: 800ms
    attempts: 4
  - name: database
    wait: 800ms
    attempts: 4
resources:
  - name: pooler
    limit: 6000
`
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPlanTopology_C193(t *testing.T) {
	path := topologyFile(t)
	out := planned(t, exitNo, path)
	says(t, out, "800ms + 800ms + 800ms = 2.4s", "the wait in pods from 800ms to 400ms", "460 x 20 = 9200", "limit of pods from 20 to 13", "4 x 4 x 4 = 64")
	says(t, planned(t, exitNo, path, "--format", "markdown"), "# Agreement: 3 layers", "- Error, pooler:")

	// A file that is wrong is wrong usage, shown with line and caret.
	if err := os.WriteFile(path, []byte("version: 1\ndeadline: 2s\nlayers:\n  - name: a\n    wiat: 2s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := execute(t, nil, "plan", path)
	if code != exitUsage || stdout != "" {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
	says(t, stderr, path+":5:5: wiat is unknown, did you mean wait?", "5 | wiat: 2s", "^")
}

func TestPlanWrongUsage(t *testing.T) {
	with := func(args ...string) []string {
		return append([]string{"plan", "--limit", "60", "--service", "50ms"}, args...)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"plan"}, []string{"--limit is required", "topology"}},
		{[]string{"plan", "/dev/zero"}, []string{"/dev/zero is larger than a file of this kind may be"}},
		{[]string{"plan", "--limit", "60"}, []string{"--service is required"}},
		{[]string{"plan", "--service", "50ms"}, []string{"--limit is required"}},
		{[]string{"plan", "--limit", "60", "--service", "50"}, []string{"--service", `"50"`, "50ms:lognormal:2"}},
		{[]string{"plan", "--limit", "60", "--service", "50ms:cauchy"}, []string{"--service", `"50ms:cauchy"`}},
		{[]string{"plan", "--limit", "60", "--service", "50ms:lognormal:x"}, []string{"--service", `"x"`, "such as 2"}},
		{[]string{"plan", "--limit", "60", "--service", "50ms:p99:10s"}, []string{"--service", "1 to 50 times"}},
		{with("--limit", "0"), []string{"--limit", `"0"`}},
		{with("--limit", "auto"), []string{"--limit auto has no number before it runs", "such as 60", "/api/v1/state"}},
		{with("--limit", "auto:max=200"), []string{"--limit auto:max=200 has no number"}},
		{with("--limit", "atuo"), []string{"--limit", `"atuo"`}},
		{with("--objective", "400"), []string{"--objective", `"400"`}},
		{with("--deadline", "-1s"), []string{"--deadline", `"-1s"`}},
		{with("--percentile", "100"), []string{"--percentile", `"100"`, "50 to 99.9"}},
		{with("--burst", "2x"), []string{"--burst", `"2x"`, "2x:1s"}},
		{with("--burst", "0.5x:1s"), []string{"--burst", `"0.5x:1s"`}},
		{with("--depth", "-1"), []string{"--depth", `"-1"`}},
		{with("--proposed-depth", "many"), []string{"--proposed-depth", `"many"`}},
		{with("--attempts", "200"), []string{"--attempts", "200", "1 to 100"}},
		{with("--request-bytes", "0"), []string{"--request-bytes", "64MiB"}},
		{with("--format", "xml"), []string{"--format", "xml", "go-comment"}},
		{with("file.yaml"), []string{"--limit", "file.yaml"}},
		{[]string{"plan", "/does/not/exist.yaml"}, []string{"/does/not/exist.yaml", "no such file"}},
		{[]string{"plan", "."}, []string{"directory"}},
	} {
		code, stdout, stderr := execute(t, nil, c.args...)
		oneSentence(t, c.args, stderr)
		if code != exitUsage || stdout != "" {
			t.Errorf("%q: exit code %d, stdout %q", c.args, code, stdout)
		}
		for _, word := range c.want {
			if !strings.Contains(stderr, word) {
				t.Errorf("%q: %q does not say %s", c.args, stderr, word)
			}
		}
	}
}

// The command under an answer has every flag that made it.
func TestPlanMadeWith(t *testing.T) {
	args := []string{
		"--limit", "60", "--service", "50ms:lognormal:1", "--objective", "400ms", "--percentile", "99.9", "--deadline", "2s", "--burst", "2x:1s",
		"--request-bytes", "100000", "--depth", "20", "--proposed-depth", "30", "--attempts", "3", "--retry-interval", "1s", "--format", "markdown",
	}
	code, out, _ := execute(t, nil, append([]string{"plan"}, args...)...)
	if code != exitOK && code != exitNo {
		t.Fatal(code)
	}
	says(t, out, "Made with `goodput plan "+strings.Join(args, " ")+"`")
}

// --print is a file that plan takes, and whoever has no layers is told of it.
func TestPlanPrint(t *testing.T) {
	example := planned(t, exitOK, "--print")
	path := filepath.Join(t.TempDir(), "topology.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, planned(t, exitOK, path), "3 layers", "NARROWEST", "Nothing is wrong with it.")
	says(t, planned(t, exitOK, "--help"), "goodput plan --print > topology.yaml", "layers:", "50ms exponential")
	if err := os.WriteFile(path, []byte("version: 1\ndeadline: 2s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, stderr := execute(t, nil, "plan", path)
	says(t, stderr, "layers is missing", "goodput plan --print")
}

// A no is one short line on stderr: what is wrong stands in the answer.
func TestPlanNoIsShort(t *testing.T) {
	_, _, stderr := execute(t, nil, "plan", topologyFile(t))
	if stderr != "goodput: the answer is no: 2 errors\n" {
		t.Errorf("%q", stderr)
	}
}
