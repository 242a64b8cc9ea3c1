package goodputhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// What the documentation promises of defaults and of the watch.
func TestDefaults(t *testing.T) {
	s := &Server{}
	v := &visit{server: s, r: &http.Request{ContentLength: 160 << 10}}
	for what, ok := range map[string]bool{
		"MaxPreread is 1 MiB":                            s.maxPreread() == 1<<20,
		"MaxBuffered is 64 MiB":                          s.maxBuffered() == 64<<20,
		"MaxUpgraded is 65,536":                          s.maxUpgraded() == 65_536,
		"OverloadStatus is 503":                          s.overloadStatus() == 503,
		"PrereadTimeout is 10 s + 1 s a 16 KiB":          v.prereadTime() == 20*time.Second,
		"SlowClient is 10 s":                             DefaultSlowClient == 10*time.Second,
		"a client that left is noticed in a fifth of 1s": watchEvery <= time.Second/5,
	} {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
}

// Exempt replaces Probe, and Work.Bytes what was read in advance.
func TestExemptAndBytes(t *testing.T) {
	lim := limiter(1, goodput.Config{MaxBytes: 100})
	s := &Server{
		Limiter: one(lim), Next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		Exempt: func(r *http.Request) bool { return r.URL.Path == "/mine" },
		Work:   func(*http.Request) goodput.Work { return goodput.Work{Bytes: 101} },
	}
	for path, want := range map[string]int{"/mine": 200, "/livez": 413} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	if n := lim.Stats().ExemptAdmitted; n != 1 {
		t.Errorf("%d exempt", n)
	}
}
