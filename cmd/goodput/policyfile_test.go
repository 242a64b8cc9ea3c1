package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// policyOf writes a policy file.
func policyOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const classesFile = `version: 1
upstream: http://127.0.0.1:9000
defaults: {objective: 400ms}
classes:
  - {name: live, match: {path: /ws}, mode: stream, limit: 9}
  - {name: search, match: {path: /search}, limit: 60, service: 50ms, deadline: 2s, percentile: 0.95}
  - {name: capped, match: {path: /capped}, limit: 60, service: 50ms, deadline_cap: 3s}
  - {name: fixed, match: {path: /fixed}, limit: 60, service: 50ms, depth: 480}
  - {name: rest}
`

// A plan by a file is the plan by the flags that say the same, but for the command that
// makes it again, which makes it again.
func TestPlanByPolicyFile(t *testing.T) {
	file := policyOf(t, classesFile)
	for i, c := range []struct{ byFile, byFlags []string }{
		{[]string{"--class", "search"}, []string{"--limit", "60", "--service", "50ms", "--objective", "400ms", "--percentile", "95", "--deadline", "2s"}},
		{[]string{"--class", "capped"}, []string{"--limit", "60", "--service", "50ms", "--objective", "400ms", "--deadline", "3s"}},
		{[]string{"--class", "search", "--service", "50ms:fixed"}, []string{"--limit", "60", "--service", "50ms:fixed", "--objective", "400ms", "--percentile", "95", "--deadline", "2s"}},
		{[]string{"--class", "fixed", "--burst", "2x:1s"}, []string{"--limit", "60", "--service", "50ms", "--objective", "400ms", "--depth", "480", "--burst", "2x:1s"}},
	} {
		if testing.Short() && i > 0 {
			break
		}
		args := append([]string{"plan", "--config", file}, c.byFile...)
		for _, format := range []string{"text", "json"} {
			codeA, got, _ := command(append(args, "--format", format)...)
			codeB, want, stderr := command(append([]string{"plan", "--format", format}, c.byFlags...)...)
			if codeA != codeB || got != want || len(want) < 100 {
				t.Errorf("%v: exit %d\n%s\nwant exit %d\n%s\n%s", args, codeA, got, codeB, want, stderr)
			}
		}
		_, text, _ := command(append(args, "--format", "go-comment")...)
		if !strings.Contains(text, "goodput plan --config "+file+" --class "+c.byFile[1]) {
			t.Errorf("how to make it again is not in\n%s", text)
		}
	}
}

// A replay by a file is the replay by flags; what a file says more of the queue counts as
// well.
func TestReplayByPolicyFile(t *testing.T) {
	log := accessLog(t, "a.log", 1000)
	one := "version: 1\nupstream: http://h\nlimit: 10\nobjective: 400ms\ndeadline: 1s\n"
	result := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := command(append([]string{"replay", log, "--load", "3", "--format", "json"}, args...)...)
		if code != exitOK {
			t.Fatalf("%v: exit %d: %s", args, code, stderr)
		}
		_, rest, _ := strings.Cut(stdout, `"seed"`) // behind the command
		return rest
	}
	byFlags := result("--limit", "10", "--objective", "400ms", "--deadline", "1s")
	if got := result("--config", policyOf(t, one)); got != byFlags || len(got) < 1000 {
		t.Errorf("by the file:\n%s\nby flags:\n%s", got, byFlags)
	}
	several := policyOf(t, "version: 1\nupstream: http://h\nclasses:\n  - {name: a, match: {path: /a}, limit: 10, objective: 400ms, deadline: 1s}\n  - {name: b, limit: 2}\n")
	if got := result("--config", several, "--class", "a"); got != byFlags {
		t.Errorf("by a class of the file:\n%s\nby flags:\n%s", got, byFlags)
	}
	if got := result("--config", policyOf(t, strings.Replace(one, "deadline", "deadline_cap", 1))); got != byFlags {
		t.Errorf("by the cap of the file:\n%s\nby flags:\n%s", got, byFlags)
	}
	if got := result("--config", policyOf(t, one+"depth: none\n")); got == byFlags {
		t.Error("without a queue everything is as with one")
	}
	if got := result("--config", policyOf(t, "version: 1\nupstream: http://h\nlimit: auto\nobjective: 400ms\n"), "--slots", "10"); got == byFlags {
		t.Error("a limit that is found is as one that is known")
	}
}

// What does not go together is one sentence, or those of the file.
func TestPolicyFileRefused(t *testing.T) {
	file, log := policyOf(t, classesFile), accessLog(t, "a.log", 300)
	wrong := policyOf(t, "version: 1\nupstream: http://h\nobjektive: 1s\n")
	auto := policyOf(t, "version: 1\nupstream: http://h\n")
	for args, want := range map[string]string{
		"plan --config " + file:                                             "--class is required: " + file + " has the classes live, search, capped, fixed or rest, and each has a limit of its own",
		"plan --config " + file + " --class serach":                         `--class "serach" is unknown, did you mean search? in ` + file,
		"plan --config " + file + " --class live":                           "--class live has mode stream: there are no service times and no queue to compute with",
		"plan --config " + file + " --class rest --service 50ms":            "--limit auto has no number before it runs",
		"plan --config " + file + " --class search --limit 3":               "--config and --limit: with a file the policy is in the file alone",
		"plan --config " + file + " --class search --depth 3 --deadline 1s": "--config and --depth, --deadline: with",
		"plan --class search":                                               "--class search needs --config",
		"plan --config " + file + " topology.yaml":                          "--config and the file topology.yaml",
		"plan --config " + wrong:                                            wrong + ":3:1: objektive is unknown, did you mean objective?",
		"plan --config " + wrong + ".gone":                                  "no such file",
		"replay --config " + file + " " + log:                               "--class is required",
		"replay --config " + file + " --class search --limit 3 " + log:      "--config and --limit: with a file",
		"replay --config " + file + " --class search --class rest " + log:   "--class search and --class rest: a log is played through one class of the file",
		"replay --config " + auto + " " + log:                               "--slots is required with --limit auto",
		"replay --class search --limit 3 " + log:                            `--class "search" is not a class`,
	} {
		code, stdout, stderr := command(strings.Fields(args)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q, want %s", args, code, stderr, want)
		}
	}
}
