package admin

import (
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
)

// Nobody holds a connection of the admin listener for long without a request: each part has its time.
func TestTheServersTimes(t *testing.T) {
	_, a := newAdmin(goodput.Config{})
	s := a.Server()
	for name, d := range map[string]time.Duration{
		"header": s.ReadHeaderTimeout, "request": s.ReadTimeout, "response": s.WriteTimeout, "idle": s.IdleTimeout,
	} {
		if d <= 0 || d > 2*time.Minute {
			t.Errorf("%s: %v", name, d)
		}
	}
	if s.ReadHeaderTimeout != 5*time.Second || s.MaxHeaderBytes > 64<<10 || s.MaxHeaderBytes == 0 {
		t.Errorf("a header has %v and %d bytes", s.ReadHeaderTimeout, s.MaxHeaderBytes)
	}
}

// What depends on Accept says so, and nothing here is kept: an answer is of its moment.
func TestWhatCachesAreTold(t *testing.T) {
	_, a := newAdmin(goodput.Config{})
	for path, vary := range map[string]bool{"/": true, "/api/v1/explain": true, "/api/v1/explain?format=json": true, "/api/v1/state": false, "/metrics": false} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
		if got := slices.Contains(w.Header().Values("Vary"), "Accept"); w.Code != 200 || vary && !got {
			t.Errorf("%s: %d, Vary %q", path, w.Code, w.Header().Values("Vary"))
		}
	}
}

// The stream of events is kept by no cache, and no nginx in front gathers it.
func TestHeadersOfTheEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := newAdmin(goodput.Config{})
		watched(t, a, func(v viewer) {
			v.tick(t)
			h := v.Header()
			if h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
				t.Errorf("%v", h)
			}
		})
	})
}
