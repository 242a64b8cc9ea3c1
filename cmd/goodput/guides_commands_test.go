package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// instead are commands of a guide that take minutes, with what makes them show that they would
// run.
var instead = map[string]string{"goodput simulate --suite adaptive": "--list"}

// Every command of the guides and of the pages for on-call works, as it is written, in a
// directory that has the docs of the repository, an access log and a policy file.
func TestCommandsOfTheGuides(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(repository, "docs"), filepath.Join(dir, "docs")); err != nil {
		t.Fatal(err)
	}
	yesterday := "" // 120 lines, since a p99 takes 100 service times
	for i := range 120 {
		yesterday += fmt.Sprintf("203.0.113.7 - - [21/Jan/2019:08:%02d:%02d +0100] \"GET /%d HTTP/1.1\" 200 512 \"-\" \"curl/8.5\" 0.0%d 0.0%d\n", i/60, i%60, i, 20+i%70, 20+i%70)
	}
	for name, text := range map[string]string{
		"yesterday.log": yesterday,
		"goodput.yaml":  "version: 1\nupstream: http://127.0.0.1:1\nlimit: 60\nobjective: 400ms\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	code := regexp.MustCompile("`(goodput [^`\n]+)`|(?m)^(?:    |\\$ )?(goodput .*)$")
	ran := 0
	for path, text := range all {
		if in := filepath.Base(filepath.Dir(path)); in != "guides" && in != "oncall" {
			continue
		}
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			line := m[1] + m[2]
			args := strings.Fields(line)[1:]
			switch {
			case m[1] == "" && !strings.HasPrefix(m[0], " ") && !strings.HasPrefix(m[0], "$"):
				continue // a sentence that begins so
			case len(args) == 1:
				if code, _, _ := execute(t, nil, args[0], "--help"); code != exitOK {
					t.Errorf("%s: there is no %s", path, line)
				}
				continue
			case instead[line] != "":
				args = append(args, instead[line])
			}
			ran++
			if code, _, stderr := command(args...); code != exitOK {
				t.Errorf("%s: %s ends with %d: %s", path, line, code, stderr)
			}
		}
	}
	if ran < 5 {
		t.Errorf("%d commands were found: the search is not to be trusted", ran)
	}
}

// What docs/refusals.md calls a key of a policy file is one, and what it calls a flag is one.
func TestKeysOfTheRefusals(t *testing.T) {
	page := pages(t)[filepath.Join(docs, "refusals.md")]
	_, keys, _ := command("schema", "--format", "text")
	_, flags, _ := execute(t, nil, "serve", "--help")
	found := regexp.MustCompile("`([a-z_]+):(?: \\w+)?`|`(--[a-z-]+)`").FindAllStringSubmatch(page, -1)
	for _, m := range found {
		if key := m[1]; key != "" && !regexp.MustCompile(`(?m)^[ #-]*`+key+`:`).MatchString(keys) {
			t.Errorf("a policy has no key %s", key)
		}
		if m[2] != "" && !strings.Contains(flags, m[2]+"=") {
			t.Errorf("goodput serve has no %s", m[2])
		}
	}
	if len(found) < 15 {
		t.Errorf("%d keys were found: the search is not to be trusted", len(found))
	}
}
