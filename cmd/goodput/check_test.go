package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// check runs goodput check over the text of files and returns what it prints; where they
// are stands as DIR.
func check(t *testing.T, format string, texts ...string) (out string, code int) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"check", "--format", format}
	for i, text := range texts {
		name := filepath.Join(dir, string(rune('a'+i))+".yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	var stdout, stderr bytes.Buffer
	code = run(args, &stdout, &stderr)
	return strings.ReplaceAll(stdout.String()+stderr.String(), dir, "DIR"), code
}

const smallPolicy = `version: 1
upstream: http://127.0.0.1:9000
limit: 60
objective: 400ms
service: 50ms
deadline: 300ms
`

// The depth is derived where anybody can follow it; a warning is no error.
func TestCheckSaysTheDepth(t *testing.T) {
	out, code := check(t, "text", smallPolicy)
	want := `DIR/a.yaml: valid
  listen    :8080 (HTTP/1.1, h2c), 65536 connections at most
  upstream  default: http://127.0.0.1:9000
  class default: every request, to default
    limit     60
    depth     60 slots / 50ms mean = 1200/s; objective 400ms p99, service p99 230ms -> 201 deep (rule of thumb 480: p99 would be 634ms); 0 samples, prior service 50ms
    deadline  300ms where a request brings none
  warning: class default: objective 400ms is longer than deadline 300ms, which requests have that bring none: the queue is made for a wait that they do not survive; an objective of at most 300ms
`
	if out != want || code != exitOK {
		t.Errorf("exit %d:\n%s\nwant\n%s", code, out, want)
	}
}

// Of what is wrong all is said, of every file, and the exit code is 2.
func TestCheckSaysWhatIsWrong(t *testing.T) {
	out, code := check(t, "text", smallPolicy, "version: 1\nobjektive: 2s\nupstream: 9000\n", "a: [")
	for _, want := range []string{
		"DIR/a.yaml: valid\n",
		"DIR/b.yaml:2:1: objektive is unknown, did you mean objective?\n    2 | objektive: 2s\n      | ^\n",
		`DIR/b.yaml:3:11: upstream "9000" has no scheme`,
		"DIR/c.yaml:1:4: this is not YAML: the [ is not closed\n",
		"goodput: 2 of 3 files are not valid\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if code != exitUsage {
		t.Errorf("exit %d", code)
	}
	if out, code := check(t, "text", "version: 2"); code != exitUsage || !strings.HasSuffix(out, "goodput: DIR/a.yaml is not valid\n") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code := run([]string{"check", "/does/not/exist"}, &bytes.Buffer{}, &bytes.Buffer{}); code != exitUsage {
		t.Errorf("no file is exit %d", code)
	}
}

// What a program reads of it stays.
func TestCheckJSON(t *testing.T) {
	out, code := check(t, "json", smallPolicy, "version: 1\nupstream: http://h\nobjective: 2s\ndeadline_cap: 1s\n")
	type place struct{ Line, Column int }
	var got struct {
		Version int
		Files   []struct {
			File   string
			Valid  bool
			SHA256 string
			Errors []struct {
				place
				Sentence    string
				Contradicts []place
			}
			Warnings []struct{ Class, Sentence string }
			Classes  []struct {
				Name, Match, Upstream, Mode, Limit, Derivation string
				Begins, Depth                                  int
				Objective                                      float64 `json:"objective_seconds"`
				Deadline                                       float64 `json:"deadline_seconds"`
				Reachable                                      bool
			}
		}
	}
	json1, _, _ := strings.Cut(out, "\ngoodput: ")
	if err := json.Unmarshal([]byte(json1), &got); err != nil || code != exitUsage || got.Version != 1 || len(got.Files) != 2 {
		t.Fatalf("exit %d, %v:\n%s", code, err, out)
	}
	good, bad := got.Files[0], got.Files[1]
	if !good.Valid || len(good.SHA256) != 64 || len(good.Errors) != 0 || len(good.Warnings) != 1 || good.Warnings[0].Class != "default" || len(good.Classes) != 1 {
		t.Fatalf("%+v", good)
	}
	if c := good.Classes[0]; c.Name != "default" || c.Match != "every request" || c.Upstream != "default" || c.Mode != "request" || c.Limit != "60" ||
		c.Begins != 60 || c.Depth != 201 || c.Objective != 0.4 || c.Deadline != 0.3 || !c.Reachable || !strings.Contains(c.Derivation, "201 deep") {
		t.Errorf("%+v", c)
	}
	if bad.Valid || len(bad.Errors) != 1 || bad.Errors[0].place != (place{3, 12}) || len(bad.Errors[0].Contradicts) != 1 || bad.Errors[0].Contradicts[0] != (place{4, 15}) {
		t.Errorf("%+v", bad)
	}
}

// Certificates are read, since a file that names one that is not there is of no use.
func TestCheckReadsCertificates(t *testing.T) {
	tls := "listen:\n  address: ':8443'\n  tls: {cert: /none/tls.crt, key: /none/tls.key, client_ca: ca.crt}\n"
	out, code := check(t, "text", smallPolicy+tls)
	for _, want := range []string{
		"DIR/a.yaml:9:15: cert /none/tls.crt: no such file or directory\n    9 |   tls: {cert:",
		"DIR/a.yaml:9:61: client_ca ca.crt: no such file or directory, looked for from the working directory\n",
	} {
		if !strings.Contains(out, want) || code != exitUsage {
			t.Errorf("exit %d, no %s in\n%s", code, want, out)
		}
	}
}

// No word of the help is a variable that there is not.
func TestHelpHasNoEmptyVariables(t *testing.T) {
	for _, command := range []string{"check", "schema", "serve", "plan", "replay", "simulate"} {
		code, stdout, stderr := execute(t, nil, command, "--help")
		if code != exitOK || !strings.Contains(stdout, "Usage: goodput "+command) || strings.Contains(stdout, "($-)") || strings.Contains(stdout, "${") {
			t.Errorf("%s: exit %d\n%s%s", command, code, stdout, stderr)
		}
	}
}
