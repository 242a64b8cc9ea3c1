//go:build linux

package rig

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Prometheus is a running one that looks once a second.
type Prometheus struct {
	*Process
	Addr string
}

// prometheusConfig has a job for each target.
const prometheusConfig = `global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [%q]
scrape_configs:
`

// Look starts Prometheus with rules; targets are addresses by job.
func Look(t testing.TB, rules string, targets map[string]string, args ...string) *Prometheus {
	t.Helper()
	program := Need(t, "prometheus")
	rules, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	fmt.Fprintf(&config, prometheusConfig, rules)
	for job, addr := range targets {
		fmt.Fprintf(&config, "  - job_name: %s\n    static_configs: [{targets: [%q]}]\n", job, addr)
	}
	p := &Prometheus{Addr: FreeAddr(t)}
	p.Process = run(t, "prometheus", exec.Command(program, append([]string{
		"--config.file=" + File(t, "prometheus.yml", config.String()),
		"--storage.tsdb.path=" + t.TempDir(), "--web.listen-address=" + p.Addr, "--log.level=warn",
	}, args...)...), syscall.SIGKILL)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		res, err := client.Get("http://" + p.Addr + "/-/ready")
		if err == nil {
			res.Body.Close() //nolint:errcheck // it answered, that is all
			if res.StatusCode == http.StatusOK {
				return p
			}
		}
		if !p.Running() || time.Now().After(deadline) {
			t.Fatalf("prometheus is not ready: %v", err)
		}
	}
}

// Get asks for what is below /api/v1/ and decodes the data of the answer.
func (p *Prometheus) Get(t testing.TB, path string, into any) {
	t.Helper()
	res, err := client.Get("http://" + p.Addr + "/api/v1/" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	answer := struct {
		Error string
		Data  any
	}{Data: into}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("prometheus, %s: %s: %s, %v", path, res.Status, answer.Error, err)
	}
}

// A Point is a value at a time, in seconds since 1970.
type Point struct{ At, Value float64 }

// UnmarshalJSON reads [time, "value"].
func (s *Point) UnmarshalJSON(b []byte) error {
	var value string
	if err := json.Unmarshal(b, &[]any{&s.At, &value}); err != nil {
		return err
	}
	var err error
	s.Value, err = strconv.ParseFloat(value, 64)
	return err
}

// A Row is a series that a query has found: of one value, or of several for a range.
type Row struct {
	Metric map[string]string
	Value  Point
	Values []Point
}

// Query asks for an expression now.
func (p *Prometheus) Query(t testing.TB, expr string) []Row {
	t.Helper()
	var data struct{ Result []Row }
	p.Get(t, "query?query="+url.QueryEscape(expr), &data)
	return data.Result
}

// Await waits until an expression has a value. A new Prometheus takes 5 s to know its targets.
func (p *Prometheus) Await(t testing.TB, expr string, within time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(within); len(p.Query(t, expr)) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is still not so after %v", expr, within)
		}
	}
}

// One is the only sample of a query.
func (p *Prometheus) One(t testing.TB, expr string) Point {
	t.Helper()
	rows := p.Query(t, expr)
	if len(rows) != 1 {
		t.Fatalf("%s has %d values, want 1", expr, len(rows))
	}
	return rows[0].Value
}

// Live starts goodput demo --web with this load and returns the address of its page.
func Live(t testing.TB, load string) *Proxy {
	t.Helper()
	p := &Proxy{Process: run(t, "goodput demo", exec.Command(Program(t), "demo", "--web", "--load", load, "--listen", "127.0.0.1:0"), syscall.SIGKILL)}
	err := p.line(10*time.Second, func(l string) bool {
		page, ok := strings.CutPrefix(l, "open http://")
		if ok {
			p.Admin = strings.Trim(page, "/")
		}
		return ok
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
