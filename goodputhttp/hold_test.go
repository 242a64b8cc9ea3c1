package goodputhttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// C011 (kubernetes/kubernetes#83333, gofiber/fiber#4347): a handler that
// answers its caller in time and leaves work behind. The answers are timely, and
// what really runs never exceeds the limit.
func TestC011HeldSlots(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	work := make(chan struct{})
	s := &Server{Limiter: one(lim), Deadline: 50 * time.Millisecond, Next: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			release, ok := Hold(r.Context())
			if !ok {
				t.Error("no slot to hold")
			}
			go func() {
				<-work // it does not look at its context
				release()
				release() // counts once
			}()
			<-r.Context().Done()
			http.Error(w, "in time", http.StatusGatewayTimeout)
		})}
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w
	}
	if w := ask(); w.Code != http.StatusGatewayTimeout {
		t.Errorf("first: %d", w.Code)
	}
	if st := lim.Stats(); st.InUse != 1 || s.Stats().Held != 1 {
		t.Errorf("%d in use, %d held, while the work goes on", st.InUse, s.Stats().Held)
	}
	if w := ask(); w.Header().Get("Goodput-Rejected") == "" {
		t.Errorf("second: %d %v", w.Code, w.Header())
	}
	close(work)
	until(t, "the slot is back", func() bool { return lim.Stats().InUse == 0 })
	if n := s.Stats().Held; n != 0 {
		t.Errorf("%d held at rest", n)
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Late: 1, goodput.Rejected: 1})
}

// How the request ended is the handler's to say, whoever holds its slot.
func TestHoldKeepsTheOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(w http.ResponseWriter, leave func())
		want goodput.Outcome
	}{
		"completed": {func(http.ResponseWriter, func()) {}, goodput.Completed},
		"failed":    {func(w http.ResponseWriter, _ func()) { w.WriteHeader(500) }, goodput.Failed},
		"abandoned": {func(_ http.ResponseWriter, leave func()) { leave() }, goodput.Abandoned},
	} {
		t.Run(name, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			var release func()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			s := &Server{Limiter: one(lim), Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				release, _ = Hold(r.Context())
				tc.end(w, leave)
			})}
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
			if lim.Stats().InUse != 1 {
				t.Error("the slot is not held")
			}
			release()
			outcomes(t, lim, map[goodput.Outcome]uint64{tc.want: 1})
		})
	}
}

// In time is judged when the caller is answered, however long the work goes on.
func TestHoldIsNotLateness(t *testing.T) {
	const objective = time.Second // far more than a call of a function takes
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Objective: objective})
	var release func()
	s := &Server{Limiter: one(lim), Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		release, _ = Hold(r.Context())
	})}
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	<-time.After(objective + objective/10) // the work that goes on
	release()
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1})
}

// There is nothing to hold without a slot.
func TestHoldWithoutASlot(t *testing.T) {
	if _, ok := Hold(t.Context()); ok {
		t.Error("held a slot of no request")
	}
	var late context.Context
	s := &Server{Limiter: one(limiter(1, goodput.Config{})), Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		late = r.Context()
	})}
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if _, ok := Hold(late); ok {
		t.Error("held the slot of a request that has ended")
	}
}
