package main

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// Both addresses answer, only one of them looks at the deadline, and a signal ends it without a
// failure.
func TestDemoServe(t *testing.T) {
	p := launch(t, "Ctrl-C", "demo", "--serve", "--listen", "127.0.0.1:0", "--limit", "7")
	p.mu.Lock()
	var at []string
	for _, line := range p.log[:2] {
		words := strings.Fields(line["msg"].(string))
		at = append(at, words[len(words)-1])
	}
	p.mu.Unlock()
	for i, limited := range []bool{true, false} {
		req, err := http.NewRequest("GET", at[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Expect-Within", "0.000001") // nobody can serve that
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if refused := res.Header.Get("Goodput-Rejected") != ""; refused != limited {
			t.Errorf("%s: %s %v, want through goodput %v", at[i], res.Status, res.Header, limited)
		}
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit %d after SIGTERM", code)
	}
}

func TestDemoServeNeedsItsPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	code, _, stderr := execute(t, nil, "demo", "--serve", "--listen", taken.Addr().String())
	if code != exitRun || !strings.Contains(stderr, "cannot listen on "+taken.Addr().String()) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
