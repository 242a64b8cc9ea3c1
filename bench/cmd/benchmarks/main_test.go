package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/bench/figures"
)

func TestFlags(t *testing.T) {
	s, err := parse(nil)
	if err != nil || !slices.Equal(s.parts, figures.Parts) || s.quick || s.publish || s.to != "../bin/benchmarks" {
		t.Fatalf("%+v, %v", s, err)
	}
	s, err = parse(strings.Fields("-quick -only core,hot -to x"))
	if err != nil || !slices.Equal(s.parts, []string{"hot", "core"}) || !s.quick || s.to != "x" {
		t.Fatalf("%+v, %v: the parts are in their own order", s, err)
	}
	for args, want := range map[string]string{
		"-only hot,x":     `part "x" is unknown: one of hot, generator`,
		"-only ,":         "no part is wanted",
		"-quick -publish": "a quick run is not published",
		"all":             `argument "all" is unknown`,
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// Each part is known to figures and says how long it takes; all of them take half an hour, and
// quick ones less than three minutes.
func TestParts(t *testing.T) {
	full, quick := &world{setup: &setup{}}, &world{setup: &setup{quick: true}}
	var long, short float64
	for _, name := range figures.Parts {
		if parts[name].measure == nil {
			t.Errorf("part %s cannot be measured", name)
		}
		long += (full.expected(name) + pause).Minutes()
		short += quick.expected(name).Minutes()
	}
	if len(parts) != len(figures.Parts) || long > 31 || short > 3 {
		t.Errorf("%d parts of %d, %.0f and %.1f minutes", len(parts), len(figures.Parts), long, short)
	}
}

func TestModel(t *testing.T) {
	info := "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC\ncpu MHz\t: 1\n"
	if got := model(info); got != "AMD EPYC" {
		t.Errorf("%q", got)
	}
	if got := model("processor: 0\n"); got != "unknown processor" {
		t.Errorf("%q", got)
	}
	if m := machine(); m.Cores < 1 || !strings.HasPrefix(m.Go, "go") || strings.Contains(m.Kernel, "-") {
		t.Errorf("%+v", m)
	}
}

func TestLoadAverage(t *testing.T) {
	if v := average("0.52 0.58 0.59 1/613 12345\n"); v == nil || *v != 0.52 {
		t.Errorf("%v", v)
	}
	if v := average("much\n"); v != nil {
		t.Errorf("%v", *v)
	}
}

// A part says of what, when and on what it was measured.
func TestHead(t *testing.T) {
	much := 7.5
	w := &world{setup: &setup{}, commit: "abc", busy: &much}
	h := w.head("hot", time.Date(2026, 3, 1, 23, 30, 0, 0, time.FixedZone("", -3600)), "run")
	if h.Commit != "abc" || h.Day != "2026-03-02" || *h.Busy != 7.5 || h.Command != "run" || h.Part != "hot" {
		t.Errorf("%+v", h)
	}
	dir := t.TempDir()
	t.Chdir(dir) // no repository
	w.readCommit(t.Context())
	if w.commit != "unknown" {
		t.Errorf("commit %q of no repository", w.commit)
	}
}

// A program that fails says so in a sentence with its last line; its result is there all the
// same, for those that end with 3 because a number was missed.
func TestOutput(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	w := &world{}
	out, err := w.output(t.Context(), "", "sh", "-c", "echo a; echo $GOWORK; echo first >&2; echo last >&2; echo FAIL >&2; exit 3")
	if string(out) != "a\noff\n" || exitCode(err) != exitMissed || err.Error() != "sh: exit status 3: last" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := w.output(t.Context(), "", "no-such-program"); err == nil || exitCode(err) != -1 {
		t.Errorf("a program that is not there: %v", err)
	}
}

// A part that fails leaves its file, is named in the error, and does not keep the next from
// being measured.
func TestAFailedPartLeavesItsFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir()) // where there is nothing to measure
	if err := os.WriteFile(dir+"/hot.json", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := measure(t.Context(), &setup{parts: []string{"hot", "demo"}, quick: true, to: dir})
	if len(done) > 0 || err == nil || !strings.Contains(err.Error(), "hot failed, its file is as it was") || !strings.Contains(err.Error(), "demo failed") {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(dir + "/hot.json"); err != nil || string(data) != "old" {
		t.Errorf("%q, %v", data, err)
	}
	if err := run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "run this in the folder bench") {
		t.Errorf("%v", err)
	}
}

// stage is a repository that has only the folders, and this is bench.
func stage(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"cmd/goodput", "docs", "bench/figures/run"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(root, "bench"))
}

const hotFile = `{"part":"hot","data":{"rows":[{"benchmark":"Do","procs":1,"contestant":"goodput","ns_per_op":[1]}]}}`

// What is published is kept, beside what was published of other parts, and the document is
// that of both. What was quick is not.
func TestPublish(t *testing.T) {
	stage(t)
	dir := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.Context(), []string{"-from", dir, "-publish"}); err == nil || !strings.Contains(err.Error(), "no part was measured") {
		t.Errorf("nothing was published: %v", err)
	}
	write(dir+"/hot.json", strings.Replace(hotFile, `"hot",`, `"hot","quick":true,`, 1))
	if err := run(t.Context(), []string{"-from", dir}); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), []string{"-from", dir, "-publish"}); err == nil || !strings.Contains(err.Error(), "part hot was measured with -quick") {
		t.Errorf("a quick part was published: %v", err)
	}
	if _, err := os.Stat(document); err == nil {
		t.Error("there is a document of what was not published")
	}
	write(dir+"/hot.json", hotFile)
	write(published+"/live.json", `{"part":"live","command":"live before","data":[{"plan":"cold 3x","contestant":"goodput-auto","phases":[{"slots":1}]}]}`)
	if err := run(t.Context(), []string{"-from", dir, "-publish"}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(published + "/hot.json"); err != nil || string(data) != hotFile {
		t.Errorf("%q, %v", data, err)
	}
	text, err := os.ReadFile(document)
	if err != nil || !strings.Contains(string(text), "## In process: what a request costs") || !strings.Contains(string(text), "live before") {
		t.Errorf("%v:\n%s", err, text)
	}
	// A part of an earlier run in the same folder, even a quick one, is left where it is.
	write(dir+"/live.json", `{"part":"live","quick":true,"data":[{"plan":"cold 3x","contestant":"goodput-auto","phases":[{"slots":1}]}]}`)
	r, err := figures.Load(os.DirFS(dir))
	if err == nil {
		err = publish(r, dir, "", []string{"hot"})
	}
	if text, _ := os.ReadFile(document); err != nil || !strings.Contains(string(text), "live before") {
		t.Errorf("%v:\n%s", err, text)
	}
	if err := publish(r, dir, "", nil); err == nil || !strings.Contains(err.Error(), "no part was measured") {
		t.Errorf("nothing that is fresh was published: %v", err)
	}
	write(dir+"/hot.json", "{")
	if err := run(t.Context(), []string{"-from", dir, "-publish"}); err == nil || !strings.Contains(err.Error(), "hot.json is no part of a run") {
		t.Errorf("a broken part was published: %v", err)
	}
}
