package mutants

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A mutant is one way to break the code.
type mutant struct {
	why     string
	pkg     string // the package whose test must fail
	fails   string // as in go test -run
	race    bool
	changes []change
}

// A change replaces the one occurrence of old in a file.
type change struct {
	file     string
	old, new string
}

const (
	mark    = "=== "
	becomes = "becomes"
)

// parse reads a mutant as doc.go describes it.
func parse(src string) (m mutant, err error) {
	head, body, _ := strings.Cut(src, "\n"+mark)
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "package":
			m.pkg = value
		case "fails":
			m.fails = value
		case "race":
			m.race = value == "yes"
		default:
			m.why = strings.TrimSpace(m.why + " " + line)
		}
	}
	if _, err := regexp.Compile(m.fails); err != nil || m.why == "" || m.pkg == "" || m.fails == "" {
		return m, errors.New("the head needs a reason, a package and the test that fails")
	}
	for part := range strings.SplitSeq(body, "\n"+mark) {
		// The split took the line break before each mark.
		title, text, _ := strings.Cut(part+"\n", "\n")
		last := len(m.changes) - 1
		switch {
		case title != becomes:
			m.changes = append(m.changes, change{file: title, old: text, new: "\x00"})
		case last < 0 || m.changes[last].new != "\x00":
			return m, errors.New("a new text has no old one before it")
		default:
			m.changes[last].new = text
		}
	}
	for _, c := range m.changes {
		if c.new == "\x00" || strings.TrimSpace(c.old) == "" {
			return m, fmt.Errorf("the change of %s needs an old and a new text", c.file)
		}
	}
	return m, nil
}

// apply returns the changed files by their path.
func (m mutant) apply(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, c := range m.changes {
		path := filepath.Join(root, filepath.FromSlash(c.file))
		src, ok := changed[path]
		if !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			src = string(b)
		}
		at := places(src, c.old)
		if len(at) != 1 {
			return nil, fmt.Errorf("%s has the old text %d times, want once:\n%s", c.file, len(at), c.old)
		}
		changed[path] = src[:at[0]] + c.new + src[at[0]+len(c.old):]
	}
	return changed, nil
}

// places returns where old is in src as whole lines: "\tx\n" is not the end of
// "\t\tx\n".
func places(src, old string) (at []int) {
	for i := 0; i < len(src); {
		if strings.HasPrefix(src[i:], old) {
			at = append(at, i)
		}
		next := strings.IndexByte(src[i:], '\n')
		if next < 0 {
			break
		}
		i += next + 1
	}
	return at
}

// overlay writes the changed files to dir and returns the file that go test
// -overlay takes.
func overlay(dir string, changed map[string]string) (string, error) {
	replace := map[string]string{}
	for path, src := range changed {
		to := filepath.Join(dir, fmt.Sprintf("%d_%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(to, []byte(src), 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, b, 0o600)
}

// A verdict is what a run of go test says about a mutant.
type verdict int

const (
	survived verdict = iota // the test passes on broken code
	killed                  // the test failed, as it should
	hung                    // killed, by the timeout: the test should look instead of wait
	broken                  // it does not compile, so nothing was tested
	absent                  // no test of that name ran
	unclear                 // go test failed for another reason
)

var verdictWords = []string{"survived", "killed", "hung", "does not compile", "ran no test", "failed unclearly"}

func (v verdict) String() string { return verdictWords[v] }

// judge reads the output of go test -v and whether it succeeded.
func judge(output string, ok bool) verdict {
	has := func(s string) bool { return strings.Contains(output, s) }
	switch {
	case has("[build failed]") || has("[setup failed]"):
		return broken
	case !has("=== RUN"):
		return absent
	case ok:
		return survived
	case has("panic: test timed out"):
		return hung
	case has("--- FAIL: ") || has("panic: ") || has("fatal error: ") || has("WARNING: DATA RACE"):
		return killed
	}
	return unclear
}
