package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// policyFile writes a policy file and returns its path.
func policyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "goodput.yaml")
	rewrite(t, path, text)
	return path
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serveFile starts the program with a policy file.
func serveFile(t *testing.T, path string, args ...string) *process {
	t.Helper()
	p := launch(t, `"msg":"serving"`, append([]string{
		"serve", "--config", path, "--admin", "127.0.0.1:0", "--log-format", "json",
	}, args...)...)
	line := p.said("serving")[0]
	p.url = "http://" + line["addr"].(string)
	p.admin = "http://" + line["admin"].(string)
	return p
}

// metric returns the value of a series as /metrics writes it.
func (p *process) metric(series string) string {
	p.Helper()
	_, body := p.get(p.admin + "/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return "absent"
}

func (p *process) reload() (int, string) {
	p.Helper()
	res, err := http.Post(p.admin+"/-/reload", "", nil)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.Fatal(err)
	}
	return res.StatusCode, string(body)
}

const twoClasses = `version: 1
listen: 127.0.0.1:0
upstream: %s
classes:
  - name: slow
    match: {path: /slow}
    limit: %d
    objective: 10s
    service: 1s
  - name: rest
    limit: 20
`

// A class has its own limiter and its own numbers, everywhere.
func TestServeFile(t *testing.T) {
	upstream, _ := backend(t, hello)
	path := policyFile(t, fmt.Sprintf(twoClasses, upstream, 2))
	p := serveFile(t, path)
	for range 3 {
		p.get(p.url + "/slow/x")
	}
	p.get(p.url + "/slower")
	for series, want := range map[string]string{
		`goodput_arrivals_total{limiter="slow"}`:                                                      "3",
		`goodput_arrivals_total{limiter="rest"}`:                                                      "1",
		`goodput_concurrency_limit{limiter="slow"}`:                                                   "2",
		`goodput_config_last_reload_successful`:                                                       "1",
		`goodput_listener_connections_limit{listener="` + strings.TrimPrefix(p.url, "http://") + `"}`: "65536",
	} {
		if got := p.metric(series); got != want {
			t.Errorf("%s is %s, want %s", series, got, want)
		}
	}
	if _, page := p.get(p.admin + "/"); !strings.Contains(page, path) || !strings.Contains(page, "slow") || !strings.Contains(page, "rest") {
		t.Errorf("the page does not say what is in force:\n%s", page)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d: %v", code, p.log)
	}
}

// A reload resizes in place: who runs goes on and counts, who waits gets the new slots. A
// file that is wrong changes nothing, and that is said everywhere where somebody looks.
func TestReloadFile(t *testing.T) {
	var running atomic.Int32
	finish := make(chan struct{})
	upstream, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/slow") {
			running.Add(1)
			<-finish
		}
	})
	path := policyFile(t, fmt.Sprintf(twoClasses, upstream, 2))
	p := serveFile(t, path)
	answers := make(chan int, 4)
	for range 4 {
		go func() {
			res, err := http.Get(p.url + "/slow")
			if err != nil {
				answers <- 0
				return
			}
			res.Body.Close()
			answers <- res.StatusCode
		}()
	}
	waits := func(n string) func() bool {
		return func() bool { return p.metric(`goodput_requests_waiting{limiter="slow"}`) == n }
	}
	p.eventually("two run and two wait", func() bool { return running.Load() == 2 && waits("2")() })

	rewrite(t, path, strings.Replace(fmt.Sprintf(twoClasses, upstream, 3), "objective", "objektive", 1))
	if code, body := p.reload(); code != http.StatusBadRequest || !strings.Contains(body, "objektive") || !strings.Contains(body, ":8:") {
		t.Errorf("%d %s", code, body)
	}
	if got := p.metric("goodput_config_last_reload_successful"); got != "0" {
		t.Errorf("last reload successful: %s", got)
	}
	if len(p.said("reload failed: the configuration until now stays in force")) != 1 {
		t.Error("the log does not say so")
	}
	for _, page := range []string{"/", "/api/v1/state"} {
		if _, body := p.get(p.admin + page); !strings.Contains(body, "objektive") {
			t.Errorf("%s does not say so:\n%s", page, body)
		}
	}
	if n := running.Load(); n != 2 || !waits("2")() {
		t.Errorf("a bad file changed something: %d run", n)
	}

	rewrite(t, path, fmt.Sprintf(twoClasses, upstream, 3))
	p.signal(syscall.SIGHUP)
	p.eventually("three run and one waits", func() bool { return running.Load() == 3 && waits("1")() })
	if got := p.metric("goodput_config_last_reload_successful"); got != "1" {
		t.Errorf("last reload successful: %s", got)
	}

	rewrite(t, path, strings.Replace(fmt.Sprintf(twoClasses, upstream, 3), "127.0.0.1:0", "127.0.0.1:1", 1))
	if code, body := p.reload(); code != http.StatusOK || !strings.Contains(body, "restart needed") {
		t.Errorf("%d %s", code, body)
	}
	if got := p.metric("goodput_config_restart_needed"); got != "1" {
		t.Errorf("restart needed: %s", got)
	}
	if _, body := p.get(p.admin + "/"); !strings.Contains(body, "restart needed") {
		t.Errorf("the page does not say so:\n%s", body)
	}
	close(finish)
	for range 4 {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("answered %d", code)
		}
	}
	p.eventually("nothing is left", func() bool {
		return p.metric(`goodput_concurrency_usage{limiter="slow"}`) == "0" && p.metric(`goodput_requests_total{limiter="slow",outcome="completed",reason=""}`) == "4"
	})
}

// eventually waits for something that must happen.
func (p *process) eventually(what string, ok func() bool) {
	p.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) { // wall clock: the process has its own
		if time.Now().After(end) {
			p.Fatalf("never came true: %s", what)
		}
	}
}

// What is no file is not waited for, and what is waited for keeps no signal waiting.
func TestReloadOfWhatIsNoFile(t *testing.T) {
	upstream, _ := backend(t, hello)
	path := policyFile(t, fmt.Sprintf(twoClasses, upstream, 2))
	p := serveFile(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, body := p.reload(); code != http.StatusBadRequest || !strings.Contains(body, "regular file") {
		t.Errorf("%d %s", code, body)
	}
	p.signal(syscall.SIGHUP)
	p.eventually("it is said", func() bool { return len(p.said("reload failed: the configuration until now stays in force")) == 2 })
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// One place says what the policy is.
func TestConfigExcludesPolicyFlags(t *testing.T) {
	path := policyFile(t, fmt.Sprintf(twoClasses, "http://127.0.0.1:1", 2))
	for _, tc := range []struct {
		env  string
		args []string
		want string
	}{
		{"", []string{"--limit", "60"}, "--limit"},
		{"", []string{"--upstream", "http://127.0.0.1:9", "--observe"}, "--upstream, --observe"},
		{"GOODPUT_OBJECTIVE=2s", nil, "GOODPUT_OBJECTIVE"},
	} {
		code, _, stderr := execute(t, []string{tc.env}, append([]string{"serve", "--config", path}, tc.args...)...)
		if code != exitUsage || !strings.Contains(stderr, tc.want) {
			t.Errorf("%v: exit %d: %s", tc, code, stderr)
		}
	}
	code, _, stderr := execute(t, nil, "serve", "--config", path+".not")
	if code != exitUsage || !strings.Contains(stderr, "no such file") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if bytes.Count([]byte(stderr), []byte("\n")) != 1 {
		t.Errorf("more than a sentence: %s", stderr)
	}
}

// What may be wrong is in the log of the process, as check says it.
func TestServeFileWarns(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serveFile(t, policyFile(t, fmt.Sprintf("version: 1\nlisten: 127.0.0.1:0\nupstream: %s\nlimit: 60\nobjective: 400ms\nservice: 300ms\n", upstream)))
	p.eventually("a warning", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.ContainsFunc(p.log, func(e map[string]any) bool {
			text, _ := e["msg"].(string)
			return e["level"] == "WARN" && e["config"] != nil && strings.Contains(text, "300ms")
		})
	})
}

// Without a file there is nothing to reload, and saying so ends nothing.
func TestReloadWithoutFile(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serve(t, upstream)
	if code, body := p.reload(); code != http.StatusConflict || !strings.Contains(body, "--config") {
		t.Errorf("%d %s", code, body)
	}
	p.signal(syscall.SIGHUP)
	p.eventually("it is said", func() bool {
		return len(p.said("SIGHUP: there is no policy file to read again; start with --config to have one")) == 1
	})
	if code, _ := p.get(p.url); code != http.StatusOK {
		t.Errorf("%d", code)
	}
}
