package live

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A stream begins with the history, then has the tick of now at once and one each second, for
// longer than any timeout of the server; its state and its rates are of one snapshot.
func TestAStreamOutlivesTheServersTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := named("a")
		lims := those(lim)
		w := start(t, lims, nil)
		time.Sleep(2*time.Second + interval/2)
		v := w.watch(t, "")
		defer v.leave()
		if got := v.resp.Header.Get("Content-Type"); got != "text/event-stream" || v.resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", v.resp.Header)
		}
		past := v.history()
		if len(past.Times) != 3 || past.Times[2]-past.Times[0] != 2 {
			t.Errorf("the past is %v", past.Times)
		}
		number, arrivals := uint64(3), uint64(0)
		for i := range 100 {
			is := v.tick()
			if is.Number != number || i > 0 && is.ElapsedSeconds != 1 || is.Version != 1 {
				t.Fatalf("tick %d, %v s: want tick %d", is.Number, is.ElapsedSeconds, number)
			}
			if r := is.Limiters[0].Rates; r.Offered != float64(is.State.Arrivals[0]-arrivals) {
				t.Fatalf("%v/s offered, where arrivals went from %d to %d", r.Offered, arrivals, is.State.Arrivals[0])
			}
			number, arrivals = number+1, is.State.Arrivals[0]
			for range i % 3 {
				go serve(t, lim, 10*time.Millisecond)
			}
		}
	})
}

// Who reads nothing beside one who does: the fast one is told every tick, when it is due; the
// slow one is cut off when its buffer is full, and its connection is closed when the write has
// taken too long. Who left meanwhile may come again, and has the whole past.
func TestASlowViewerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lims := those(named("a"))
		w := start(t, lims, nil)
		began := time.Now()
		slow := w.watch(t, "") // its history waits in the pipe
		slow.history()
		slow.tick()
		fast := w.watch(t, "")
		defer fast.leave()
		fast.history()
		fast.tick()
		for i := range 20 {
			is := fast.tick()
			if is.Number != uint64(i+2) || time.Since(began) != time.Duration(i+1)*time.Second || is.Time.Sub(began) != time.Duration(i+1)*time.Second {
				t.Fatalf("tick %d of %v after %v", is.Number, is.Time.Sub(began), time.Since(began))
			}
			// One is being written, two are in the buffer, and the next one is too many.
			want := 2
			if i+1 > 1+behind {
				want = 1
			}
			if got := w.viewers(); got != want {
				t.Fatalf("at tick %d: %d viewers, want %d", is.Number, got, want)
			}
		}
		for {
			if _, err := slow.next(); err != nil {
				break // what the client had read already, and then no more
			}
		}
		slow.leave()

		again := w.watch(t, "", "Last-Event-ID", "2") // as EventSource does
		defer again.leave()
		if past := again.history(); len(past.Times) != 21 || past.Limiters["a"]["limit"] == nil {
			t.Errorf("come again: a past of %d ticks", len(past.Times))
		}
		if is := again.tick(); is.Number != 21 {
			t.Errorf("come again: tick %d", is.Number)
		}
	})
}

// A history that is read slowly is no reason to be cut off: ticks begin when it is over.
func TestAHistoryMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lims := those(named("a"))
		w := start(t, lims, nil)
		time.Sleep(5*time.Minute + interval/2) // 10 KB of history: more than the client reads ahead
		v := w.watch(t, "")
		defer v.leave()
		time.Sleep(20 * time.Second)
		if past := v.history(); len(past.Times) != kept {
			t.Errorf("%d ticks", len(past.Times))
		}
		for i := range 5 {
			if is := v.tick(); is.Number != uint64(321+i) {
				t.Errorf("tick %d", is.Number)
			}
		}
		never := w.watch(t, "")
		defer never.leave()
		time.Sleep(historyTimeout + interval)
		if n := w.viewers(); n != 0 { // v has been cut off by now too
			t.Errorf("%d viewers: one has read nothing of its history for 31 s", n)
		}
	})
}

// A hundred want to watch: 64 do, the rest are told why not. What they are sent is encoded once,
// and when they have left nothing is: a bubble whose goroutines do not end fails.
func TestAHundredViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lims := those(named("a"), named("b"))
		w := start(t, lims, nil)
		for range 2 {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			states := w.states.Load()
			var all []*watcher
			refused := 0
			for i := range 100 {
				v := w.watch(t, []string{"", "?limiter=b"}[i%2])
				if v.resp.StatusCode == http.StatusOK {
					all = append(all, v)
					continue
				}
				if b, _ := io.ReadAll(v.resp.Body); v.resp.StatusCode != 503 || !strings.HasPrefix(string(b), "64 viewers watch already") {
					t.Errorf("%d %s", v.resp.StatusCode, b)
				}
				refused++
				v.leave()
			}
			if len(all) != maxViewers || refused != 100-maxViewers {
				t.Fatalf("%d watch, %d were refused", len(all), refused)
			}
			for i, v := range all {
				past := v.history()
				if _, is := past.Limiters["a"]; is != (i%2 == 0) || past.Limiters["b"] == nil {
					t.Errorf("viewer %d: a past of %d limiters", i, len(past.Limiters))
				}
			}
			for range 3 {
				for i, v := range all {
					want := []string{"a", "b"}
					if i%2 == 1 {
						want = want[1:]
					}
					if is := v.tick(); !slices.Equal(is.State.Names, want) || len(is.Limiters) != len(want) {
						t.Errorf("viewer %d: %v", i, is.State.Names)
					}
				}
			}
			if got := w.states.Load() - states; got != 3*2 { // of all and of b alone
				t.Errorf("the state was asked for %d times in 3 ticks", got)
			}
			for _, v := range all {
				v.leave()
			}
			if n := w.viewers(); n != 0 {
				t.Errorf("%d viewers are left", n)
			}
		}
		states := w.states.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.states.Load() != states {
			t.Error("ticks are encoded for nobody")
		}
	})
}

// A server that shuts down, or a hub that stops, ends all streams, so that neither waits for a
// viewer; and who comes then is told.
func TestShutdownEndsTheStreams(t *testing.T) {
	for name, stop := range map[string]func(*world) error{
		"server": func(w *world) error { return w.server.Shutdown(context.Background()) },
		"hub":    func(w *world) error { w.stop(); <-w.ended; return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			lims := those(named("a"))
			w := start(t, lims, nil)
			v, unread := w.watch(t, ""), w.watch(t, "")
			defer v.leave()
			defer unread.leave()
			v.history()
			v.tick()
			began := time.Now()
			done := make(chan error, 1)
			go func() { done <- stop(w) }()
			if e, err := v.next(); err != io.EOF {
				t.Errorf("%s: %v %v", name, e, err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			// The one that reads nothing holds the server up for the time of its history.
			if took := time.Since(began); name == "hub" && took != 0 || took > historyTimeout+time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
			rec := httptest.NewRecorder()
			w.hub.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
			if rec.Code != 503 || !strings.HasPrefix(rec.Body.String(), "shutting down") {
				t.Errorf("%s: then %d %s", name, rec.Code, rec.Body)
			}
		})
	}
}

// What cannot be watched is said.
func TestWhatCannotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(h *Hub, method, path string) (int, string) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
			return rec.Code, strings.TrimSpace(rec.Body.String())
		}
		lims := those(named("a"))
		if code, says := ask(New(Config{}), "GET", "/"); code != 503 || says != errStarting.Error() {
			t.Errorf("before the first tick: %d %s", code, says)
		}
		w := start(t, lims, nil)
		if code, says := ask(w.hub, "GET", "/?limiter=nobody"); code != 404 || says != errUnknown.Error() {
			t.Errorf("no such limiter: %d %s", code, says)
		}
		if code, says := ask(w.hub, "GET", "/"); code != 500 || !strings.HasPrefix(says, "this server cannot stream") {
			t.Errorf("without deadlines: %d %s", code, says)
		}
		if code, says := ask(w.hub, "HEAD", "/?limiter=a"); code != 200 || says != "" {
			t.Errorf("HEAD: %d %s", code, says)
		}
		if n := w.viewers(); n != 0 {
			t.Errorf("%d viewers are left", n)
		}
	})
}

// A class that goes with a reload and comes again is another limiter of the same name, whose
// counters begin at 0: no rate is below 0, no quantile is of both, and its past has a gap.
func TestALimiterThatGoesAndComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := named("a"), named("b")
		lims := those(a, b)
		w := start(t, lims, nil)
		v := w.watch(t, "")
		defer v.leave()
		v.history()
		v.tick()
		only := w.watch(t, "?limiter=b")
		defer only.leave()
		only.history()
		only.tick()
		tick := func(names ...string) told {
			t.Helper()
			is := v.tick()
			if !slices.Equal(is.State.Names, names) {
				t.Errorf("%v, want %v", is.State.Names, names)
			}
			for _, l := range is.Limiters {
				if l.Rates.Offered < 0 || l.Rates.Goodput < 0 {
					t.Errorf("%+v", l)
				}
			}
			if got := only.tick(); len(got.Limiters) != len(names)-1 {
				t.Errorf("?limiter=b: %v", got.State.Names)
			}
			return is
		}
		for range 50 {
			serve(t, b, time.Millisecond)
		}
		if is := tick("a", "b"); is.Limiters[1].Rates.Offered != 50 || is.Limiters[1].Latency.Count != 50 {
			t.Errorf("%+v", is.Limiters[1])
		}
		lims.Store(&[]*goodput.Limiter{a})
		tick("a")
		tick("a")
		b = named("b")
		lims.Store(&[]*goodput.Limiter{a, b})
		go serve(t, b, time.Millisecond)
		if is := tick("a", "b"); is.Limiters[1].Rates.Offered != 0 || is.Limiters[1].Latency != nil || is.Limiters[1].WindowSeconds != 0 {
			t.Errorf("when it comes: %+v", is.Limiters[1])
		}
		go serve(t, b, time.Millisecond)
		if is := tick("a", "b"); is.Limiters[1].Rates.Offered != 1 || is.Limiters[1].Latency.Count != 1 || is.Limiters[1].WindowSeconds != 1 {
			t.Errorf("then: %+v", is.Limiters[1])
		}
		again := w.watch(t, "")
		defer again.leave()
		past := again.history().Limiters["b"]["offered"]
		var got []float64
		for _, p := range past {
			if p == nil {
				got = append(got, -1)
				continue
			}
			got = append(got, *p)
		}
		if !slices.Equal(got, []float64{0, 50, -1, -1, 0, 1}) {
			t.Errorf("the past of b: %v", got)
		}
		w.stop()
		<-w.ended
		if len(w.hub.tracks) != 2 {
			t.Errorf("%d limiters are remembered", len(w.hub.tracks))
		}
	})
}

// A demo is asked once a second, is in the tick as it is, and its numbers are in the past. One
// that cannot be written as JSON takes nothing else with it.
func TestTheSceneOfADemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type scene struct {
			Load    float64  `json:"load"`
			Protect bool     `json:"protect"`
			P99     *float64 `json:"p99"`
			Note    string   `json:"note"`
		}
		asked := 0
		lims := those(named("a"))
		w := start(t, lims, func() any {
			asked++
			switch asked {
			case 1:
				return scene{Load: 3}
			case 2:
				return scene{Load: 1.5, Protect: true, P99: new(0.25), Note: "n"}
			}
			return scene{Load: math.NaN()}
		})
		v, other := w.watch(t, ""), w.watch(t, "")
		defer v.leave()
		defer other.leave()
		for _, v := range []*watcher{v, other} {
			v.history()
			v.tick()
			if is, _ := v.tick().Demo.(map[string]any); is["load"] != 1.5 || is["protect"] != true || is["p99"] != 0.25 || is["note"] != "n" {
				t.Errorf("%v", is)
			}
			if is := v.tick(); is.Demo != nil || len(is.Limiters) != 1 {
				t.Errorf("%+v", is)
			}
		}
		if asked != 3 {
			t.Errorf("asked %d times in 3 ticks", asked)
		}
		again := w.watch(t, "")
		defer again.leave()
		b, _ := json.Marshal(again.history().Demo)
		if string(b) != `{"load":[3,1.5,null],"p99":[null,0.25,null],"protect":[0,1,null]}` {
			t.Errorf("%s", b)
		}
	})
}

// Who comes between two ticks is told the last one, all of it: also in words it is what it was.
func TestALateComerIsToldTheLastTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := named("a")
		w := start(t, those(lim), nil)
		go serve(t, lim, interval/2)
		time.Sleep(interval / 4)
		v := w.watch(t, "")
		defer v.leave()
		v.history()
		if is := v.tick(); is.Number != 1 || is.State.Arrivals[0] != 0 || is.Limiters[0].Explanation.State != "idle" {
			t.Errorf("tick %d, %d arrivals: %s", is.Number, is.State.Arrivals[0], is.Limiters[0].Explanation.State)
		}
		time.Sleep(interval)
	})
}

// A limiter that is exchanged between two ticks has nothing to do with the one before.
func TestALimiterThatIsExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, lims := named("a"), those()
		lims.Store(&[]*goodput.Limiter{old})
		w := start(t, lims, nil)
		v := w.watch(t, "")
		defer v.leave()
		v.history()
		v.tick()
		for range 9 {
			serve(t, old, time.Millisecond)
		}
		v.tick()
		fresh := named("a")
		for range 20 {
			serve(t, fresh, time.Millisecond)
		}
		lims.Store(&[]*goodput.Limiter{fresh})
		if l := v.tick().Limiters[0]; l.Rates.Offered != 0 || l.Latency != nil {
			t.Errorf("%+v", l)
		}
	})
}

// Of those who ask for most a tick says what each was served, in cost per second.
func TestWhatTenantsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{Name: "a", Limit: limit.Fixed(9), Objective: time.Second, Tenants: &goodput.Tenants{
			Rows: []goodput.Tenant{{ID: "acme"}, {ID: "idle"}},
		}})
		w := start(t, those(lim), nil)
		v := w.watch(t, "")
		defer v.leave()
		v.history()
		v.tick()
		for round := range 3 {
			for range 5 + round {
				slot, err := lim.AcquireWork(context.Background(), goodput.Work{Tenant: "acme", Cost: 2})
				if err != nil {
					t.Fatal(err)
				}
				slot.Release()
			}
			got := map[string]float64{}
			for _, tenant := range v.tick().Limiters[0].Tenants {
				got[tenant.ID] = tenant.Served
			}
			if len(got) != 3 || got["acme"] != float64(2*(5+round)) || got["idle"] != 0 {
				t.Errorf("round %d: %v", round, got)
			}
		}
	})
}
