package live

import (
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// While a tick is encoded viewers come and leave, and /api/v1/explain is answered: whoever is asked
// for the state may wait for something, and must not have all wait.
func TestNobodyWaitsForATickToBeEncoded(t *testing.T) {
	lim := named("a")
	entered, release := make(chan bool), make(chan bool)
	asked := 0
	h := New(Config{Limiters: func() []*goodput.Limiter { return []*goodput.Limiter{lim} }, State: func([]Snapshot) any {
		asked++
		entered <- true
		<-release
		return nil
	}})
	h.publish(h.sample(epoch)) // nobody watches: nothing is encoded
	v, _, err := h.join("")
	if err != nil {
		t.Fatal(err)
	}
	h.read(v)
	published := make(chan bool)
	go func() {
		h.publish(h.sample(epoch.Add(time.Second)))
		close(published)
	}()
	<-entered
	others := make(chan bool)
	go func() {
		defer close(others)
		if another, f, err := h.join("a"); err != nil || f.tick.Number != 1 {
			t.Errorf("%v: %+v", err, f)
		} else {
			h.leave(another)
		}
		h.Now(lim)
	}()
	select {
	case <-others:
	case <-time.After(10 * time.Second): // wall clock: what would wait waits for this test
		t.Error("they wait")
	}
	close(release)
	<-published
	<-others
	f := <-v.ticks
	if f.message(""); f.tick.Number != 2 || asked != 1 {
		t.Errorf("tick %d, encoded %d times", f.tick.Number, asked)
	}
}

// What explains a tick is of the instant of that tick: whoever comes between two ticks is sent the
// latest, and the limiter has gone on since.
func TestFactsAreOfTheirTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{Name: "a", Limit: limit.Fixed(1), Depth: goodput.NoQueue})
		w := start(t, those(lim), nil)
		time.Sleep(interval / 2)
		slot, err := lim.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer slot.Release()
		if _, err := lim.Acquire(t.Context()); err == nil {
			t.Fatal("a second one fits")
		}
		v := w.watch(t, "")
		defer v.leave()
		v.history()
		for _, c := range []struct {
			ended, condition string
			refused          int
		}{{"0 of 0 arrivals", "idle", 0}, {"1 of 2 arrivals", "boundary|burst|saturated", 1}} {
			is := v.tick()
			x := is.Limiters[0].Explanation
			ended := ""
			for _, f := range x.Facts {
				if f.Topic == "ended" {
					ended = f.Text
				}
			}
			if !regexp.MustCompile("^"+c.ended).MatchString(ended) || !regexp.MustCompile("^("+c.condition+")$").MatchString(x.Condition) || len(x.Refused) != c.refused || len(x.RefusedBy) != c.refused {
				t.Errorf("tick %d has %d arrivals, and: %q, %q, %d refusals; want %+v", is.Number, is.State.Arrivals[0], ended, x.Condition, len(x.Refused), c)
			}
		}
	})
}

// A parameter that is empty or malformed is a mistake, and does not mean all limiters.
func TestWhatEventsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, those(named("a")), nil)
		for query, want := range map[string]int{
			"?limiter=": 400, "?limiter": 400, "?limiter=%zz": 400, "?%zz": 400, "?limiter=a&limiter=a": 400, "?limiter=b": 404, "?limiter=a": 200, "": 200, "?other=1": 200,
		} {
			v := w.watch(t, query)
			if v.resp.StatusCode != want {
				t.Errorf("%q: %d, want %d", query, v.resp.StatusCode, want)
			}
			if line, _ := v.lines.ReadString('\n'); want == 400 && len(line) < 20 {
				t.Errorf("%q: %q", query, fmt.Sprint(line))
			}
			v.leave()
		}
	})
}
