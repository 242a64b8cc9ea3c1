package conformance

import (
	"strings"
	"testing"
	"testing/synctest"
)

// one returns the check of that name.
func one(t *testing.T, name string) Check {
	t.Helper()
	for _, c := range limiterChecks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %s", name)
	return Check{}
}

// What is misspelt is not skipped without a word.
func TestOptionsAreChecked(t *testing.T) {
	for want, f := range map[string]func(){
		"panics":   func() { RunLimiter(channel, LimiterOptions{Skip: map[string]string{"panics": "no"}}) },
		"Patience": func() { RunLimiter(channel, LimiterOptions{Patience: -1}) },
		"Part":     func() { RunLimiter(channel, LimiterOptions{Part: maxPart + 1}) },
		"DeadlineHeader": func() {
			RunHandler(brokenHandlers(handlerFaults{}, true, nil), HandlerOptions{DeadlineHeader: "Expect-Within"})
		},
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.Contains(s, want) {
					t.Errorf("%s: the panic says %q", want, s)
				}
			}()
			f()
			t.Errorf("%s: no panic", want)
		}()
	}
}

// The names are keys: of Skip, of a table, of a subtest.
func TestNamesAreKeys(t *testing.T) {
	for _, all := range [][]Check{LimiterChecks(), HandlerChecks()} {
		seen := map[string]bool{}
		for _, c := range all {
			if seen[c.Name] || strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz-") != "" || !strings.HasSuffix(c.Proves, ".") {
				t.Errorf("%q, which proves %q", c.Name, c.Proves)
			}
			seen[c.Name] = true
			for _, s := range c.Seen {
				if strings.Count(s, "/") != 1 || strings.Count(s, "#") != 1 {
					t.Errorf("%s: seen at %q, which is no owner/repository#number", c.Name, s)
				}
			}
		}
	}
}

func TestSkipSaysWhy(t *testing.T) {
	for _, r := range RunLimiter(channelOnly, LimiterOptions{Part: maxPart, Skip: map[string]string{"try": "it is documented"}}) {
		switch r.Check.Name {
		case "try":
			if r.Verdict != Skipped || r.String() != "try: skipped: it is documented" {
				t.Errorf("%v", r)
			}
		case "lost-wakeup", "panic", "resize-up", "no-queue":
			if r.Verdict != Skipped || r.Detail == "" {
				t.Errorf("%v", r)
			}
		case "limit":
			if r.Verdict != Passed {
				t.Errorf("%v", r)
			}
		}
	}
}

// In a bubble nothing is left to a moment: what is wrong is seen the first time.
func TestBubbleSeesFailures(t *testing.T) {
	for check, f := range map[string]faults{
		"limit": {overAdmits: true}, "double-release": {doubleFrees: true}, "cancelled-before": {ignoresBefore: true},
		"cancelled-front": {frontSleeps: true}, "starvation": {newestFirst: true}, "resize-down": {downForgets: true},
		"try": {tryNever: true},
	} {
		t.Run(check, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts LimiterOptions
				e := opts.env(opts.settings(), broken(f))
				e.bubble = true
				if r := e.run(one(t, check)); r.Verdict != Failed {
					t.Errorf("%v", r)
				}
			})
		})
	}
}
