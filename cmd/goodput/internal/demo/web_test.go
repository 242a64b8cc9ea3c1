package demo

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/load"
	"github.com/goodput/goodput/limit"
)

// liveInBubble is the live demo without a network: a request is the backend, behind the limiter or
// not.
func liveInBubble(t *testing.T, seed uint64) *Web {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &Web{backend: NewBackend(WebSlots, webMean, seed), stop: []func(){cancel}}
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(WebSlots), Objective: WebObjective})
	direct := func(ctx context.Context) load.Answer {
		s := w.backend.acquire(ctx)
		if s == nil {
			return load.Answer{Err: ctx.Err()}
		}
		w.crowd.begin(ctx.Value(callKey{}).(uint64))
		w.backend.hold(s)
		return load.Answer{Status: 200, Err: ctx.Err()}
	}
	through := func(ctx context.Context) (a load.Answer) {
		err := lim.Do(ctx, func(ctx context.Context) error {
			a = direct(ctx)
			return a.Err
		})
		if r := (*goodput.Rejection)(nil); errors.As(err, &r) {
			return load.Answer{Status: 503, Reason: r.Reason.String()}
		}
		return a
	}
	w.crowd = newCrowd(ctx, w.backend.Capacity(), seed, [2]load.Send{direct, through})
	return w
}

// What one sees in one minute, in virtual time: each second is a tick, so a rate is a count. A count
// of 200 varies by 14, and 4 of them below 200 is 144; in 3 s there is one such second.
func TestGoodputCollapsesAndComesBack(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			w := liveInBubble(t, 1+seed)
			w.begin(0.8)
			defer w.Close()
			tick := func(n int) (s Scene) {
				for range n {
					time.Sleep(time.Second)
					s = w.Scene()
				}
				return s
			}
			step := func(what string, c Controls, ok func(Scene) bool) {
				t.Helper()
				w.crowd.set(c)
				var s Scene
				for range 3 {
					if s = tick(1); ok(s) {
						break
					}
				}
				t.Logf("seed %d, %s: offered %v, in time %v, served %v, p50 %.3f", 1+seed, what, s.Offered, s.InTime, s.Served, *s.P50)
				if !ok(s) {
					t.Errorf("seed %d, %s: not so within 3s: %+v", 1+seed, what, s)
				}
				tick(5)
			}
			well := func(s Scene) bool { return s.InTime >= 0.8*200-4*math.Sqrt(0.8*200) && s.Gone == 0 }
			// In the queue the next in turn has 1/600 s left, on the average, and 3 % of the services
			// of 50 ms are so short: 7 of 200 a second, and 4 standard deviations more are 18.
			collapsed := func(s Scene) bool { return s.InTime <= 18 && s.Served >= 144 && *s.P50 == webDeadline.Seconds() }
			full := func(s Scene) bool { return s.InTime >= 144 && s.Refused >= 300 && *s.P50 < 0.4 }
			on, off := Controls{Protect: new(true)}, Controls{Protect: new(false)}
			step("0.8 of it", at(0.8), well)
			step("3x", at(3), collapsed)
			step("protected", on, full)
			step("not protected", off, collapsed)
			step("0.8 again", at(0.8), well)
			step("3x protected", Controls{Load: new(3.0), Protect: new(true)}, full)
			step("10x protected", at(10), full)
			if s := tick(1); s.Note != "" || *s.GeneratorLate != 0 {
				t.Errorf("in virtual time nothing is late: %+v", s)
			}
		})
	}
}

// Over a whole run the ends add up to the arrivals, and in every tick together with what is under
// way; the arrivals are those that were sent.
func TestTheSceneAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := liveInBubble(t, 9)
		sent := int64(0)
		for i, send := range w.crowd.ways {
			w.crowd.ways[i] = func(ctx context.Context) load.Answer {
				w.crowd.mu.Lock()
				sent++
				odd := sent%97 == 0
				w.crowd.mu.Unlock()
				if odd {
					return load.Answer{Status: 500}
				}
				return send(ctx)
			}
		}
		w.begin(0)
		var total, before Scene
		for i, c := range []Controls{
			at(0.8), at(3),
			{Protect: new(true)},
			at(10),
			{Protect: new(false)},
			at(2), at(0.5),
			{Load: new(5.0), Protect: new(true)},
			at(0),
			{},
			{},
		} {
			w.crowd.set(c)
			time.Sleep(time.Second) // the elapsed time is exact, so rates are counts
			s := w.Scene()
			ended := s.InTime + s.Late + s.Refused + s.Gone + s.Failed
			if got := ended + float64(s.UnderWay-before.UnderWay); got != s.Offered {
				t.Errorf("tick %d: offered %v, ended %v, under way %d after %d", i, s.Offered, ended, s.UnderWay, before.UnderWay)
			}
			total.Offered += s.Offered
			total.InTime += s.InTime
			total.Late += s.Late
			total.Refused += s.Refused
			total.Gone += s.Gone
			total.Failed += s.Failed
			before = s
		}
		if before.UnderWay != 0 || before.P50 != nil || before.P99 != nil || before.GeneratorLate != nil || before.Offered != 0 {
			t.Errorf("nobody came for 2s: %+v", before)
		}
		if total.Offered != float64(sent) || total.Offered != total.InTime+total.Late+total.Refused+total.Gone+total.Failed {
			t.Errorf("sent %d: %+v", sent, total)
		}
		if total.InTime == 0 || total.Late == 0 || total.Refused == 0 || total.Gone == 0 || total.Failed == 0 {
			t.Errorf("something did not occur, so nothing is shown of it: %+v", total)
		}
		w.Close()
		if n := w.crowd.tally(); n.offered != sent {
			t.Errorf("%+v", n)
		}
	})
}

// Rates are over the time that has passed, and not over a second.
func TestRatesAreOverTheTimeThatHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := liveInBubble(t, 3)
		w.begin(1)
		defer w.Close()
		time.Sleep(20 * time.Second) // a tick that was late
		if s := w.Scene(); math.Abs(s.Offered-200) > 4*math.Sqrt(200.0/20) {
			t.Errorf("offered %v/s", s.Offered)
		}
		time.Sleep(99 * time.Millisecond)
		if s := w.Scene(); s.Offered != 0 || s.P50 != nil || s.Load != 1 || s.Slots != WebSlots {
			t.Errorf("in too short a time: %+v", s)
		}
		time.Sleep(19*time.Second + 901*time.Millisecond)
		if s := w.Scene(); math.Abs(s.Offered-200) > 4*math.Sqrt(200.0/20) {
			t.Errorf("what was too short is not in the next: offered %v/s", s.Offered)
		}
	})
}

func TestQuantileByNearestRank(t *testing.T) {
	all := make([]time.Duration, 100)
	for i := range all {
		all[i] = time.Duration(100-i) * time.Second
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.501: 51, 0.99: 99, 1: 100} {
		if got := quantile(slices.Clone(all), q); *got != want {
			t.Errorf("quantile %v of 1 to 100 is %v, want %v", q, *got, want)
		}
	}
	if quantile(nil, 0.5) != nil {
		t.Error("a median of nothing")
	}
}

// The names are a contract with the page.
func TestSceneAsJSON(t *testing.T) {
	text, err := json.Marshal(Scene{})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("capacity_per_second deadline_seconds dropped failed generator_late gone in_time late load note offered p50 p99 protect refused served service_seconds slots under_way waiting")
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("%q\nwant %q", names, want)
	}
	for _, name := range []string{"p50", "p99", "generator_late"} {
		if v, there := got[name]; v != nil || !there {
			t.Errorf("%s of nothing is %v, want null", name, v)
		}
	}
}

func TestControls(t *testing.T) {
	w := &Web{crowd: crowdOf(t.Context(), ok200)}
	for _, tc := range []struct {
		method, body string
		code         int
		want         string
	}{
		{"GET", "", 200, `{"load":0,"protect":false}`},
		{"POST", `{"load":3}`, 200, `{"load":3,"protect":false}`},
		{"POST", `{"protect":true}`, 200, `{"load":3,"protect":true}`},
		{"POST", `{"load":0,"protect":false}`, 200, `{"load":0,"protect":false}`},
		{"POST", `{"load":10.0}`, 200, `{"load":10,"protect":false}`},
		{"POST", `{"load":null,"protect":null}`, 200, `{"load":10,"protect":false}`},
		{"POST", ` {} `, 200, `{"load":10,"protect":false}`},
		{"POST", `{"load":10.01}`, 400, "load 10.01 is out of range: 0 to 10 times the capacity"},
		{"POST", `{"load":-1}`, 400, "load -1 is out of range"},
		{"POST", `{"load":-0.0001,"protect":true}`, 400, "load -0.0001 is out of range"},
		{"POST", `{"load":NaN}`, 400, "invalid character 'N'"},
		{"POST", `{"load":1e999}`, 400, "load is a number 1e999"},
		{"POST", `{"load":"3"}`, 400, "load is a string"},
		{"POST", `{"laod":3}`, 400, `unknown field "laod"`},
		{"POST", `{"load":3}{"load":4}`, 400, "something behind"},
		{"POST", `{"load":3`, 400, "unexpected"},
		{"POST", `[3]`, 400, "it is a array"},
		{"POST", "", 400, "it is empty"},
		{"POST", `{"load":` + strings.Repeat(" ", maxBody) + `3}`, 400, "too large"},
		{"DELETE", "", 405, "method DELETE is not allowed"},
		{"GET", "", 200, `{"load":10,"protect":false}`},
	} {
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, httptest.NewRequest(tc.method, "/api/v1/demo", strings.NewReader(tc.body)))
		if got := rec.Body.String(); rec.Code != tc.code || !strings.Contains(got, tc.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s %.40s: %d %q, want %d %s", tc.method, tc.body, rec.Code, got, tc.code, tc.want)
		}
	}
	if CheckWebLoad(math.NaN()) == nil || CheckWebLoad(math.Inf(1)) == nil {
		t.Error("NaN and Inf are loads")
	}
}

// Over real connections, both ways; then nothing is left.
//
// wall clock: it waits for what a network brings, as long as it must, and judges no duration.
func TestTheLiveDemoEndsWithoutLeftovers(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before, procs := runtime.NumGoroutine(), runtime.GOMAXPROCS(0)
	w, err := Start(t.Context(), WebConfig{Load: 2, Seed: 1, Protect: func(u *url.URL) (*http.Server, error) {
		return protect(u, goodput.New(goodput.Config{Limit: limit.Fixed(WebSlots), Objective: WebObjective}))
	}})
	if err != nil {
		t.Fatal(err)
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("never came true: ", what)
			}
		}
	}
	until("in time, directly", func() bool { return w.crowd.tally().inTime > 20 })
	w.crowd.set(Controls{Load: new(8.0), Protect: new(true)})
	until("refused", func() bool { return w.crowd.tally().refused > 20 })
	w.crowd.set(Controls{Protect: new(false)})
	until("late and gone", func() bool { n := w.crowd.tally(); return n.late > 5 && n.gone > 20 })
	w.Close()
	n := w.crowd.tally()
	if ends := n.inTime + n.late + n.refused + n.gone + n.failed; ends != n.offered || len(w.crowd.calls) != 0 {
		t.Errorf("%d under way: %+v", len(w.crowd.calls), n)
	}
	if n.failed != 0 {
		t.Errorf("%d failed", n.failed)
	}
	until("no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })

	if _, err := Start(t.Context(), WebConfig{Load: 11}); err == nil {
		t.Error("a load of 11 is allowed")
	}
	wrong := errors.New("no proxy")
	if _, err := Start(t.Context(), WebConfig{Load: 1, Protect: func(*url.URL) (*http.Server, error) { return nil, wrong }}); !errors.Is(err, wrong) {
		t.Errorf("without a proxy: %v", err)
	}
	until("no goroutine is left of one that could not be had", func() bool { return runtime.NumGoroutine() <= before })
	if now := runtime.GOMAXPROCS(0); now != procs {
		t.Errorf("GOMAXPROCS is %d, and was %d", now, procs)
	}
}

// The machine is named as a part of what is measured as soon as the service cannot make up for its
// lateness, and for some seconds after that.
func TestTheNoteOfABusyMachine(t *testing.T) {
	w := &Web{}
	for i, c := range []struct {
		late float64 // ms
		says string
	}{
		{2, ""},
		{20, ""},
		{21, "up to 21 ms late"},
		{1, "up to 21 ms late"},
		{90, "up to 90 ms late"},
		{1, "90 ms"},
		{1, "90 ms"},
		{1, "90 ms"},
		{-1, "90 ms"}, // nothing was sent
		{1, ""},
	} {
		s := Scene{GeneratorLate: new(c.late / 1000)}
		if c.late < 0 {
			s.GeneratorLate = nil
		}
		if got := note(s, look{}, w.worst(s.GeneratorLate)); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("look %d, %v ms: %q, want %q", i, c.late, got, c.says)
		}
	}
}
