//go:build linux

package rig

import (
	"encoding/csv"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Balancer is a running HAProxy in front of several goodputs, which it asks on their
// admin listeners whether they are ready.
type Balancer struct {
	*Process
	Addr  string // HTTP/1.1 on both sides
	H2    string // HTTP/2 without TLS on both sides, by prior knowledge
	stats string
}

// The health check of haproxyConfig: an instance that is not ready is out after Fall
// checks, and one that is back has requests again after as many.
const (
	CheckInterval = 200 * time.Millisecond
	Fall          = 2
	// Notice is how long HAProxy may take to know: the first check begins up to an
	// interval after the change.
	Notice = (Fall + 1) * CheckInterval
)

// haproxyConfig is what an operator writes: retries and redispatch are for connections
// that could not be made, since a request that was sent may have been executed.
const haproxyConfig = `global
	maxconn 2000
defaults
	mode http
	timeout connect 2s
	timeout client 30s
	timeout server 30s
	timeout check 1s
	retries 3
	option redispatch
	option forwardfor
	default-server inter %[1]dms fall %[2]d rise %[2]d
frontend one
	bind %[3]s
	default_backend one
frontend two
	bind %[4]s proto h2
	default_backend two
frontend stats
	bind %[5]s
	stats enable
	stats uri /
backend one
	option httpchk GET /readyz
	http-check expect status 200
%[6]sbackend two
%[7]s`

// Balance starts HAProxy in front of instances.
func Balance(t testing.TB, instances ...*Proxy) *Balancer {
	t.Helper()
	haproxy := Need(t, "haproxy")
	b := &Balancer{Addr: FreeAddr(t), H2: FreeAddr(t), stats: FreeAddr(t)}
	var one, two strings.Builder
	for i, p := range instances {
		_, port, err := net.SplitHostPort(p.Admin)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&one, "\tserver s%d %s check port %s\n", i, p.Addr, port)
		fmt.Fprintf(&two, "\tserver s%d %s proto h2 track one/s%d\n", i, p.Addr, i)
	}
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	text := fmt.Sprintf(haproxyConfig, CheckInterval.Milliseconds(), Fall, b.Addr, b.H2, b.stats, one.String(), two.String())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Process = run(t, "haproxy", exec.Command(haproxy, "-db", "-f", path), syscall.SIGKILL)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		res, err := client.Get("http://" + b.stats + "/;csv")
		if err == nil {
			res.Body.Close() //nolint:errcheck // it answered, that is all
			return b
		}
		if !b.Running() || time.Now().After(deadline) {
			t.Fatalf("haproxy is not up: %v", err)
		}
	}
}

// Row is what HAProxy counts of a backend or of a server in it, by its own names:
// econ, eresp, wretr, wredis, hrsp_5xx and others.
func (b *Balancer) Row(t testing.TB, backend, server string) map[string]string {
	t.Helper()
	res, err := client.Get("http://" + b.stats + "/;csv")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	rows, err := csv.NewReader(res.Body).ReadAll()
	if err != nil || res.StatusCode != http.StatusOK || len(rows) == 0 {
		t.Fatalf("the statistics of haproxy: %s, %v", res.Status, err)
	}
	for _, row := range rows[1:] {
		if row[0] != backend || row[1] != server {
			continue
		}
		named := map[string]string{}
		for i, name := range rows[0] {
			named[name] = row[i]
		}
		return named
	}
	t.Fatalf("haproxy has no %s/%s", backend, server)
	return nil
}

// Count is one number of Row.
func (b *Balancer) Count(t testing.TB, backend, server, name string) int {
	t.Helper()
	text := b.Row(t, backend, server)[name]
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("haproxy: %s of %s/%s is %q", name, backend, server, text)
	}
	return n
}

// Await waits until HAProxy takes the instance for up or down.
func (b *Balancer) Await(t testing.TB, instance int, status string, within time.Duration) {
	t.Helper()
	name := "s" + strconv.Itoa(instance)
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		now := b.Row(t, "one", name)["status"]
		if now == status {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v haproxy takes %s for %q, not for %s", within, name, now, status)
		}
	}
}
