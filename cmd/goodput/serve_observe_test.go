package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/goodput/goodput/cmd/goodput/internal/admin"
)

// The switch of a process: what it answers, what the state and the metrics say, and that a reload of
// the file, which says otherwise, leaves it. (F28)
func TestServeObserveIsSwitched(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serveFile(t, policyFile(t, fmt.Sprintf(twoClasses, upstream, 2)))
	post := func(query string) (int, string) {
		t.Helper()
		res, err := http.Post(p.admin+"/api/v1/observe?"+query, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	observes := func(want ...bool) {
		t.Helper()
		_, body := p.get(p.admin + "/api/v1/state")
		var state admin.State
		if err := json.Unmarshal([]byte(body), &state); err != nil {
			t.Fatal(err)
		}
		for i, l := range state.Limiters {
			if l.Observe != want[i] || l.ObserveSwitched != want[i] {
				t.Errorf("%s: observe %v, switched %v", l.Name, l.Observe, l.ObserveSwitched)
			}
			if got, is := p.metric(`goodput_observe_switched{limiter="`+l.Name+`"}`), map[bool]string{true: "1", false: "0"}[want[i]]; got != is {
				t.Errorf("%s: goodput_observe_switched %s, want %s", l.Name, got, is)
			}
		}
	}
	observes(false, false)
	if code, body := post("limiter=slow&mode=on"); code != 200 || !strings.Contains(body, "slow: observe mode is on, switched at ") ||
		!strings.HasSuffix(body, "rest: observe mode is off, as the policy file has it\n") {
		t.Errorf("%d %s", code, body)
	}
	observes(true, false)
	p.get(p.url + "/slow/x")
	if got := p.metric(`goodput_shadow_requests_total{limiter="slow",outcome="completed",reason=""}`); got != "1" {
		t.Errorf("%s in the shadow", got)
	}
	if code, body := p.reload(); code != 200 {
		t.Fatalf("reload: %d %s", code, body)
	}
	observes(true, false)
	p.until("the switch is in the log", func(admin.LimiterState) bool { return len(p.said("observe mode on")) == 1 })
	if n := len(p.said("observe mode stays as it was switched, and not as it is configured")); n != 1 {
		t.Errorf("%d lines about the reload", n)
	}
	if code, body := post("limiter=fast&mode=on"); code != 404 || body != "there is no limiter \"fast\": there is \"slow\", \"rest\"\n" {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := post("mode=policy"); code != 200 {
		t.Errorf("policy: %d", code)
	}
	observes(false, false)
	// It has not begun anew: what was counted is.
	if got := p.metric(`goodput_arrivals_total{limiter="slow"}`); got != "1" {
		t.Errorf("%s arrivals", got)
	}
	if got := p.metric(`goodput_shadow_requests_total{limiter="slow",outcome="completed",reason=""}`); got != "1" {
		t.Errorf("%s in the shadow afterwards", got)
	}
}

// Who asks for observe mode has not switched it: that is what the two metrics tell apart. (F28)
func TestServeObserveAsAskedIsNotSwitched(t *testing.T) {
	upstream, _ := backend(t, hello)
	p := serve(t, upstream, "--limit", "1", "--observe")
	const is, switched = `goodput_observe{limiter="default"}`, `goodput_observe_switched{limiter="default"}`
	for _, c := range []struct{ mode, is, switched string }{{"", "1", "0"}, {"off", "0", "1"}, {"on", "1", "0"}} {
		if c.mode != "" {
			res, err := http.Post(p.admin+"/api/v1/observe?mode="+c.mode, "", nil)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v, %v", c.mode, res, err)
			}
			res.Body.Close()
		}
		if a, b := p.metric(is), p.metric(switched); a != c.is || b != c.switched {
			t.Errorf("after %q: observe %s, switched %s, want %s, %s", c.mode, a, b, c.is, c.switched)
		}
	}
}
