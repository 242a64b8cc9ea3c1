package mutants

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// running says whether to run mutants, which compiles each of them: "all", or a part of
// them, as "0/3" is every third from the first on. Without it, and of the other parts, it
// is tested that they still fit the code.
var running = os.Getenv("GOODPUT_MUTANTS")

// chosen reports whether the i-th mutant is to be run.
func chosen(t *testing.T, i int) bool {
	t.Helper()
	if running == "" || running == "all" {
		return running != ""
	}
	var part, of int
	if n, err := fmt.Sscanf(running, "%d/%d", &part, &of); n != 2 || err != nil || of < 1 || part < 0 || part >= of {
		t.Fatalf("GOODPUT_MUTANTS %q is neither all nor a part as 0/3", running)
	}
	return i%of == part
}

// limit bounds one run of a test, compilation excluded: the tests that mutants
// name take a few seconds at the most.
const limit = 60 * time.Second

// test runs the mutant's test in the module at root, with the changes if
// overlayFile is not empty.
func (m mutant) test(ctx context.Context, root, overlayFile string) (verdict, string) {
	args := []string{"test", "-v", "-vet=off", "-timeout", limit.String(), "-run", m.fails}
	if m.race {
		args = append(args, "-race")
	}
	if overlayFile != "" {
		// A test of races may notice today and not tomorrow: no cached result.
		args = append(args, "-count=1", "-overlay", overlayFile)
	}
	// Compiling with the race detector on a busy machine is the slow part.
	ctx, cancel := context.WithTimeout(ctx, limit+4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, m.pkg)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOODPUT_MUTANTS=")
	out, err := cmd.CombinedOutput()
	return judge(string(out), err == nil), string(out)
}

// hunt reports what became of a mutant: killed is what everybody wants.
func hunt(t *testing.T, root string, m mutant) (verdict, string) {
	t.Helper()
	changed, err := m.apply(root)
	if err != nil {
		t.Fatal(err)
	}
	if v, out := m.test(t.Context(), root, ""); v != survived {
		t.Fatalf("without the change the test %v, want it to pass:\n%s", v, out)
	}
	file, err := overlay(t.TempDir(), changed)
	if err != nil {
		t.Fatal(err)
	}
	return m.test(t.Context(), root, file)
}

func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no mutants: %v", err)
	}
	for i, file := range files {
		run := chosen(t, i)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m, err := parse(string(src))
			if err != nil {
				t.Fatal(err)
			}
			if !run {
				if _, err := m.apply(root); err != nil {
					t.Fatal(err)
				}
				return
			}
			switch v, out := hunt(t, root, m); v {
			case killed:
			case hung:
				t.Logf("killed, but only by the timeout: %s", m.why)
			default:
				t.Errorf("%v: %s\n%s", v, m.why, out)
			}
		})
	}
}

// TestHunt runs the hunter itself on a module of three lines.
func TestHunt(t *testing.T) {
	if running == "" {
		t.Skip("compiles 7 programs: set GOODPUT_MUTANTS=all")
	}
	root := t.TempDir()
	for name, src := range map[string]string{
		"go.mod":    "module tiny\n\ngo 1.25\n",
		"a.go":      "package tiny\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n",
		"a_test.go": "package tiny\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 2) != 4 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	const head = "why\n\npackage: .\nfails: ^TestAdd$\n=== a.go\n\treturn a + b\n=== becomes\n"
	for _, c := range []struct {
		name, src string
		want      verdict
	}{
		{"nothing changes", head + "\treturn a + b\n", survived},
		{"the same for the test's numbers", head + "\treturn a * b\n", survived},
		{"wrong", head + "\treturn a - b\n", killed},
		{"panics", head + "\tpanic(a + b)\n", killed},
		{"no Go", head + "\treturn a +\n", broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := parse(c.src)
			if err != nil {
				t.Fatal(err)
			}
			if v, out := hunt(t, root, m); v != c.want {
				t.Errorf("%v, want %v:\n%s", v, c.want, out)
			}
		})
	}
	m, err := parse(strings.Replace(head, "TestAdd", "TestOther", 1) + "\treturn 0\n")
	if err != nil {
		t.Fatal(err)
	}
	if v, out := m.test(t.Context(), root, ""); v != absent {
		t.Errorf("a test that does not exist: %v, want %v:\n%s", v, absent, out)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		output string
		ok     bool
		want   verdict
	}{
		{"=== RUN   TestA\n--- PASS: TestA\nok  \ttiny\n", true, survived},
		{"=== RUN   TestA\n--- FAIL: TestA\nFAIL\n", false, killed},
		{"=== RUN   TestA\npanic: I3 broken\n\ngoroutine 7\n", false, killed},
		{"=== RUN   TestA\nfatal error: all goroutines are asleep\n", false, killed},
		{"=== RUN   TestA\nWARNING: DATA RACE\n", false, killed},
		{"=== RUN   TestA\npanic: test timed out after 1m0s\n", false, hung},
		{"./a.go:4: syntax error\nFAIL\ttiny [build failed]\n", false, broken},
		{"testing: warning: no tests to run\nok  \ttiny\n", true, absent},
		{"=== RUN   TestA\nsignal: killed\nFAIL\ttiny\n", false, unclear},
	} {
		if got := judge(c.output, c.ok); got != c.want {
			t.Errorf("%q, %v: %v, want %v", c.output, c.ok, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	m, err := parse("Two lines\nof reason.\n\npackage: ./x\nfails: ^TestX$\nrace: yes\n" +
		"=== x/x.go\n\ta()\n\n\tb()\n=== becomes\n\tb()\n=== x/y.go\nc\n=== becomes\n")
	if err != nil {
		t.Fatal(err)
	}
	if m.why != "Two lines of reason." || m.pkg != "./x" || m.fails != "^TestX$" || !m.race || len(m.changes) != 2 {
		t.Errorf("parsed %+v", m)
	}
	if c := m.changes[0]; c != (change{"x/x.go", "\ta()\n\n\tb()\n", "\tb()\n"}) {
		t.Errorf("first change %q", c)
	}
	for _, c := range []struct{ name, src string }{
		{"no reason", "package: .\nfails: T\n=== a\nx\n=== becomes\ny\n"},
		{"no package", "why\nfails: T\n=== a\nx\n=== becomes\ny\n"},
		{"no test", "why\npackage: .\n=== a\nx\n=== becomes\ny\n"},
		{"no pattern", "why\npackage: .\nfails: (\n=== a\nx\n=== becomes\ny\n"},
		{"no change", "why\npackage: .\nfails: T\n"},
		{"no old text", "why\npackage: .\nfails: T\n=== a\n=== becomes\ny\n"},
		{"no new text", "why\npackage: .\nfails: T\n=== a\nx\n"},
		{"two new texts", "why\npackage: .\nfails: T\n=== a\nx\n=== becomes\ny\n=== becomes\nz\n"},
	} {
		if m, err := parse(c.src); err == nil {
			t.Errorf("%s: parsed as %+v", c.name, m)
		}
	}
}

func TestApplyWantsOneOccurrence(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("x\n\tx\ny\ny\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := mutant{changes: []change{{"a.go", "\tx\n", "z\n"}, {"a.go", "z\n", "w\n"}}}.apply(root)
	if want := "x\nw\ny\ny\n"; err != nil || got[filepath.Join(root, "a.go")] != want {
		t.Errorf("applied: %q, %v, want %q", got, err, want)
	}
	for _, old := range []string{"y\n", "q\n"} {
		if _, err := (mutant{changes: []change{{"a.go", old, ""}}}).apply(root); err == nil {
			t.Errorf("%q applied although it is not there once", old)
		}
	}
}
