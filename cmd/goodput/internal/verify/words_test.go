package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// Whoever wrote the report to a file is told the answer, the reason and the worst figure.
func TestLine(t *testing.T) {
	for name, want := range map[string]string{
		"certified": "certified: all 11 criteria are met, up to 10x the capacity of 400/s; goodput at 10x is 99.1 %",
		"collapsed": "not certified: 4 of 11 criteria are not met: goodput, p99-flat, no-hanging, recovery; goodput at 10x is 0 %",
		"void":      "no answer: the load was not offered in time: at 10x the generator was 38 ms late at p99, more than 5 ms",
		"dead":      "not certified: 3 of 11 criteria are not met: below-capacity, goodput, no-hanging",
		"nothing":   "no answer: nothing was judged",
	} {
		if got := samples()[name].Line(); got != want {
			t.Errorf("%s: %s\nwant: %s", name, got, want)
		}
	}
	if got := hostileReport().Line(); strings.ContainsAny(got, "\x1b\n\r") {
		t.Errorf("%q", got)
	}
}

// A percentile is shown where at least five lie beyond it.
func TestPercentilesOfFewAreNotShown(t *testing.T) {
	for _, c := range []struct {
		n              int64
		p50, p99, p999 bool
	}{
		{9, false, false, false},
		{10, true, false, false},
		{499, true, false, false},
		{500, true, true, false},
		{4999, true, true, false},
		{5000, true, true, true},
	} {
		s := Step{Result: &load.Result{Latency: load.HistogramOf(map[time.Duration]int64{time.Millisecond: c.n})}}
		for key, want := range map[string]bool{"latency_p50_seconds": c.p50, "latency_p99_seconds": c.p99, "latency_p999_seconds": c.p999} {
			if got := figureOf(key).of(&Report{}, &s).there(); got != want {
				t.Errorf("%s of %d is there: %v, want %v", key, c.n, got, want)
			}
		}
	}
}

// Advice is for who has nothing in front of the service, and not for who refuses in vain.
func TestAdvice(t *testing.T) {
	if got := collapsedReport().advice(); !strings.Contains(got, "tells nobody no") {
		t.Errorf("a collapse: %q", got)
	}
	refuses := collapsedReport()
	for i := range refuses.Steps {
		refuses.Steps[i].Result.Refused = refuses.Steps[i].Result.Offered / 3
	}
	if got := refuses.advice(); got != "" {
		t.Errorf("who refuses a third: %q", got)
	}
	if got := voidReport().advice(); !strings.HasPrefix(got, "The machine that sends was too busy") {
		t.Errorf("a late generator: %q", got)
	}
	if got := certifiedReport().advice(); got != "" {
		t.Errorf("certified: %q", got)
	}
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 400 * time.Microsecond: "0.40 ms", 400 * time.Millisecond: "400 ms", time.Second: "1 s", 1500 * time.Millisecond: "1.5 s",
		96 * time.Second: "96 s", 150 * time.Second: "2m30s",
	} {
		if got := span(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
	for s, want := range map[string]string{"": "", "p99 is": "p99 is.", "the end.": "The end.", "a no": "A no.", "1 of": "1 of."} {
		if got := sentence(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

// A service that fails in a hundred ways fills no page with them.
func TestManyStatusesAreAFew(t *testing.T) {
	r := good()
	for status := range 100 {
		at(r, 3).Status[500+status] = 1
		at(r, 3).Failed++
	}
	Judge(r)
	var b strings.Builder
	if err := r.Text(&b, 80, false); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Count(text, "with status 5") > maxKinds || !strings.Contains(text, "kinds more") {
		t.Errorf("all of them are named:\n%s", text)
	}
}

// Who fails at once is not told that its queue grows.
func TestAdviceIsOfAQueueOnly(t *testing.T) {
	queue, errors := good(), good()
	for _, load := range []float64{1.5, 3, 10} {
		x := at(queue, load)
		takes(x, 1500, &x.TimedOut)
		x.TimedOut, x.Refused = x.TimedOut+x.Refused, 0
		x = at(errors, load)
		takes(x, 1500, &x.Failed)
		x.Failed, x.Refused = x.Failed+x.Refused, 0
	}
	for name, r := range map[string]*Report{"a queue": queue, "errors": errors} {
		Judge(r)
		if said := strings.Contains(r.advice(), "the queue grows"); said != (r == queue) {
			t.Errorf("%s: %q", name, r.advice())
		}
	}
}
