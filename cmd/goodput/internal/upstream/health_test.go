package upstream

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// F34: a server that cannot be reached costs nobody a request while another one can: what
// was not executed goes there. After three it is out, and is not asked any more; once it
// listens again it is back, and takes its share by and by.
func TestServerOutAndBack(t *testing.T) {
	play(t, 3, nil, func(w *world) {
		a := w.hosts["a"]
		a.set(true, false)
		if n := w.gets(60); n != 0 {
			t.Errorf("%d of 60 requests failed with one server of three down", n)
		}
		s := w.stats(0)
		if s.Well || s.Share != 0 || s.Ejections != 1 || s.Failures != 3 || s.Elsewhere != 3 || s.Requests != 3 || !strings.Contains(s.Why, "refused") {
			t.Errorf("%+v", s)
		}
		if c := w.pool.Capacity(); !c.Present || c.Well != 2 || c.Servers != 3 || math.Abs(c.Part-2.0/3) > 1e-9 {
			t.Errorf("%+v", c)
		}
		time.Sleep(time.Minute) // it is tried all the time
		a.set(false, false)
		time.Sleep(5 * time.Second) // the longest backoff with its jitter
		s = w.stats(0)
		if !s.Well || s.Share >= 1 && time.Since(s.Since) < config.DefaultSlowStart || s.Why != "" {
			t.Errorf("%+v", s)
		}
		time.Sleep(config.DefaultSlowStart)
		if s = w.stats(0); s.Share != 1 {
			t.Errorf("after its slow start: %+v", s)
		}
		if out, back := w.log.count(`"server out"`), w.log.count(`"server back"`); out != 1 || back != 1 {
			t.Errorf("%d lines say out, %d back: %v", out, back, w.log.all)
		}
		if n := w.gets(60); n != 0 || a.count() == 0 {
			t.Errorf("%d failed, %d were served by the one that is back", n, a.count())
		}
	})
}

// How often a server is tried that is out: after 250 ms at first, then after twice as long
// each time, up to a quarter more, to 5 s; once a second while there is no other.
func TestBackoff(t *testing.T) {
	for servers, longest := range map[int]time.Duration{2: lastBackoff, 1: aloneBackoff} {
		play(t, servers, nil, func(w *world) {
			w.hosts["a"].set(true, false)
			w.gets(20)
			synctest.Wait()
			w.mu.Lock()
			w.dials = nil
			w.mu.Unlock()
			last := time.Now()
			time.Sleep(30 * time.Second)
			synctest.Wait()
			want := firstBackoff
			for i, at := range w.dials {
				// A microsecond for the float64 in the jitter.
				if d := at.Sub(last); d < want || d > want+want/4+time.Microsecond {
					t.Errorf("%d servers: try %d came after %v, want %v to %v", servers, i+1, d, want, want+want/4)
				}
				last, want = at, min(2*want, longest)
			}
			if len(w.dials) < 7 {
				t.Errorf("%d servers: %d tries in 30 s", servers, len(w.dials))
			}
		})
	}
}

// A server that is back takes a share that grows from a tenth to all of it, in a straight line.
func TestSlowStart(t *testing.T) {
	play(t, 1, func(u *config.Upstream) { u.SlowStart = 18 * time.Second }, func(w *world) {
		w.hosts["a"].set(true, false)
		w.gets(3)
		var told []Capacity
		defer w.pool.Watch(func(c Capacity) { told = append(told, c) })()
		w.hosts["a"].set(false, false)
		time.Sleep(time.Second)
		back := w.stats(0).Since
		if got := told[:2]; got[0].Present || got[0].Part != 0 || !got[1].Present || got[1].Part != 0.1 {
			t.Errorf("told %+v", got)
		}
		for i := range 20 {
			time.Sleep(time.Until(back.Add(time.Duration(i)*time.Second + time.Millisecond)))
			synctest.Wait()
			// 5 % a second, in steps of 5 %; a timer may be a nanosecond early for it.
			if got, want := w.stats(0).Share, min(0.1+0.05*float64(i), 1); math.Abs(got-want) > 0.002 {
				t.Errorf("after %d s its share is %v, want %v", i, got, want)
			}
		}
		time.Sleep(time.Minute)
		if n := len(told); n != 20 || told[n-1].Part != 1 {
			t.Errorf("told %d times: %+v", n, told)
		}
	})
}

// A server that takes connections and breaks every request: connecting finds it well, so it
// comes and goes, but less often each time, and costs three requests each.
func TestFlappingIsBounded(t *testing.T) {
	play(t, 2, func(u *config.Upstream) { u.SlowStart = 0 }, func(w *world) { // a slow start keeps it from requests as well
		w.hosts["a"].set(false, true)
		end := time.Now().Add(10 * time.Minute)
		failed, sent := 0, 0
		for time.Now().Before(end) {
			failed += w.gets(2) // two at a time so that both are asked
			sent += 2
			time.Sleep(50 * time.Millisecond)
		}
		n := w.stats(0).Ejections
		t.Logf("%d times out, %d of %d failed, %d served by the broken one", n, failed, sent, w.hosts["a"].count())
		// 6 times until the backoff is 4 s, then once in 4 s at the most: 156. What is broken may be
		// repeated, so the other server has it.
		if n < 10 || n > 156 || failed != 0 {
			t.Errorf("%d times out in 10 minutes, %d of %d requests failed", n, failed, sent)
		}
		if most := 3*n + 3; uint64(w.hosts["a"].count()) > most {
			t.Errorf("the broken one was asked %d times, at most %d", w.hosts["a"].count(), most)
		}
	})
}

// What is no failure: any answer, a refusal too, a client that leaves, a deadline of ours, and a
// client's body that breaks. And answers in between make failures none in a row.
func TestWhatIsNoFailure(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		a := w.hosts["a"]
		for _, status := range []int{503, 500, 429, 502} {
			a.serve(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Goodput-Rejected", "queue_full")
				rw.WriteHeader(status)
			})
			w.gets(10)
		}
		for range 10 {
			_, err := w.ask(http.MethodPost, io.MultiReader(strings.NewReader("x"), broken{}))
			if !errors.Is(err, errBody) {
				t.Errorf("a broken body is %v", err)
			}
		}
		for range 5 { // two failures, then an answer
			a.set(false, true)
			if _, err := w.ask(http.MethodPost, nil); err == nil {
				t.Error("a broken connection is no error")
			}
			w.ask(http.MethodPost, nil)
			a.set(false, false)
			w.gets(1)
		}
		if s := w.stats(0); !s.Well || s.Ejections != 0 || s.Failures != 10 {
			t.Errorf("%+v", s)
		}
	})
}

// A host that is gone says nothing, not even no. A connection takes 5 s to fail, which is longer
// than the deadlines of the requests that wait for it: none of them is a failure, the
// connection is. So it is found out all the same, and then costs nobody anything.
func TestSilentServerIsFoundOut(t *testing.T) {
	play(t, 2, nil, func(w *world) {
		w.hosts["a"].silent = true
		failed, last, begun := 0, time.Duration(0), time.Now()
		for time.Since(begun) < time.Minute {
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			if _, err := w.within(ctx, http.MethodGet, nil); err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				failed++
				last = time.Since(begun)
			}
			cancel()
			time.Sleep(50 * time.Millisecond)
		}
		// The third connection fails at 5 s, or a little later if it began so; whoever waits for a
		// fourth one then is the last.
		if s := w.stats(0); s.Well || failed < 3 || failed > 8 || last > 9*time.Second {
			t.Errorf("%d failed, the last after %v: %+v", failed, last, s)
		}
	})
}

// The last server stays as long as it takes connections, whatever it does with them: a client
// that knows a request on which it hangs up must not take it from everybody. Where nobody
// listens it goes.
func TestLastServerStays(t *testing.T) {
	play(t, 2, nil, func(w *world) {
		w.hosts["b"].set(true, false)
		for w.stats(1).Well {
			w.gets(1)
		}
		a := w.hosts["a"]
		a.set(false, true)
		for range 20 {
			w.ask(http.MethodPost, nil)
		}
		if s := w.stats(0); !s.Well || s.Failures != 20 {
			t.Errorf("%+v", s)
		}
		a.set(true, false)
		for range 2 {
			w.gets(1)
		}
		if s := w.stats(0); !s.Well {
			t.Errorf("two connects failed, and it is out: %+v", s)
		}
		w.gets(1)
		if s := w.stats(0); s.Well {
			t.Errorf("nobody listens, and it is well: %+v", s)
		}
	})
	// With another one that is well it goes for that as well.
	play(t, 2, nil, func(w *world) {
		w.hosts["a"].set(false, true)
		for range 20 {
			w.ask(http.MethodPost, nil)
		}
		if w.stats(0).Well || !w.stats(1).Well {
			t.Errorf("%+v", w.pool.Stats())
		}
	})
}

var errBody = errors.New("the client is gone")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBody }

// Checks: Fall in a row take a server out, Rise take it in; a refusal is well, an error is not;
// they are no requests of the pool, and come one at a time.
func TestHealthChecks(t *testing.T) {
	play(t, 1, func(u *config.Upstream) {
		u.Health = &config.Health{Path: "/healthz?deep=1", Interval: time.Second, Timeout: 300 * time.Millisecond, Fall: 2, Rise: 3}
		u.SlowStart = 0
	}, func(w *world) {
		a := w.hosts["a"]
		var mu sync.Mutex
		status, marked, at := 200, false, ""
		slow := time.Duration(0)
		set := func(change func()) { mu.Lock(); change(); mu.Unlock() }
		together := make(chan bool, 1)
		a.serve(func(rw http.ResponseWriter, r *http.Request) {
			select {
			case together <- true:
			default:
				t.Error("two checks at a time")
			}
			defer func() { <-together }()
			mu.Lock()
			at = r.URL.String()
			status, marked, slow := status, marked, slow
			mu.Unlock()
			time.Sleep(slow)
			if marked {
				rw.Header().Set("Retry-After", "2")
			}
			if status == 302 {
				rw.Header().Set("Location", "/elsewhere")
			}
			rw.WriteHeader(status)
		})
		var got []bool
		defer w.pool.Watch(func(c Capacity) { got = append(got, c.Present) })()
		for _, step := range []struct {
			status int
			marked bool
			well   bool
		}{{200, false, true}, {503, true, true}, {429, true, true}, {302, false, true}, {503, false, false}, {204, false, true}, {404, false, false}, {200, false, true}} {
			set(func() { status, marked = step.status, step.marked })
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if s := w.stats(0); s.Well != step.well || at != "/healthz?deep=1" {
				t.Errorf("status %d, marked %v: %+v, asked at %q", step.status, step.marked, s, at)
			}
		}
		set(func() { slow = 400 * time.Millisecond }) // longer than the timeout
		time.Sleep(10 * time.Second)
		if s := w.stats(0); s.Well || !strings.Contains(s.Why, "deadline") {
			t.Errorf("checks without an answer: %+v", s)
		}
		set(func() { slow = 0 })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []bool{true, false, true, false, true, false, true}; !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
		if s := w.stats(0); s.Requests != 0 || s.Checks < 60 || s.Ejections != 3 || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Fall and Rise are answers in a row: one of the other kind between them begins anew.
func TestChecksInARow(t *testing.T) {
	play(t, 1, func(u *config.Upstream) {
		u.Health = &config.Health{Path: "/", Interval: time.Second, Timeout: time.Second, Fall: 2, Rise: 3}
	}, func(w *world) {
		const answers, states = "xoxxooxooo", "wwwwoooooow" // o is well; w: so it was taken for at that check
		var mu sync.Mutex
		got, at := "", 0
		w.hosts["a"].serve(func(rw http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if at < len(states) {
				got += map[bool]string{true: "w", false: "o"}[w.stats(0).Well]
			}
			if at < len(answers) && answers[at] == 'x' {
				rw.WriteHeader(http.StatusInternalServerError)
			}
			at++
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if got != states {
			t.Errorf("it was taken for %s, want %s", got, states)
		}
	})
}

// While no server is well a request fails at once, as not executed, with why.
func TestAbsentIsAtOnce(t *testing.T) {
	play(t, 2, nil, func(w *world) {
		for _, h := range w.hosts {
			h.set(true, false)
		}
		for w.pool.Capacity().Present {
			w.gets(1)
		}
		_, err := w.ask(http.MethodPost, strings.NewReader("x"))
		if !errors.Is(err, ErrAbsent) || !errors.Is(err, errRefused) {
			t.Errorf("%v", err)
		}
	})
}
