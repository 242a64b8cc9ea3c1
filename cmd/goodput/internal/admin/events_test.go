package admin

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A viewer is a response that hands on each event as it is written.
type viewer struct {
	*httptest.ResponseRecorder
	events chan string
}

func (v viewer) Write(b []byte) (int, error)      { v.events <- string(b); return len(b), nil }
func (v viewer) SetReadDeadline(time.Time) error  { return nil }
func (v viewer) SetWriteDeadline(time.Time) error { return nil }

// tick returns the JSON of the next tick.
func (v viewer) tick(t *testing.T) (tick map[string]any) {
	t.Helper()
	for event := range v.events {
		if _, data, is := strings.Cut(event, "event: tick\ndata: "); is {
			if err := json.Unmarshal([]byte(data), &tick); err != nil {
				t.Fatal(err)
			}
			return tick
		}
	}
	return nil
}

// watched runs what looks at the limiters of a, with a viewer, while f runs in a bubble.
func watched(t *testing.T, a *Admin, f func(viewer)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { a.Watch(ctx) })
	synctest.Wait()
	v := viewer{httptest.NewRecorder(), make(chan string, 2)}
	all.Go(func() { a.ServeHTTP(v, httptest.NewRequestWithContext(ctx, "GET", "/api/v1/events", nil)) })
	f(v)
	cancel()
	all.Wait()
}

// What a tick says of the state is what /api/v1/state answers, to the letter: in a bubble whose
// clock stands still both are of one instant.
func TestATickHasTheStateToTheLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, a := newAdmin(goodput.Config{Limit: limit.Fixed(2), Objective: time.Second, Tenants: &goodput.Tenants{
			Rows: []goodput.Tenant{{ID: "acme", Weight: 2}, {ID: "b", Quota: goodput.Quota{Rate: 5, Burst: 10}}},
		}})
		a.Enter(Ready)
		watched(t, a, func(v viewer) {
			v.tick(t)
			for i := range 20 {
				ctx, cancel := context.WithTimeout(goodput.WithTenant(t.Context(), []string{"acme", "b"}[i%2]), time.Minute)
				defer cancel()
				go lim.Do(ctx, func(context.Context) error { time.Sleep(700*time.Millisecond + 1); return nil })
			}
			for range 5 {
				tick := v.tick(t)
				_, body := get(t, a, "GET", "/api/v1/state")
				var state map[string]any
				if err := json.Unmarshal([]byte(body), &state); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(tick["state"], any(state)) {
					t.Errorf("tick %v\nstate %v", tick["state"], state)
				}
				l := state["limiters"].([]any)[0].(map[string]any)
				x := tick["limiters"].([]any)[0].(map[string]any)["explanation"].(map[string]any)
				if x["state"] != l["state"] || len(x["facts"].([]any)) < 3 {
					t.Errorf("the explanation is %v", x)
				}
			}
		})
		time.Sleep(time.Minute)
	})
}

// The accounts of tenants are in the state, with their names, each number being the limiter's.
func TestTenantsAreInTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, a := newAdmin(goodput.Config{Limit: limit.Fixed(2), Objective: time.Second, Tenants: &goodput.Tenants{
			Rows: []goodput.Tenant{{ID: "acme\"<", Weight: 2, MaxInUse: 1}, {ID: "b", Quota: goodput.Quota{Rate: 1, Burst: 2}}},
		}})
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				lim.Do(goodput.WithTenant(t.Context(), []string{"acme\"<", "b", "nobody"}[i%3]), func(context.Context) error {
					time.Sleep(100 * time.Millisecond)
					return nil
				})
			})
		}
		time.Sleep(50 * time.Millisecond)
		_, body := get(t, a, "GET", "/api/v1/state")
		var state State
		if err := json.Unmarshal([]byte(body), &state); err != nil {
			t.Fatal(err)
		}
		got := state.Limiters[0].Tenants
		want := lim.Tenants(10)
		if len(got) != 3 || len(want) != 3 {
			t.Fatalf("%d tenants, want %d: %s", len(got), len(want), body)
		}
		for i, w := range want {
			g := got[i]
			is := goodput.TenantState{
				ID: g.ID, Weight: g.Weight, MaxInUse: g.MaxInUse, InUse: g.InUse, Waiting: g.Waiting, WaitingCost: g.WaitingCost,
				Offered: g.OfferedPerSecond, Entitled: g.EntitledPerSecond, Over: g.Over, Level: w.Level,
				Arrivals: g.Arrivals, Refused: g.Refused, Granted: g.GrantedCost, Quotaed: g.QuotaRefused, Left: w.Left,
			}
			if g.Quota != nil {
				is.Quota, is.Left = goodput.Quota{Rate: g.Quota.PerSecond, Burst: g.Quota.Burst}, g.Quota.Left
			}
			if is != w || (g.Quota != nil) != (w.ID == "b") {
				t.Errorf("%+v, want %+v", g, w)
			}
		}
		all.Wait()
	})
}

// Without limiters and tenants the lists are empty and not null: a page need not ask.
func TestListsAreNeverNull(t *testing.T) {
	_, a := newAdmin(goodput.Config{Limit: limit.Fixed(1)})
	if _, body := get(t, a, "GET", "/api/v1/state"); !strings.Contains(body, `"tenants": []`) || strings.Contains(body, "null") {
		t.Error(body)
	}
	a.cfg.Limiters = func() []*goodput.Limiter { return nil }
	if _, body := get(t, a, "GET", "/api/v1/state"); !strings.Contains(body, `"limiters": []`) {
		t.Error(body)
	}
}

// The server of the listener stops although somebody watches.
func TestShutdownWithAViewer(t *testing.T) {
	_, a := newAdmin(goodput.Config{Limit: limit.Fixed(1)}) // wall clock: a real listener, nothing is measured
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := a.Server()
	go s.Serve(l)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go a.Watch(ctx)
	var resp *http.Response
	for resp == nil || resp.StatusCode != http.StatusOK { // until the first tick is there
		if resp, err = http.Get("http://" + l.Addr().String() + "/api/v1/events"); err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
	}
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("the server waits for a viewer: %v", err)
	}
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), "event: history") {
		t.Errorf("%v after %s", err, b)
	}
}

// Before anything has been measured a viewer is told to come again, and nobody can send events.
func TestEventsAreReadOnly(t *testing.T) {
	_, a := newAdmin(goodput.Config{Limit: limit.Fixed(1)})
	for method, want := range map[string]int{"GET": 503, "HEAD": 503, "POST": 405, "PUT": 405, "DELETE": 405} {
		if code, body := get(t, a, method, "/api/v1/events"); code != want {
			t.Errorf("%s: %d %s, want %d", method, code, body, want)
		}
	}
}
