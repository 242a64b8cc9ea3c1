package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/goodput/goodput/cmd/goodput/internal/admin"
)

// live starts demo --web on a free port.
func live(t *testing.T, args ...string) *process {
	t.Helper()
	p := launch(t, "open http://", append([]string{"demo", "--web", "--listen", "127.0.0.1:0"}, args...)...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.admin = strings.TrimSuffix(strings.TrimPrefix(p.log[0]["msg"].(string), "open "), "/")
	return p
}

func (p *process) post(path, body string, header ...string) (int, string) {
	p.Helper()
	req, err := http.NewRequest("POST", p.admin+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

// The page, the numbers and the controls are there; then a signal ends it, with a viewer that
// watches, and that is no failure.
func TestDemoWeb(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := live(t, "--load", "2", "--limit", "7")
		for path, want := range map[string]string{
			"/": "fixed(7)", "/readyz": "ready", "/metrics": `goodput_concurrency_limit{limiter="default"} 7`,
			"/api/v1/state": `"limit": 7`, "/api/v1/demo": `{"load":2,"protect":false}`,
		} {
			if code, text := p.get(p.admin + path); code != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("%s: %d, no %s in\n%s", path, code, want, text)
			}
		}
		for _, tc := range []struct {
			body string
			from string // the page that asks
			code int
			want string
		}{
			{`{"load":5,"protect":true}`, p.admin, http.StatusOK, `{"load":5,"protect":true}`},
			{`{"load":11}`, p.admin, http.StatusBadRequest, "load 11 is out of range: 0 to 10 times the capacity"},
			{`{"load":0}`, "http://evil.example", http.StatusForbidden, "cross-origin"},
		} {
			if code, text := p.post("/api/v1/demo", tc.body, "Origin", tc.from); code != tc.code || !strings.Contains(text, tc.want) {
				t.Errorf("%s from %s: %d %s", tc.body, tc.from, code, text)
			}
		}
		p.until("5x is refused", func(l admin.LimiterState) bool { return count(l, "rejected", "queue_full") > 0 })

		viewer, err := http.Get(p.admin + "/api/v1/events")
		if err != nil {
			t.Fatal(err)
		}
		defer viewer.Body.Close()
		if _, err := viewer.Body.Read(make([]byte, 1)); err != nil {
			t.Errorf("the events: %v", err)
		}
		p.signal(sig)
		if code := p.exit(); code != exitOK {
			t.Errorf("%v: exit code %d: %v", sig, code, p.log)
		}
	}
}

// A port that is taken is no mistake of the command line.
func TestDemoWebPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	args := []string{"demo", "--web", "--listen", l.Addr().String()}
	code, _, stderr := execute(t, nil, args...)
	oneSentence(t, args, stderr)
	if code != exitRun || !strings.Contains(stderr, "--listen: cannot listen on "+l.Addr().String()) || !strings.Contains(stderr, "address already in use") {
		t.Errorf("%d %s", code, stderr)
	}
}

// The flags of the terminal and those of the page, each with what it is not for. What the
// environment says is about servers too, and is in nobody's way.
func TestDemoWebUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--web", "--duration", "5s"}, []string{"--duration and --web"}},
		{[]string{"--web", "--format", "json"}, []string{"--format and --web"}},
		{[]string{"--listen", "127.0.0.1:0"}, []string{"--listen is where the page of --web is"}},
		{[]string{"--web", "--listen", "off"}, []string{"--listen off"}},
		{[]string{"--web", "--listen", "here"}, []string{"--listen", `"here"`}},
		{[]string{"--web", "--load", "10.5"}, []string{"--load 10.5", "0 to 10"}},
		{[]string{"--web", "--load", "-1"}, []string{"--load -1", "0 to 10"}},
		{[]string{"--web", "--load", "NaN"}, []string{"--load NaN", "0 to 10"}},
		{[]string{"--web", "--serve"}, []string{"--web and --serve"}},
		{[]string{"--serve", "--load", "3"}, []string{"--load and --serve"}},
		{[]string{"--serve", "--duration", "5s"}, []string{"--duration and --serve"}},
		{[]string{"--serve", "--format", "json"}, []string{"--format and --serve"}},
		{[]string{"--serve", "--listen", "off"}, []string{"--listen off", "the service"}},
		{[]string{"--web", "--limit", "0"}, []string{"--limit", `"0"`}},
	} {
		args := append([]string{"demo"}, c.args...)
		code, stdout, stderr := execute(t, []string{"GOODPUT_FORMAT=json", "GOODPUT_DURATION=7s"}, args...)
		oneSentence(t, args, stderr)
		if code != exitUsage || stdout != "" {
			t.Errorf("%q: exit code %d, stdout %q", args, code, stdout)
		}
		for _, word := range c.want {
			if !strings.Contains(stderr, word) {
				t.Errorf("%q: %q does not say %s", args, stderr, word)
			}
		}
	}
	for _, want := range []string{"in one minute", "Move the load to 3", "(127.0.0.1:8432)", "GOODPUT_DEMO_LISTEN"} {
		if code, stdout, _ := execute(t, nil, "demo", "--help"); code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("--help: %d, no %q in\n%s", code, want, stdout)
		}
	}
}

// A browser needs an address that is one, wherever the page is served.
func TestPageURL(t *testing.T) {
	for on, want := range map[string]string{
		"127.0.0.1:8432": "http://127.0.0.1:8432/", "0.0.0.0:1": "http://127.0.0.1:1/", "[::]:2": "http://127.0.0.1:2/",
		"[::1]:3": "http://[::1]:3/", "10.0.0.7:4": "http://10.0.0.7:4/",
	} {
		a, err := net.ResolveTCPAddr("tcp", on)
		if err != nil {
			t.Fatal(err)
		}
		if got := pageURL(a); got != want {
			t.Errorf("%s: %s, want %s", on, got, want)
		}
	}
}
