//go:build linux

package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/openloop"
	"github.com/goodput/goodput/e2e/internal/rig"
)

// python3 -m http.server answers in HTTP/1.0, closes after each answer, and answers a POST
// without reading it.
func TestPythonServer_C098(t *testing.T) {
	dir := t.TempDir()
	content := strings.Repeat("goodput\n", 1<<10)
	if err := os.WriteFile(filepath.Join(dir, "file.txt"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s := rig.Python(t, "", dir, "-m", "http.server", "--bind", "127.0.0.1", "0")
	p := rig.Protect(t, s.URL(), "--limit", "4")
	for _, c := range []struct {
		method, path string
		body         int
		status       int
		want         string
	}{
		{"GET", "/file.txt", 0, 200, content},
		{"HEAD", "/file.txt", 0, 200, ""},
		{"GET", "/", 0, 200, "file.txt"},
		{"GET", "/nowhere", 0, 404, "Nothing matches"},
		{"POST", "/file.txt", 10, 501, "Unsupported method"},
		{"PUT", "/file.txt", 4 << 20, 501, "Unsupported method"},
	} {
		for _, http2 := range []bool{false, true} {
			tr := replayless(http2)
			defer tr.CloseIdleConnections()
			req, err := http.NewRequest(c.method, p.URL()+c.path, strings.NewReader(strings.Repeat("x", c.body)))
			if err != nil {
				t.Fatal(err)
			}
			res, err := tr.RoundTrip(req)
			if err != nil {
				t.Errorf("%s %s, HTTP/2 %v: %v", c.method, c.path, http2, err)
				continue
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close() //nolint:errcheck // it was read
			if res.StatusCode != c.status || err != nil || !strings.Contains(string(body), c.want) {
				t.Errorf("%s %s, HTTP/2 %v: %s, %v, %d bytes", c.method, c.path, http2, res.Status, err, len(body))
			}
		}
	}
	p.Rest(t, 5*time.Second)
	if failed := p.Metrics(t).Sum("goodput_upstream_failures_total"); failed > 0 {
		t.Errorf("%v times the service did not answer", failed)
	}
}

// A service with one thread and a limit of 1, at three times what it can: it never has a
// second connection that waits for the first, and everybody else is told.
func TestPythonWithOneThread(t *testing.T) {
	for _, version := range []string{"1.0", "1.1"} {
		t.Run(version, func(t *testing.T) {
			s := rig.Python(t, "", ".", "testdata/onethread.py", version)
			p := rig.Protect(t, s.URL(), "--limit", "1", "--objective", "100ms")
			before := p.Limiter(t)
			const length = time.Second
			r := openloop.Run(context.Background(), openloop.Plan{
				URL: p.URL() + "/", Rate: 3 / 0.006, Duration: length, Deadline: deadline, Seed: 9, // 5 ms of sleep and Python
			})
			l := p.Rest(t, 5*time.Second)
			agree(t, r, before, l)
			if failed := p.Metrics(t).Sum("goodput_upstream_failures_total"); failed > 0 {
				t.Errorf("%v failures: %v", failed, l)
			}
			ok := r.Count(openloop.OK)
			if ok < 20 || r.Count(openloop.Refused) == 0 {
				t.Errorf("%v", r)
			}
			figure(t, "one thread, HTTP/"+version, "%s of %d requests at 3x: %d served, p99 %s", length, len(r.Answers), ok,
				millis(r.Quantile(0.99, openloop.Latency, openloop.OK)))
		})
	}
}
