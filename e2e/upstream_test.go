//go:build linux

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/openloop"
	"github.com/goodput/goodput/e2e/internal/rig"
)

// The service is killed under three times its capacity and started again. While it is
// away everybody is told so, nobody hangs: 502 whose request was with it, and a refusal
// everybody else, since a request that reached nobody may be sent again. Afterwards it is
// used as before. goodput itself stays alive and ready: it is not what broke.
func TestServiceIsKilledAndRestarted(t *testing.T) {
	s := database(t).Serve(t, slots)
	p := protect(t, s.URL())
	base := warm(t, p)
	before := p.Limiter(t)
	const (
		killed    = 3 * time.Second
		restarted = 6 * time.Second
		recovered = 8 * time.Second // 2 s for its first connections to the database
		length    = 11 * time.Second
	)
	done := make(chan openloop.Result, 1)
	start := time.Now()
	go func() { done <- offer(p.URL(), length, false) }()
	time.Sleep(time.Until(start.Add(killed)))
	s.Kill()
	time.Sleep(time.Until(start.Add((killed + restarted) / 2)))
	for _, probe := range []string{"/livez", "/readyz"} {
		if status, _ := ask(t, p, probe); status != http.StatusOK {
			t.Errorf("%s is %d because the service is away", probe, status)
		}
	}
	time.Sleep(time.Until(start.Add(restarted)))
	s.Start(t)
	r := <-done
	after := p.Rest(t, 5*time.Second)

	type part struct{ sent, ok, gone, away, refused, failed, late, other int }
	var up, down, again part
	for _, a := range r.Answers {
		in := &up
		switch {
		case a.Due >= killed-deadline/4 && a.Due < recovered:
			in = &down
		case a.Due >= recovered:
			in = &again
		}
		in.sent++
		switch {
		case a.Err != nil:
			in.other++
			t.Errorf("due at %v: %v", a.Due, a.Err)
		case a.Reason == "unavailable":
			in.away++
		case a.Reason != "":
			in.refused++
		case a.Status == http.StatusOK:
			in.ok++
		case a.Status == http.StatusBadGateway:
			in.gone++
		case outOfTime(a) && !punctual(t, r):
			in.late++
		case a.Status == http.StatusInternalServerError:
			in.failed++ // the database still has the connections of the killed one
		default:
			in.other++
		}
	}
	if up.gone+up.away+up.failed+up.other+again.gone+again.away+again.failed+again.other > 0 || down.gone == 0 || down.away == 0 || down.other > 0 {
		t.Errorf("before %+v, while it was away %+v, afterwards %+v", up, down, again)
	}
	seconds := (length - recovered).Seconds()
	if got := float64(again.ok) / seconds; got < 0.75*capacity && punctual(t, r) {
		t.Errorf("after the restart %.0f/s are served, the capacity is %.0f/s", got, capacity)
	}
	late := up.late + down.late + again.late
	m := p.Metrics(t)
	// Who had been admitted when nobody was there any more has started, by our count, and
	// is refused all the same.
	unreached := int(m[`goodput_upstream_failures_total{kind="unreachable"}`])
	callers := up.ok + down.ok + again.ok + down.gone + unreached + down.failed + late
	if n := started(after) - started(before); n != uint64(callers) {
		t.Errorf("%d requests were started, callers got %d", n, callers)
	}
	if sent := uint64(len(r.Answers)); after.Counts.Arrivals-before.Counts.Arrivals != sent {
		t.Errorf("%d arrivals, %d were sent", after.Counts.Arrivals-before.Counts.Arrivals, sent)
	}
	if n := m.Sum("goodput_upstream_failures_total"); int(n) != down.gone+unreached+late || unreached > down.away {
		t.Errorf("metrics: %v failures of the service, %d of them unreached; callers got %d x 502, %d x 504 and %d x unavailable",
			n, unreached, down.gone, late, down.away)
	}
	told := func(a openloop.Answer) bool { return a.Status == http.StatusBadGateway || a.Reason == "unavailable" }
	figure(t, "while it is away", "%d x 502 and %d x unavailable, p99 %s; %d refused; served again %.0f/s",
		down.gone, down.away, millis(r.Quantile(0.99, openloop.Latency, told)), down.refused, float64(again.ok)/seconds)
	s.Kill()
	p.Leaks(t, base)
}

// A service that was never there: a refusal that says so, and goodput runs.
func TestServiceIsAbsent(t *testing.T) {
	p := protect(t, "http://127.0.0.1:1")
	res, err := http.Get(p.URL() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Goodput-Rejected") != "unavailable" || res.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	if status, text := ask(t, p, "/readyz"); status != http.StatusOK {
		t.Errorf("/readyz is %d %s", status, text)
	}
	if l := p.Rest(t, 5*time.Second); l.Ended("failed") != 1 {
		t.Errorf("%v", l)
	}
	if !strings.Contains(p.Log(), "upstream") {
		t.Errorf("the log says nothing of the upstream:\n%s", p.Log())
	}
}

// ask returns what the admin listener answers.
func ask(t *testing.T, p *rig.Proxy, path string) (int, string) {
	t.Helper()
	status, text, err := p.Ask(path)
	if err != nil {
		t.Fatal(err)
	}
	return status, strings.TrimSpace(text)
}
