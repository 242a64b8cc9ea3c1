//go:build linux

package e2e

import (
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// runbooks are the runbooks by the name of their alert.
func runbooks(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../docs/runbooks/Goodput*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		all[strings.TrimSuffix(filepath.Base(f), ".md")] = string(text(t, f))
	}
	return all
}

var (
	quoted  = regexp.MustCompile("`[^`\n]+`|(?m)^    .*$") // code, in a line or of its own
	bold    = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	other   = regexp.MustCompile(`\bGoodput[A-Z]\w+`)
	flagged = regexp.MustCompile(`--[a-z][a-z-]+`)
	keyed   = regexp.MustCompile("^`([a-z_]+):(?: [a-z_]+)?`$")
)

// Each alert has its page and each page its alert; all have the same headings, and say the
// severity and the time of the rule. What they name exists.
func TestRunbooks(t *testing.T) {
	all := runbooks(t)
	titles := map[string]bool{}
	for _, p := range panels(t) {
		titles[p.Title] = true
	}
	program := rig.Program(t)
	flags, keys := printed(t, program, "serve", "--help"), printed(t, program, "schema", "--format", "text")
	index := string(text(t, "../docs/runbooks/README.md"))
	alerts := map[string]rule{}
	for _, r := range rules(t) {
		if r.Alert != "" {
			alerts[r.Alert] = r
		}
	}
	for name, r := range alerts {
		if all[name] == "" {
			t.Errorf("%s has no page", name)
		}
		if !strings.Contains(index, "| ["+name+"]("+name+".md) | "+r.Labels["severity"]+" | ") {
			t.Errorf("README.md does not list %s as %s", name, r.Labels["severity"])
		}
	}
	for name, page := range all {
		r, ok := alerts[name]
		if !ok {
			t.Errorf("%s.md is of no alert", name)
			continue
		}
		want := []string{name, "What it means", "Why it fires", "What to look at", "What to do", "What not to do", "When to ignore it"}
		var got []string
		for _, h := range heading.FindAllStringSubmatch(page, -1) {
			got = append(got, h[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the headings %q, want %q", name, got, want)
		}
		severity := strings.ToUpper(r.Labels["severity"][:1]) + r.Labels["severity"][1:]
		length := strings.Replace(strings.TrimSuffix(r.For, "m")+" minutes", "1 minutes", "a minute", 1)
		if strings.HasPrefix(r.For, "1") && len(r.For) > 2 {
			length = strings.TrimSuffix(r.For, "m") + " minutes"
		}
		if !strings.Contains(page, "\n"+severity+". ") && !strings.Contains(page, "\n"+severity+", ") || !strings.Contains(strings.ToLower(page), "for "+length) {
			t.Errorf("%s does not say that it is %s, or that it takes %s", name, r.Labels["severity"], length)
		}
		for _, b := range bold.FindAllStringSubmatch(page, -1) {
			if !titles[b[1]] {
				t.Errorf("%s: the dashboard has no panel %q", name, b[1])
			}
		}
		for _, o := range other.FindAllString(page, -1) {
			if _, ok := alerts[o]; !ok {
				t.Errorf("%s speaks of %s, which is no alert", name, o)
			}
		}
		for _, code := range quoted.FindAllString(page, -1) {
			for _, f := range flagged.FindAllString(code, -1) {
				if f != "--help" && f != "--format" && !strings.Contains(flags, f+"=") && !strings.Contains(flags, f+" ") {
					t.Errorf("%s: goodput serve has no %s", name, f)
				}
			}
			if k := keyed.FindStringSubmatch(code); k != nil && !regexp.MustCompile(`(?m)^[ #-]*`+k[1]+`:`).MatchString(keys) {
				t.Errorf("%s: a policy has no key %s", name, k[1])
			}
		}
	}
}

// printed is what goodput prints, and that it ends well.
func printed(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("goodput %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Every command of the pages works, on a goodput that has a class of their name.
func TestRunbookCommands(t *testing.T) {
	policy := "version: 1\nlisten: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nclasses: [{name: web}]\n"
	file := rig.File(t, "goodput.yaml", policy)
	p := rig.ProtectBy(t, policy)
	ran := map[string]bool{}
	all := runbooks(t)
	for _, more := range []string{"oncall/README", "refusals"} { // their goodput commands are tested with the program
		all[more] = strings.ReplaceAll(string(text(t, "../docs/"+more+".md")), "goodput ", "")
	}
	for name, page := range all {
		for _, code := range quoted.FindAllString(page, -1) {
			code = strings.Trim(code, "` ")
			words := strings.Fields(strings.ReplaceAll(code, "'", ""))
			if ran[code] || len(words) < 2 {
				continue
			}
			switch words[0] {
			case "curl":
				runCurl(t, p, name, words[1:])
			case "goodput":
				cmd := exec.Command(rig.Program(t), words[1:]...)
				cmd.Dir = filepath.Dir(file)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %s: %v\n%s", name, code, err, out)
				}
			default:
				continue
			}
			ran[code] = true
		}
	}
	// The line that on-call is to read first is there, and looks as the page has it.
	res, err := http.Get("http://" + p.Admin + "/api/v1/explain?limiter=web")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	said, err := io.ReadAll(res.Body)
	first := regexp.MustCompile(`(?m)^ *rate +`)
	if want := first.FindString(all["oncall/README"]); err != nil || want == "" || first.FindString(string(said)) != want {
		t.Errorf("%v; no line that begins with %q in\n%s", err, want, said)
	}
	if len(ran) < 12 {
		t.Errorf("%d commands were found: the search is not to be trusted", len(ran))
	}
}

// runCurl does what curl would: -s, -X METHOD and an address on the default admin listener.
func runCurl(t *testing.T, p *rig.Proxy, page string, args []string) {
	t.Helper()
	method, url := http.MethodGet, ""
	for i, a := range args {
		switch {
		case a == "-X":
			method = args[i+1]
		case strings.HasPrefix(strings.TrimPrefix(a, "http://"), "127.0.0.1:8431/"):
			url = strings.Replace("http://"+strings.TrimPrefix(a, "http://"), "127.0.0.1:8431", p.Admin, 1)
		}
	}
	req, err := http.NewRequest(method, url, nil)
	if err != nil || url == "" {
		t.Errorf("%s: curl %q: %v", page, args, err)
		return
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("%s: %v", page, err)
		return
	}
	res.Body.Close() //nolint:errcheck // its status is what counts
	if res.StatusCode != http.StatusOK {
		t.Errorf("%s: curl %s: %s", page, strings.Join(args, " "), res.Status)
	}
}

// Where tenants have no rows the runbook finds who asks for most in the access log: its command
// says so of a log that goodput has written.
func TestTenantsInTheAccessLog(t *testing.T) {
	t.Parallel()
	rig.Need(t, "jq")
	log := filepath.Join(t.TempDir(), "access.log")
	p := rig.ProtectBy(t, "version: 1\nlisten: 127.0.0.1:0\nupstream: http://127.0.0.1:1\ntenant: address\n", "--access-log", log)
	for from, n := range map[string]int{"127.0.0.2": 3, "127.0.0.3": 1} {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
		for range n {
			res, err := client.Get(p.URL())
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close() //nolint:errcheck // nothing is behind it, and that it arrived is what counts
		}
	}
	ran := 0
	for name, page := range runbooks(t) {
		for _, code := range quoted.FindAllString(page, -1) {
			if code = strings.Trim(code, "` "); !strings.HasPrefix(code, "jq ") {
				continue
			}
			ran++
			var said string
			for range 50 { // wall clock: the log is written five times a second
				cmd := exec.Command("sh", "-c", code)
				cmd.Dir = filepath.Dir(log)
				out, err := cmd.CombinedOutput()
				if said = strings.Join(strings.Fields(string(out)), " "); err == nil && said == "3 127.0.0.2 1 127.0.0.3" {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if want := "3 127.0.0.2 1 127.0.0.3"; said != want {
				t.Errorf("%s: %s says %q, want %q", name, code, said, want)
			}
		}
	}
	if ran != 1 {
		t.Errorf("%d commands were found, want 1", ran)
	}
}
