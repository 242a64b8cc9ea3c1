package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/goodput/goodput/cmd/goodput/internal/admin"
)

// ask sends one request, with a header unless it is "". An answer that never
// comes is a failure after patience.
func (p *process) ask(path, header, value string) (status int, answer http.Header, body string) {
	p.Helper()
	req, err := http.NewRequest("GET", p.url+path, nil)
	if err != nil {
		p.Fatal(err)
	}
	if header != "" {
		req.Header.Set(header, value)
	}
	res, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		p.Error(err)
		return 0, nil, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.Error(err)
	}
	return res.StatusCode, res.Header, string(text)
}

// Each flag of serve that changes what a client or an operator sees, seen from
// outside. Without its flag each row fails: the request to /slow never ends, the
// third one waits, the header or the number is another.
func TestServeFlags(t *testing.T) {
	upstream, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		io.WriteString(w, r.Header.Get("X-Forwarded-For"))
	})
	expires := func(header, value string) func(*testing.T, *process) {
		return func(t *testing.T, p *process) {
			if status, _, body := p.ask("/slow", header, value); status != http.StatusGatewayTimeout {
				t.Errorf("%d %s", status, body)
			}
		}
	}
	comesFrom := func(want string) func(*testing.T, *process) {
		return func(t *testing.T, p *process) {
			if _, _, got := p.ask("/", "X-Forwarded-For", "6.6.6.6"); got != want {
				t.Errorf("the service was told %q, want %q", got, want)
			}
		}
	}
	for _, c := range []struct {
		flags string
		check func(*testing.T, *process)
	}{
		{"--deadline 100ms", expires("", "")},
		{"--objective 100ms --deadline-cap 100ms", expires("X-Envoy-Expected-Rq-Timeout-Ms", "3600000")},
		{"--objective 100ms --deadline-cap 100ms", expires("", "")},
		{"--max-queue-bytes 1MiB", func(t *testing.T, p *process) {
			if got := p.state().WaitingBytesLimit; got != 1<<20 {
				t.Errorf("%d bytes may wait", got)
			}
		}},
		{"--max-waiting 1 --limit 1 --objective 1m --service 1s", func(t *testing.T, p *process) {
			for range 2 {
				go http.Get(p.url + "/slow") // it ends with the process
			}
			p.until("one runs, one waits", func(l admin.LimiterState) bool { return l.Running == 1 && l.Waiting == 1 })
			if status, answer, _ := p.ask("/", "", ""); status != http.StatusServiceUnavailable || answer.Get("Goodput-Rejected") != "queue_full" {
				t.Errorf("the third was answered %d %v", status, answer)
			}
		}},
		{"--trusted-proxies 127.0.0.1/32", comesFrom("6.6.6.6, 127.0.0.1")},
		{"--trusted-proxies 10.0.0.0/8", comesFrom("127.0.0.1")},
		{"", comesFrom("127.0.0.1")},
	} {
		t.Run(c.flags, func(t *testing.T) {
			c.check(t, serve(t, upstream, append([]string{"--limit", "3"}, strings.Fields(c.flags)...)...))
		})
	}
}

// The flags of the log. An objective that is out of reach is a warning, so a
// quiet log has one line all the same.
func TestServeLogFlags(t *testing.T) {
	for _, c := range []struct {
		flags, first string // first: what is waited for
		silent       bool   // below warnings
		text         bool
	}{
		{"--log-level warn --log-format json", `"msg":"derived depth"`, true, false},
		{"--log-level warn --log-format text", `msg="derived depth"`, true, true},
		{"--log-format text", "msg=serving", false, true},
		{"", `"msg":"serving"`, false, false}, // auto, and this is no terminal
	} {
		p := launch(t, c.first, append(strings.Fields("serve --upstream http://127.0.0.1:1 --limit 1 --objective 100ms --service 90ms "+
			"--listen 127.0.0.1:0 --admin off"), strings.Fields(c.flags)...)...)
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != exitOK {
			t.Errorf("%s: exit code %d", c.flags, code)
		}
		for _, e := range p.log {
			line := e["msg"].(string)
			info := e["level"] == "INFO" || strings.Contains(line, "level=INFO")
			if strings.HasPrefix(line, "time=") != c.text || info && c.silent {
				t.Errorf("%s: %v", c.flags, e)
			}
		}
		if (len(p.log) == 1) != c.silent {
			t.Errorf("%s: %d lines", c.flags, len(p.log))
		}
	}
}

// C092: during --drain-delay the balancer has not heard yet. Who comes over a
// connection that is open, and who opens one, is served and told to move on.
func TestDelayServesWhoStillComes_C092(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serve(t, upstream, "--limit", "3", "--drain-delay", "1m") // a second signal ends the test
	kept := &http.Client{Transport: new(http.Transport), Timeout: patience}
	fetch := func(c *http.Client) *http.Response {
		res, err := c.Get(p.url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := fetch(kept); res.StatusCode != 200 || res.Close {
		t.Fatalf("%s, closed: %v", res.Status, res.Close)
	}
	p.signal(syscall.SIGTERM)
	for code := 200; code != http.StatusServiceUnavailable; {
		code, _ = p.get(p.admin + "/readyz")
	}
	for name, c := range map[string]*http.Client{
		"a connection that was open": kept,
		"a new connection":           {Transport: new(http.Transport), Timeout: patience},
	} {
		if res := fetch(c); res.StatusCode != 200 || !res.Close {
			t.Errorf("%s: %s, told to move on: %v", name, res.Status, res.Close)
		}
	}
	l := p.until("all were served", func(l admin.LimiterState) bool { return count(l, "completed", "") == 3 })
	if l.Draining {
		t.Errorf("the limiter refuses already: %+v", l)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitRun {
		t.Errorf("exit code %d", code)
	}
}
