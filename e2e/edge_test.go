//go:build linux

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/rig"
)

// nginx in front of goodput: the service hears who asks, from whom and by which id, as
// nginx says, and wrk with ten times as many connections as slots gets the service's
// answers or goodput's refusals through it, nothing of nginx's own.
func TestNginxInFront_C078(t *testing.T) {
	s := &counted{work: 5 * time.Millisecond}
	mux := http.NewServeMux()
	mux.Handle("/work", s)
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Host", r.Host)
		json.NewEncoder(w).Encode(r.Header) //nolint:errcheck // whoever asked has left
	})
	const slots, connections = 10, 100
	p := rig.Protect(t, "http://"+rig.Handle(t, mux), "--limit", strconv.Itoa(slots), "--objective", "25ms", "--trusted-proxies", "127.0.0.0/8")
	n := rig.StartEdge(t, p)

	req, err := http.NewRequest(http.MethodGet, n.URL()+"/headers", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "shop.example.com"
	req.Header.Set("X-Forwarded-For", "192.0.2.1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var got http.Header
	err = json.NewDecoder(res.Body).Decode(&got)
	res.Body.Close() //nolint:errcheck // it was read
	if err != nil || got.Get("Host") != "shop.example.com" || len(got.Get("X-Request-Id")) != 32 || got.Get("X-Forwarded-Proto") != "http" ||
		got.Get("X-Forwarded-For") != "192.0.2.1, 127.0.0.1, 127.0.0.1" {
		t.Errorf("the service hears %v, %v", got, err)
	}

	before := p.Limiter(t)
	w := runWrk(t, n.URL()+"/work", connections, time.Second)
	l := p.Rest(t, 5*time.Second)
	if w.foreign > 0 || w.broken > 0 || w.ok == 0 || w.refused == 0 {
		t.Errorf("wrk got %+v", w)
	}
	missing := int64(l.Counts.Arrivals-before.Counts.Arrivals) - int64(w.ok+w.refused)
	if missing < 0 || missing > connections {
		t.Errorf("goodput counted %d arrivals, wrk %d answers and %d connections", l.Counts.Arrivals, w.ok+w.refused, connections)
	}
	figure(t, "wrk through nginx", "%.0f/s served, %d refused, %d of nginx", w.perSecond(), w.refused, w.foreign)
}

// A body that is larger than the policy allows is 413 at once, with and without a length,
// and before curl has sent any of it if it asks first.
func TestBodyTooLarge_C098(t *testing.T) {
	s := &counted{}
	p := rig.ProtectBy(t, `version: 1
listen: "127.0.0.1:0"
upstream: http://`+rig.Handle(t, s)+`
limit: 4
max_body: 64KiB
`)
	file := rig.File(t, "large", strings.Repeat("x", 1<<20))
	const sent = `%{http_version} %{http_code} `
	for name, c := range map[string]struct {
		args []string
		want string // version, status, and what of the body was sent if that is certain
	}{
		"length":              {[]string{"-H", "Expect:", "--data-binary", "@" + file}, "1.1 413"},
		"expect":              {[]string{"-H", "Expect: 100-continue", "--data-binary", "@" + file}, "1.1 413 0"},
		"chunked":             {[]string{"-H", "Expect:", "-H", "Transfer-Encoding: chunked", "--data-binary", "@" + file}, "1.1 413"},
		"small enough":        {[]string{"--data-binary", "@" + rig.File(t, "small", strings.Repeat("x", 64<<10))}, "1.1 200 65536"},
		"small enough, HTTP2": {[]string{"--http2-prior-knowledge", "--data-binary", "x"}, "2 200 1"},
	} {
		out := curl(t, append(c.args, "-o", "/dev/null", "-w", sent+"%{size_upload}", p.URL()+"/")...)
		if !strings.HasPrefix(out, c.want) {
			t.Errorf("%s: curl says %q, want %q", name, out, c.want)
		}
	}
	if res, text := upload(t, p.URL(), 1<<20); res.StatusCode != http.StatusRequestEntityTooLarge || res.Header.Get("Goodput-Rejected") == "" {
		t.Errorf("HTTP/2: %s %v %s", res.Status, res.Header, text)
	}
	if l := p.Rest(t, 5*time.Second); s.served.Load() != 2 {
		t.Errorf("the service executed %d requests: %v", s.served.Load(), l)
	}
}

// A service that answers 413 without reading, and closes: its answer arrives, over both
// versions, and is neither an overload nor a failure of it.
func TestServiceAnswersEarly_C098(t *testing.T) {
	early := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		io.WriteString(w, "too large for the service\n") //nolint:errcheck // whoever asked has left
	})
	p := rig.Protect(t, "http://"+rig.Handle(t, early), "--limit", "4")
	file := rig.File(t, "large", strings.Repeat("x", 4<<20))
	for range 5 {
		if out := curl(t, "-H", "Expect:", "--data-binary", "@"+file, "-w", "%{http_code}", p.URL()+"/"); out != "too large for the service\n413" {
			t.Errorf("curl says %q", out)
		}
		if res, text := upload(t, p.URL(), 4<<20); res.StatusCode != http.StatusRequestEntityTooLarge || text != "too large for the service\n" {
			t.Errorf("HTTP/2: %s %q", res.Status, text)
		}
	}
	l := p.Rest(t, 5*time.Second)
	if failed := p.Metrics(t).Sum("goodput_upstream_failures_total"); failed > 0 || l.Ended("rejected") > 0 || l.Ended("failed") > 0 {
		t.Errorf("%v failures of the service; %v", failed, l)
	}
}

// upload sends a body of so many bytes over HTTP/2. It is there because Debian 12's curl 7.88 takes an
// answer over HTTP/2 that comes before the end of its body for an error, whatever the server.
func upload(t *testing.T, url string, length int) (*http.Response, string) {
	t.Helper()
	tr := replayless(true)
	defer tr.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(strings.Repeat("x", length)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res, string(text)
}
