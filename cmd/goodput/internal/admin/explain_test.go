package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// overfull is an admin of two limiters, of which one refuses: its one slot is held, and nobody
// may wait.
func overfull(t *testing.T) (*goodput.Limiter, *Admin) {
	t.Helper()
	lim := goodput.New(goodput.Config{Name: "search", Limit: limit.Fixed(1), Depth: goodput.NoQueue, Objective: 400 * time.Millisecond})
	other := goodput.New(goodput.Config{Name: "<img>", Limit: limit.Fixed(2)})
	_, a := newAdmin(goodput.Config{})
	a.cfg.Limiters = func() []*goodput.Limiter { return []*goodput.Limiter{lim, other} }
	slot, err := lim.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slot.Release)
	for range 3 {
		if _, err := lim.Acquire(t.Context()); err == nil {
			t.Fatal("not refused")
		}
	}
	return lim, a
}

// F35: the explanation of a limiter as text and as JSON, by parameter or by Accept, and of all of
// them; what is shown is the limiter's own.
func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, a := overfull(t)
		ask := func(path, accept string) (*http.Response, string) {
			r := httptest.NewRequest("GET", path, nil)
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			a.ServeHTTP(w, r)
			return w.Result(), w.Body.String()
		}
		for _, q := range []string{"/api/v1/explain?limiter=search", "/api/v1/explain?limiter=search&format=text"} {
			if resp, body := ask(q, "*/*"); resp.StatusCode != 200 || body != a.says(lim) || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
				t.Errorf("%s: %d %s", q, resp.StatusCode, body)
			}
		}
		if _, body := ask("/api/v1/explain?limiter=search&format=text", "application/json"); body != a.says(lim) {
			t.Errorf("format does not win over Accept: %s", body)
		}
		if _, body := ask("/api/v1/explain", "*/*"); !strings.HasPrefix(body, a.says(lim)+"\n<img>: idle\n") {
			t.Errorf("of all: %s", body)
		}
		e := lim.Explanation()
		for _, c := range [][2]string{{"/api/v1/explain?limiter=search&format=json", "*/*"}, {"/api/v1/explain?limiter=search", "application/json"}} {
			resp, body := ask(c[0], c[1])
			var x Explanations
			d := json.NewDecoder(strings.NewReader(body))
			d.DisallowUnknownFields()
			if err := d.Decode(&x); err != nil || x.Version != 1 || len(x.Limiters) != 1 || resp.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("%v: %v\n%s", c, err, body)
			}
			l := x.Limiters[0]
			if l.Limiter != "search" || l.Condition != "boundary" || l.State != e.State || len(l.Facts) != 1+len(e.Facts) || len(l.Refused) != 1 || l.Rates != nil {
				t.Fatalf("%+v", l)
			}
			for i, f := range l.Facts[1:] {
				if f.Topic != e.Facts[i].Topic || f.Text != e.Facts[i].Text {
					t.Errorf("%+v, want %+v", f, e.Facts[i])
				}
			}
			if r := l.Refused[0]; r.Count != 3 || r.Reason != "queue_full" || r.Outcome != "rejected" || r.Knob != "depth none" || r.Text != e.Refused[0].Error() || r.RetryAfterSeconds < 1 {
				t.Errorf("%+v", r)
			}
		}
		if _, body := ask("/api/v1/explain", "application/json"); strings.Count(body, `"condition"`) != 2 {
			t.Errorf("of all: %s", body)
		}
	})
}

func TestExplainSaysWhatIsWrong(t *testing.T) {
	_, a := overfull(t)
	for path, want := range map[string]struct {
		code int
		says string
	}{
		"/api/v1/explain?limiter=serach":             {404, `there is no limiter "serach": there is "search", "<img>"`},
		"/api/v1/explain?limiter=":                   {400, "limiter is empty: say a name, or leave it out to mean all limiters"},
		"/api/v1/explain?limiter=a&limiter=b":        {400, "limiter is said 2 times: say it once"},
		"/api/v1/explain?limiter=search&format=yaml": {400, `format "yaml" is neither text nor json`},
		"/api/v1/explain?format=":                    {400, `format "" is neither text nor json`},
		"/api/v1/explain?limiter=%zz":                {400, "the query is malformed"},
	} {
		if code, body := get(t, a, "GET", path); code != want.code || !strings.HasPrefix(body, want.says) {
			t.Errorf("%s: %d %q, want %d %q", path, code, body, want.code, want.says)
		}
	}
	if code, _ := get(t, a, "POST", "/api/v1/explain"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
	var many []*goodput.Limiter
	for range 25 {
		many = append(many, goodput.New(goodput.Config{Limit: limit.Fixed(1)}))
	}
	if got := namesOf(many); strings.Count(got, `"default"`) != 20 || !strings.HasSuffix(got, ", and 5 more") {
		t.Error(got)
	}
}

// An outage after ten minutes in which all was well: what is said is of now, in the first lines, and not
// of all that ever was. Before there are rates, that is said.
func TestExplainSaysWhatIsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, a := newAdmin(goodput.Config{Name: "app", Limit: limit.Fixed(4), Objective: 300 * time.Millisecond, Service: 20 * time.Millisecond})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		idle := goodput.New(goodput.Config{Name: "idle", Limit: limit.Fixed(1)})
		a.cfg.Limiters = func() []*goodput.Limiter { return []*goodput.Limiter{idle, lim} }
		a.events = a.hub()
		rate := func() string {
			synctest.Wait() // who ends at this instant has
			_, body := get(t, a, "GET", "/api/v1/explain?limiter=app")
			if _, page := get(t, a, "GET", "/"); !strings.Contains(page, body) {
				t.Errorf("the text page has other words:\n%s\n%s", page, body)
			}
			for line := range strings.Lines(body) {
				if utf8.RuneCountInString(line) > 81 {
					t.Errorf("more than 80 columns: %s", line)
				}
			}
			state, rest, _ := strings.Cut(body, "\n  rate ")
			if strings.Contains(state, "\n  limit") {
				t.Errorf("the rates are not in the first lines: %s", body)
			}
			rest, _, _ = strings.Cut(rest, "\n  limit ")
			return strings.Join(strings.Fields(rest), " ")
		}
		go a.Watch(ctx)
		synctest.Wait()
		if got := rate(); got != "no rates yet: counts are compared once a second" {
			t.Errorf("at first: %s", got)
		}
		load := func(perSecond int, took, d time.Duration) {
			for range int(d.Seconds()) * perSecond {
				go func() {
					c, cancel := context.WithTimeout(ctx, 5*time.Second)
					defer cancel()
					_ = lim.Do(c, func(context.Context) error { time.Sleep(took); return nil })
				}()
				time.Sleep(time.Second / time.Duration(perSecond))
			}
		}
		time.Sleep(500 * time.Millisecond) // between two ticks
		load(50, 20*time.Millisecond, 10*time.Minute)
		// A tick has 50 arrivals, or one more or less at its ends.
		well := regexp.MustCompile(`^offered (49|50|51)/s, goodput (49|50|51)/s \(\S+ % in time\), capacity 200/s refused: nobody p99 2[0-9.]*ms of the last 10 s, within the objective of 300ms$`)
		if got := rate(); !well.MatchString(got) {
			t.Errorf("while it is well: %s", got)
		}
		load(50, time.Second, 15*time.Second)
		outage := regexp.MustCompile(`^offered (49|50|51)/s, goodput [345]/s \([0-9]+ % in time\), capacity [0-9.]+/s refused 4[0-9]/s: displaced 4[0-9] p99 [0-9.]+s of the last 10 s, above the objective of 300ms$`)
		if got := rate(); !outage.MatchString(got) {
			t.Errorf("in the outage: %s", got)
		}
		_, body := get(t, a, "GET", "/api/v1/explain?limiter=app&format=json")
		var x Explanations
		if err := json.Unmarshal([]byte(body), &x); err != nil || x.Limiters[0].Rates.Offered < 49 || x.Limiters[0].Latency.Target < 0.9 || x.Limiters[0].WindowSeconds != 10 {
			t.Errorf("%v: %s", err, body)
		}
		if strings.Contains(body, "so far, within") || !strings.Contains(body, "since the start; the objective is held against the last window") {
			t.Errorf("the latency since the start is held against the objective: %s", body)
		}
		if err := lim.SetObserve(true); err != nil {
			t.Fatal(err)
		}
		load(50, time.Second, 5*time.Second)
		if got := rate(); !strings.Contains(got, "nobody is refused: it only observes; would be, per second: displaced 4") {
			t.Errorf("observing: %s", got)
		}
		stop()
		time.Sleep(10 * time.Second)
		if got := rate(); !strings.Contains(got, "; that was 1") {
			t.Errorf("when nothing is measured any more: %s", got)
		}
	})
}

// A law that sits at its minimum.
type sits struct{ climber }

func (sits) Begin(uint64) limit.State { return sits{} }

func (sits) Bounds() (low, high int) { return 7, 9 }

func (sits) Next(int, *limit.Window) limit.Move { return limit.Move{Limit: 7} }

// beyond has limiters whose fields are not those of TestEveryFieldIsTheLimiters: one that stands at
// its minimum while more is offered, one whose limit was raised by a call, and one behind which all has slowed.
func beyond(t *testing.T, seen comparer) {
	t.Helper()
	lim, a := newAdmin(goodput.Config{Limit: sits{}})
	for range 2000 { // in 4 s; 7 slots of 100 ms, as is believed at first, serve 70/s
		lim.TryAcquire()
		time.Sleep(2 * time.Millisecond)
	}
	if s := seen.compare(t, lim, a); s.LimitFloored == 0 || s.LimitMin != 7 || s.LimitMax != 9 {
		t.Errorf("not at the floor: %+v", s.Stats)
	}
	lim, a = newAdmin(goodput.Config{Limit: limit.Fixed(2), Objective: time.Second})
	if err := lim.SetLimit(3); err != nil {
		t.Fatal(err)
	}
	for i := range 6200 {
		_ = lim.Do(t.Context(), func(context.Context) error { time.Sleep(time.Duration(20+i/6000*80) * time.Millisecond); return nil })
	}
	if s := seen.compare(t, lim, a); !s.Slowed || s.LimitCalledUp != 1 {
		t.Errorf("not slowed: %v, %v, %.2f; %d", s.Slowed, s.Baseline, s.SlowedBy, s.LimitCalledUp)
	}
}
