package soak

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func contextOf(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// offered is the policy file as it is, and whether it is one of the broken ones.
func (s *stage) offered(t *testing.T) (sum string, broken bool) {
	t.Helper()
	data, err := os.ReadFile(s.policy)
	if err != nil {
		t.Error(err)
	}
	for _, end := range brokenPolicies {
		broken = broken || strings.HasSuffix(string(data), end)
	}
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:]), broken
}

// A policy counts as in force, and a broken one as refused, only when the state says so.
func TestAReloadIsChecked(t *testing.T) {
	for _, c := range []struct {
		name         string
		take         func(policy map[string]string, sum string, broken bool)
		good, broken Minute
	}{
		{"as it must be", func(p map[string]string, sum string, broken bool) {
			if p["reload_failed"] = "line 9"; !broken {
				p["sha256"], p["reload_failed"] = sum, ""
			}
		}, Minute{Reloads: 1}, Minute{Refused: 1}},
		{"nothing is taken", func(map[string]string, string, bool) {}, Minute{Missed: 1}, Minute{Missed: 1}},
		{"everything is taken", func(p map[string]string, sum string, broken bool) {
			p["sha256"], p["reload_failed"] = sum, strings.Repeat("line 9", count(broken))
		}, Minute{Reloads: 1}, Minute{Missed: 1}},
		{"nobody says that it failed", func(p map[string]string, sum string, broken bool) {
			if !broken {
				p["sha256"] = sum
			}
		}, Minute{Reloads: 1}, Minute{Missed: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, a := played(t)
			a.reload = func() {
				sum, broken := s.offered(t)
				c.take(a.policy, sum, broken)
			}
			if err := s.do(context.Background(), post); err != nil || s.r.Minutes[0] != c.good || s.variant == 0 {
				t.Errorf("%s: %+v, variant %d, %v", c.name, s.r.Minutes[0], s.variant, err)
			}
			s.r.Minutes[0] = Minute{}
			if err := s.do(context.Background(), breakPost); err != nil || s.r.Minutes[0] != c.broken {
				t.Errorf("%s: of a broken one %+v, %v", c.name, s.r.Minutes[0], err)
			}
			if _, broken := s.offered(t); broken {
				t.Errorf("%s: the file is still broken", c.name)
			}
		})
	}
}

// By SIGHUP, which is sent to this process here, the access log is rotated and read to its end.
func TestAHangupRotates(t *testing.T) {
	s, a := played(t)
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	defer signal.Stop(hups)
	a.looked = func(int) {
		select {
		case <-hups:
		case <-time.After(taking / 2): // wall clock: a signal of the system
			t.Error("there was no SIGHUP")
		}
		a.policy["sha256"], _ = s.offered(t)
		if err := os.WriteFile(s.ledger.file, []byte(`{"limiter":"auto","outcome":"late"}`+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	if err := s.do(context.Background(), hangup); err != nil || s.r.Minutes[0].Reloads != 1 {
		t.Fatalf("%+v, %v", s.r.Minutes[0], err)
	}
	if err := s.ledger.catchUp(); err != nil || s.ledger.b.Lines != 13 || s.ledger.b.of("late") != 1 {
		t.Errorf("%+v, %v", s.ledger.b, err)
	}
}

// Of the decision log each line is counted, and those of level ERROR are kept.
func TestErrorsOfTheDecisionLog(t *testing.T) {
	s, _ := played(t)
	out := &lines{each: s.heard}
	bad := `{"time":"2026-01-01T00:00:00Z","level":"ERROR","msg":"panic"}`
	if _, err := out.Write([]byte(`{"level":"INFO","msg":"an ERROR is none"}` + "\n" + bad + "\n" + `{"level":"WARN"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.r.Errors, []string{bad}) || s.r.Minutes[0].Lines != 3 {
		t.Errorf("%q, %d lines", s.r.Errors, s.r.Minutes[0].Lines)
	}
	r := fine()
	r.Errors = append(r.Errors, s.r.Errors...)
	if c := said(t, r, CritRan); c.Met || !strings.Contains(c.Said, "panic") {
		t.Errorf("%+v", c)
	}
}

// run starts a program that says a line when it is ready.
func run(t *testing.T, script string) *process {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p
}

// How goodput ended after SIGTERM is told, whatever was wrong with it.
func TestHowItEnded(t *testing.T) {
	for _, c := range []struct{ name, script, says string }{
		{"with 0", `trap 'exit 0' TERM; echo; while :; do sleep 0.01; done`, ""},
		{"with 3", `trap 'exit 3' TERM; echo; while :; do sleep 0.01; done`, "exit status 3"},
		{"by the signal", `echo; exec sleep 20`, "signal: terminated"},
		{"before it", `echo`, "process already finished"},
	} {
		s, _ := played(t)
		s.serve = run(t, c.script)
		if c.name == "before it" {
			<-s.serve.ended
			if err := s.until(context.Background(), time.Hour); !errors.Is(err, errEnded) {
				t.Errorf("%v, want %v", err, errEnded)
			}
		}
		s.end()
		if s.r.Drained != c.says && (c.says == "" || !strings.Contains(s.r.Drained, c.says)) {
			t.Errorf("%s: %q, want %q", c.name, s.r.Drained, c.says)
		}
		if s.r.Told != s.tally.told || s.r.Books.Lines != 12 || s.r.Took == 0 || s.r.CPU <= 0 || len(s.r.Classes) != 2 || s.r.Calm == nil {
			t.Errorf("%s: %+v", c.name, s.r)
		}
	}
	gone := run(t, "echo")
	<-gone.ended
	synctest.Test(t, func(t *testing.T) {
		s, _ := played(t)
		s.serve.cmd = gone.cmd // and nobody has seen it end
		s.ledger.file = "nowhere"
		s.end()
		if d := s.r.Drained; !strings.Contains(d, "it had not ended 30 s after SIGTERM") || !strings.Contains(d, "nowhere") {
			t.Errorf("%q", d)
		}
	})
}
