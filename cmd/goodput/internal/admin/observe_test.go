package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// switchable is an admin of the limiters "api", which the policy has on, and "web", and what it is told.
func switchable() (*Admin, *[]string) {
	var told []string
	is := []Observing{{Limiter: "api", On: true, Policy: true}, {Limiter: "web"}}
	api := goodput.New(goodput.Config{Name: "api", Limit: limit.Fixed(1), Observe: true})
	_, a := newAdmin(goodput.Config{Name: "web", Limit: limit.Fixed(1)})
	cfg := a.cfg
	web := cfg.Limiters()[0]
	cfg.Limiters = func() []*goodput.Limiter { return []*goodput.Limiter{api, web} }
	cfg.Policy = func() (source, sum string) { return "policy.yaml", "abc" }
	cfg.Observe = &Observe{
		All: func() []Observing { return is },
		Set: func(limiter, mode string) error {
			told = append(told, limiter+" "+mode)
			if limiter != "" && limiter != "api" && limiter != "web" {
				return errors.New("there is no limiter of that name")
			}
			for i := range is {
				if limiter != "" && limiter != is[i].Limiter {
					continue
				}
				is[i].On, is[i].Switched = mode == "on", time.Now()
				if mode == "policy" {
					is[i].On, is[i].Switched = is[i].Policy, time.Time{}
				}
			}
			return nil
		},
	}
	return New(cfg), &told
}

// What is answered, and what the state and the page then say.
func TestObserveIsSwitched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, told := switchable()
		say := func(query, want string) {
			t.Helper()
			if code, body := get(t, a, "POST", "/api/v1/observe?"+query); code != 200 || body != want {
				t.Errorf("%s: %d\n%swant\n%s", query, code, body, want)
			}
		}
		// The clock of a bubble begins at midnight of the year 2000.
		say("mode=off", "api: observe mode is off, switched at 2000-01-01T00:00:00Z, 0s ago; the policy file has it on\n"+
			"web: observe mode is off, switched at 2000-01-01T00:00:00Z, 0s ago; the policy file has it off\n")
		time.Sleep(90 * time.Second)
		say("limiter=web&mode=on&format=text", "api: observe mode is off, switched at 2000-01-01T00:00:00Z, 1m30s ago; the policy file has it on\n"+
			"web: observe mode is on, switched at 2000-01-01T00:01:30Z, 0s ago; the policy file has it off\n")
		say("limiter=api&mode=policy", "api: observe mode is on, as the policy file has it\n"+
			"web: observe mode is on, switched at 2000-01-01T00:01:30Z, 0s ago; the policy file has it off\n")

		var answer struct{ Limiters []Observed }
		for _, r := range []*http.Request{
			httptest.NewRequest("POST", "/api/v1/observe?mode=on&limiter=web&format=json", nil),
			httptest.NewRequest("POST", "/api/v1/observe?mode=on&limiter=web", nil),
		} {
			r.Header.Set("Accept", "application/json")
			w := httptest.NewRecorder()
			a.ServeHTTP(w, r)
			time.Sleep(2 * time.Second)
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Header().Get("Content-Type") != "application/json" {
				t.Fatalf("%v: %s", err, w.Body)
			}
			if l := answer.Limiters; len(l) != 2 || l[0] != (Observed{Name: "api", Observe: true, Policy: true, Why: "as the policy file has it"}) ||
				!l[1].Observe || !l[1].Switched || l[1].Policy || l[1].SwitchedSeconds != 0 {
				t.Errorf("%+v", l)
			}
		}
		if got := strings.Join(*told, ", "); got != " off, web on, api policy, web on, web on" {
			t.Errorf("told %q", got)
		}

		var state State
		_, body := get(t, a, "GET", "/api/v1/state")
		if err := json.Unmarshal([]byte(body), &state); err != nil || state.Limiters[0].ObserveSwitched || !state.Limiters[1].ObserveSwitched {
			t.Errorf("%v: %s", err, body)
		}
		const line = "  observe  on, switched at 2000-01-01T00:01:32Z, 2s ago; the policy file has it off; POST /api/v1/observe?mode=policy ends that\n"
		if _, page := get(t, a, "GET", "/"); strings.Count(page, line) != 1 || strings.Index(page, line) < strings.Index(page, "\nweb:") {
			t.Errorf("the page has no line\n%s%s", line, page)
		}
	})
}

// A mistake changes nothing, and above all is not about all limiters.
func TestObserveRefusesMistakes(t *testing.T) {
	a, told := switchable()
	for _, c := range []struct {
		method, query string
		code          int
		want          string
	}{
		{"POST", "", 400, `mode "" is none of on, off, policy`},
		{"POST", "?mode=ON", 400, `mode "ON" is none of on, off, policy`},
		{"POST", "?mode=on&limiter=", 400, `limiter is empty: say a name, or leave it out to mean all limiters`},
		{"POST", "?mode=on&limter=web", 400, `there is no parameter "limter": there is limiter, mode, format`},
		{"POST", "?mode=on&mode=off", 400, `mode is said 2 times: say it once`},
		{"POST", "?mode=on&limiter=a&limiter=b", 400, `limiter is said 2 times: say it once`},
		{"POST", "?mode=on&format=xml", 400, `format "xml" is neither text nor json`},
		{"POST", "?mode=on;limiter=web", 400, `the query is malformed: invalid semicolon separator in query`},
		{"GET", "?mode=on", 405, ""},
		{"PUT", "?mode=on", 405, ""},
		{"DELETE", "?mode=on", 405, ""},
	} {
		code, body := get(t, a, c.method, "/api/v1/observe"+c.query)
		if code != c.code || c.want != "" && strings.TrimSpace(body) != c.want {
			t.Errorf("%s %q: %d %s, want %d %s", c.method, c.query, code, body, c.code, c.want)
		}
	}
	r := httptest.NewRequest("POST", "/api/v1/observe?mode=on", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a page of another origin: %d", w.Code)
	}
	if len(*told) != 0 {
		t.Errorf("switched all the same: %q", *told)
	}
	if code, body := get(t, a, "POST", "/api/v1/observe?mode=on&limiter=wbe"); code != 404 || body != "there is no limiter of that name\n" {
		t.Errorf("no such limiter: %d %s", code, body)
	}
	_, other := newAdmin(goodput.Config{Limit: limit.Fixed(1)})
	if code, _ := get(t, other, "POST", "/api/v1/observe?mode=on"); code != 404 {
		t.Errorf("where nothing can be switched: %d", code)
	}
}
