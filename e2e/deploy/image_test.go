//go:build linux

package deploy

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goodput/goodput/e2e/internal/rig"
)

const root = "../.." // of the repository: what the image is built from

// instructions returns those of the Dockerfile by their name.
func instructions(t *testing.T) map[string][]string {
	t.Helper()
	src, err := os.ReadFile(root + "/deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}
	all := map[string][]string{}
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		if !slices.Contains(known, name) {
			t.Fatalf("%q is no instruction", line)
		}
		all[name] = append(all[name], rest)
	}
	return all
}

// words decodes the exec form of ENTRYPOINT and CMD.
func words(t *testing.T, text string) (list []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return list
}

// The last stage is empty but for what is copied into it, of a user that is not root, and
// starts what was built, as the manifest does.
func TestImage(t *testing.T) {
	all := instructions(t)
	from := all["FROM"]
	if from[len(from)-1] != "scratch" {
		t.Errorf("the last stage is from %s", from[len(from)-1])
	}
	if user := all["USER"]; !slices.Equal(user, []string{"65532:65532"}) {
		t.Errorf("USER %q", user)
	}
	program := words(t, all["ENTRYPOINT"][0])
	if copied := "--from=build /out/goodput " + program[0]; !slices.Contains(all["COPY"], copied) {
		t.Errorf("ENTRYPOINT %s is not what %q copies", program, all["COPY"])
	}
	m := read(t)
	args := words(t, all["CMD"][0])
	for name, want := range map[string]string{"--config": m.flag(t, "config"), "--admin": m.flag(t, "admin")} {
		if i := slices.Index(args, name); i < 0 || args[i+1] != want {
			t.Errorf("%q does not have %s %s", args, name, want)
		}
	}
	help, err := exec.Command(rig.Program(t), "serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range append(args, m.sidecar.Args...) {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "--") && !strings.Contains(string(help), name+"=") {
			t.Errorf("goodput serve has no flag %s", name)
		}
	}
}

// The command of RUN builds a program that needs nothing at run time. It compiles
// everything anew, so that the short form only plans it.
func TestImageBuild(t *testing.T) {
	run := instructions(t)["RUN"][0]
	if !strings.Contains(run, " -o /out/goodput ") {
		t.Fatalf("RUN %s", run)
	}
	out := filepath.Join(t.TempDir(), "goodput")
	command := strings.Replace(run, "/out/goodput", out, 1)
	long := os.Getenv("E2E_LONG") != ""
	if !long {
		command = strings.Replace(command, "go build ", "go build -n ", 1)
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=") // the test's own is off
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, text)
	}
	if !long {
		return
	}
	f, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was read
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program is not static")
		}
	}
	if text, err := exec.Command(out, "version").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// systemd takes the unit, which starts goodput with flags that it has and waits for it
// longer than it may take to drain.
func TestUnit(t *testing.T) {
	analyze := "systemd-analyze"
	src, err := os.ReadFile(root + "/deploy/systemd/goodput.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := string(src)
	m := read(t)
	if !strings.Contains(unit, "ExecStart=/usr/bin/goodput serve --config "+m.flag(t, "config")+" ") {
		t.Error("the policy file is somewhere else than in the manifest")
	}
	var delay, timeout, stop int
	for line := range strings.Lines(unit) {
		fmt.Sscanf(line, "TimeoutStopSec=%ds", &stop) //nolint:errcheck // another line
		if _, flags, ok := strings.Cut(line, "--drain-delay "); ok {
			fmt.Sscanf(flags, "%ds --drain-timeout %ds", &delay, &timeout) //nolint:errcheck // zeros are an error below
		}
	}
	if delay == 0 || timeout == 0 || stop <= delay+timeout {
		t.Errorf("systemd waits %d s, goodput takes up to %d s + %d s", stop, delay, timeout)
	}
	// The directories that the page about logs writes to are there, and belong to its user.
	page, err := os.ReadFile(root + "/docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	for setting, dir := range map[string]string{"LogsDirectory=goodput\n": "/var/log/goodput/access.log", "StateDirectory=goodput\n": "/var/lib/goodput/trace"} {
		if !strings.Contains(unit, setting) || !strings.Contains(unit, dir) || !strings.Contains(string(page), dir) {
			t.Errorf("%q: the unit and docs/logs.md are not both about %s", setting, dir)
		}
	}
	// A unit is no unit without its program.
	unit = strings.ReplaceAll(unit, "=/usr/bin/goodput ", "="+rig.Program(t)+" ")
	file := rig.File(t, "goodput.service", unit)
	if _, err := rig.Find(analyze); err != nil {
		t.Skip(err) // containers have none
	}
	if out, err := exec.Command(analyze, "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%s verify %s: %v\n%s", analyze, path.Base(file), err, out)
	}
}
