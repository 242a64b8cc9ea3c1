package admin

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// One address for both: the live page for a browser, the state in words for curl. A cache
// between them is told that it depends on who asks.
func TestRootByAccept(t *testing.T) {
	_, a := newAdmin(goodput.Config{Name: "app", Limit: limit.Fixed(1), Objective: time.Second})
	for accept, want := range map[string]struct{ kind, has string }{
		"": {"text/plain; charset=utf-8", "app: idle"}, "*/*": {"text/plain; charset=utf-8", "app: idle"},
		"text/html,*/*;q=0.8": {"text/html; charset=utf-8", "/assets/page.js"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			r := httptest.NewRequest(method, "/", nil)
			if accept != "" {
				r.Header.Set("Accept", accept)
			}
			w := httptest.NewRecorder()
			a.ServeHTTP(w, r)
			h := w.Result().Header
			if h.Get("Content-Type") != want.kind || h.Get("Vary") != "Accept" || w.Code != 200 {
				t.Errorf("%s with Accept %q: %d, %q, Vary %q", method, accept, w.Code, h.Get("Content-Type"), h.Get("Vary"))
			}
			if method == "GET" && !strings.Contains(w.Body.String(), want.has) {
				t.Errorf("with Accept %q it has no %q", accept, want.has)
			}
		}
	}
	if status, script := get(t, a, "GET", "/assets/page.js"); status != 200 || !strings.Contains(script, "EventSource") && !strings.Contains(script, "Stream") {
		t.Errorf("the script of the page: %d", status)
	}
	if status, _ := get(t, a, "POST", "/"); status != 405 {
		t.Errorf("POST /: %d, want 405", status)
	}
}
