package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
			if resp, body := ask(q, "*/*"); resp.StatusCode != 200 || body != lim.Explain() || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
				t.Errorf("%s: %d %s", q, resp.StatusCode, body)
			}
		}
		if _, body := ask("/api/v1/explain?limiter=search&format=text", "application/json"); body != lim.Explain() {
			t.Errorf("format does not win over Accept: %s", body)
		}
		if _, body := ask("/api/v1/explain", "*/*"); !strings.HasPrefix(body, lim.Explain()+"\n<img>: idle\n") {
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
			if l.Limiter != "search" || l.Condition != "boundary" || l.State != e.State || len(l.Facts) != len(e.Facts) || len(l.Refused) != 1 {
				t.Fatalf("%+v", l)
			}
			for i, f := range l.Facts {
				if f.Topic != e.Facts[i].Topic || f.Text != e.Facts[i].Text {
					t.Errorf("%+v, want %+v", f, e.Facts[i])
				}
			}
			if r := l.Refused[0]; r.Count != 3 || r.Reason != "queue_full" || r.Outcome != "rejected" || r.Knob != "Depth none" || r.Text != e.Refused[0].Error() || r.RetryAfterSeconds < 1 {
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
