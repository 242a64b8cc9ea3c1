package goodputhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// What a handler marks as Downstream is not taken for the time of the service.
func TestHandlerIsDownstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(1)})
		h := Handler(lim, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Millisecond)
			span := goodput.Downstream(r.Context())
			defer span.End()
			time.Sleep(30 * time.Millisecond)
		}))
		for range 20 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}
		if got := lim.Stats().Elsewhere; got < 0.75-1e-6 || got > 0.75+1e-6 {
			t.Errorf("%.3f of the time elsewhere, want 0.75", got)
		}
	})
}
