package goodputprom

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/fleet"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/retry"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

func gather(t *testing.T, all ...prometheus.Collector) []*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry() // sees that what is sent is what was described
	r.MustRegister(all...)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// values are the series of families, their labels as in text.
func values(families []*dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			key := func(suffix string, more ...string) string {
				return f.GetName() + suffix + "{" + strings.Join(append(labels, more...), ",") + "}"
			}
			switch {
			case m.Counter != nil:
				all[key("")] = m.Counter.GetValue()
			case m.Gauge != nil:
				all[key("")] = m.Gauge.GetValue()
			case m.Histogram != nil:
				all[key("_count")] = float64(m.Histogram.GetSampleCount())
				all[key("_sum")] = m.Histogram.GetSampleSum()
				for _, b := range m.Histogram.Bucket {
					all[key("_bucket", fmt.Sprintf("le=%q", fmt.Sprint(b.GetUpperBound())))] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return all
}

// What there is from the first scrape, which rules, dashboards and those who have them rely on. A
// name is for ever.
func TestSeriesAreThose(t *testing.T) {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60), Tenants: &goodput.Tenants{Rows: []goodput.Tenant{{ID: "acme"}}}})
	share, err := fleet.New(lim.SetLimit, fleet.Split{Budget: 60, Surge: 1}, fleet.Place{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer share.Stop()
	tenants := New(lim)
	tenants.Tenants = 1
	var out strings.Builder
	for _, f := range gather(t, tenants, Clients(&retry.Policy{Name: "billing"}), Shares(map[string]*fleet.Share{"default": share})) {
		fmt.Fprintf(&out, "%s %s\n", f.GetName(), strings.ToLower(f.GetType().String()))
		for _, m := range f.Metric {
			fmt.Fprint(&out, "   ")
			for _, l := range m.Label {
				fmt.Fprintf(&out, " %s=%q", l.GetName(), l.GetValue())
			}
			fmt.Fprintln(&out)
		}
	}
	const file = "testdata/series.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("other series than in %s; -rewrite makes it anew:\n%s", file, out.String())
	}
}

// shownAs are the values of the label limiter.
func shownAs(t *testing.T, c *Collector) string {
	t.Helper()
	all := map[string]bool{}
	for _, f := range gather(t, c) {
		for _, m := range f.Metric {
			all[m.Label[slices.IndexFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == "limiter" })].GetValue()] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), " ")
}

// Two limiters of one name break no scrape: they are numbered, and each keeps what it is shown as,
// so that no series of one becomes another's.
func TestLimitersOfOneName(t *testing.T) {
	named := func(name string) *goodput.Limiter {
		return goodput.New(goodput.Config{Name: name, Limit: limit.Fixed(1)})
	}
	a, b, c, d := named("x"), named("x"), named("x-2"), named("x")
	var now []*goodput.Limiter
	col := &Collector{Limiters: func() []*goodput.Limiter { return now }}
	for _, step := range []struct {
		now  []*goodput.Limiter
		want string
	}{
		{nil, ""},
		{[]*goodput.Limiter{a}, "x"},
		{[]*goodput.Limiter{a, b}, "x x-2"},
		{[]*goodput.Limiter{c, b, a, b}, "x x-2 x-2-2"}, // one that is there twice is shown once
		{[]*goodput.Limiter{b, c}, "x-2 x-2-2"},         // b is what it was
		{[]*goodput.Limiter{b, c, d}, "x x-2 x-2-2"},
		{[]*goodput.Limiter{a}, "x"},
	} {
		now = step.now
		if got := shownAs(t, col); got != step.want {
			t.Errorf("%d limiters are shown as %q, want %q", len(now), got, step.want)
		}
	}
	slot, err := a.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slot.Release()
	if err := a.Reconfigure(goodput.Config{Name: "y", Limit: limit.Fixed(1)}); err != nil {
		t.Fatal(err)
	}
	if got := values(gather(t, col))[`goodput_arrivals_total{limiter="y"}`]; got != 1 {
		t.Errorf("a limiter that was renamed has %v arrivals, want 1: %q", got, shownAs(t, col))
	}
}

func scraped(t *testing.T, c prometheus.Collector, accept string) (http.Header, io.Reader) {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	w := httptest.NewRecorder()
	req := httptest.NewRequest("GET", "/metrics", nil)
	req.Header.Set("Accept", accept)
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, req)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Header(), w.Body
}

// C128, C130: 250 ms are 0.25, and 9, 11, 40 and 300 s are in different buckets where a deadline is
// 300 s; what is longer is above the last. A scrape in protobuf has the classic buckets and the
// native ones in one series, each with all that there is.
func TestBothForms_C128_C130(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(10), Objective: 400 * time.Millisecond})
		for _, d := range []time.Duration{250 * time.Millisecond, 9 * time.Second, 11 * time.Second, 40 * time.Second, 300 * time.Second, 301 * time.Second, time.Hour} {
			slot, err := lim.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(d)
			slot.Release()
		}
		c := New(lim)
		c.Longest = func(string) time.Duration { return 300 * time.Second }

		_, body := scraped(t, c, "text/plain")
		text, _ := io.ReadAll(body)
		for le, want := range map[string]int{"0.1": 0, "0.5": 1, "7.5": 1, "10": 2, "30": 3, "60": 4, "300": 5, "+Inf": 7} {
			line := fmt.Sprintf("goodput_request_duration_seconds_bucket{limiter=\"default\",le=%q} %d\n", le, want)
			if !strings.Contains(string(text), line) {
				t.Errorf("no %s", line)
			}
		}
		if strings.Contains(string(text), `le="600"`) {
			t.Error("buckets past what a deadline may be")
		}

		header, body := scraped(t, c, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
		d := expfmt.NewDecoder(body, expfmt.ResponseFormat(header))
		found := 0
		for {
			var f dto.MetricFamily
			if err := d.Decode(&f); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if f.GetType() != dto.MetricType_HISTOGRAM {
				continue
			}
			for _, m := range f.Metric {
				h := m.Histogram
				found++
				native := h.GetZeroCount()
				var in int64
				for _, delta := range h.PositiveDelta {
					in += delta
					native += uint64(in)
				}
				if h.Schema == nil || h.GetSchema() != 3 || len(h.PositiveSpan) == 0 || native != h.GetSampleCount() {
					t.Errorf("%s %v: %d of %d samples are in native buckets of schema %d", f.GetName(), m.Label, native, h.GetSampleCount(), h.GetSchema())
				}
				if n := len(h.Bucket); n < 16 || h.Bucket[n-1].GetCumulativeCount() > h.GetSampleCount() {
					t.Errorf("%s %v: %d classic buckets", f.GetName(), m.Label, n)
				}
			}
		}
		if found != 8 {
			t.Errorf("%d histograms, want 8", found)
		}
	})
}

// C126: after ten idle minutes and one request no value is NaN or infinite, in any format: 0 samples
// are what says that there is no quantile.
func TestIdleIsNoNaN_C126(t *testing.T) {
	for _, observe := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			lim := goodput.New(goodput.Config{Limit: limit.Auto{}, Objective: 400 * time.Millisecond, Observe: observe})
			check := func(when string) {
				for name, v := range values(gather(t, New(lim))) {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Errorf("%s: %s is %v", when, name, v)
					}
				}
				_, body := scraped(t, New(lim), "text/plain")
				if text, _ := io.ReadAll(body); strings.Contains(string(text), "NaN") || strings.Contains(string(text), " +Inf\n") {
					t.Errorf("%s: %s", when, text)
				}
			}
			check("at first")
			time.Sleep(10 * time.Minute)
			check("idle")
			lim.Do(t.Context(), func(context.Context) error { time.Sleep(time.Millisecond); return nil })
			check("after one request")
			time.Sleep(10 * time.Minute)
			check("idle again")
		})
	}
}

// There are as many tenants as were asked for, and what is of the others together is the rest;
// ids that clients invent are theirs. An id that cannot be a label breaks no scrape.
func TestTenantsAreBounded(t *testing.T) {
	rows := []goodput.Tenant{{ID: "acme"}, {ID: strings.Repeat("n", 128)}, {ID: "_other"}, {ID: "a\"b\\c\nd"}, {ID: "quiet"}}
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(100), Tenants: &goodput.Tenants{Rows: rows}})
	for i, id := range []string{rows[0].ID, rows[1].ID, rows[2].ID, rows[3].ID, "invented", "\xff\xfe", ""} {
		for range 10 - i {
			if _, err := lim.AcquireWork(t.Context(), goodput.Work{Tenant: id}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n, want := range map[int]int{0: 0, 1: 2, 2: 3, 1000: 5} { // all but the one called _other, and the others
		c := New(lim)
		c.Tenants = n
		got := map[string]float64{}
		var sum float64
		for name, v := range values(gather(t, c)) {
			if strings.HasPrefix(name, "goodput_tenant_usage") {
				got[name] = v
				sum += v
			}
		}
		if len(got) != want || want > 0 && sum != float64(lim.Stats().InUse) {
			t.Errorf("%d tenants asked for: %d series, want %d; %v in use, want %d: %v", n, len(got), want, sum, lim.Stats().InUse, got)
		}
	}
}

// What calls others shows its retries, and what a fleet shares its units.
func TestClientsAndShares(t *testing.T) {
	p, q := &retry.Policy{Name: "billing", Backoff: 1, Attempts: 2}, &retry.Policy{Name: "billing"}
	for range 3 {
		p.Do(t.Context(), func(context.Context, int) error {
			return retry.Fault{NotExecuted: true}.Mark(fmt.Errorf("busy")) // may be tried again
		})
	}
	told := 0
	share, err := fleet.New(func(units int) error {
		if told++; told == 2 {
			return fmt.Errorf("not now")
		}
		return nil
	}, fleet.Split{Budget: 200, Surge: 1}, fleet.Place{Count: 3, Nth: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer share.Stop()
	share.Set(fleet.Place{Count: 9, Nth: 1}) // fails
	got := values(gather(t, Clients(p, q), Shares(map[string]*fleet.Share{"db": share})))
	s, state := p.Stats(), share.State()
	for name, want := range map[string]float64{
		`goodput_client_attempts_total{dependency="billing"}`:                  float64(s.Attempts),
		`goodput_client_attempts_total{dependency="billing-2"}`:                0,
		`goodput_client_attempts_kept_total{dependency="billing"}`:             float64(s.Kept),
		`goodput_client_retries_total{dependency="billing",result="granted"}`:  float64(s.Budget.Granted),
		`goodput_client_retries_total{dependency="billing",result="refused"}`:  float64(s.Budget.Refused),
		`goodput_client_retry_budget{dependency="billing-2"}`:                  10,
		`goodput_client_calls_total{dependency="billing",outcome="answered"}`:  float64(s.Stops[retry.StopAnswered]),
		`goodput_client_calls_total{dependency="billing",outcome="permanent"}`: float64(s.Stops[retry.StopPermanent]),
		`goodput_client_calls_total{dependency="billing",outcome="exhausted"}`: float64(s.Stops[retry.StopExhausted]),
		`goodput_fleet_budget{limiter="db"}`:                                   200,
		`goodput_fleet_share{limiter="db"}`:                                    float64(state.Share),
		`goodput_fleet_units{limiter="db"}`:                                    float64(state.Units),
		`goodput_fleet_settled{limiter="db"}`:                                  0,
		`goodput_fleet_changes_total{limiter="db",result="applied"}`:           1,
		`goodput_fleet_changes_total{limiter="db",result="failed"}`:            1,
	} {
		if v, there := got[name]; !there || v != want {
			t.Errorf("%s is %v, there: %v, want %v", name, v, there, want)
		}
	}
	if s.Attempts != 6 || s.Calls != 3 || state.Share == state.Units {
		t.Errorf("not the scene: %+v, %+v", s, state)
	}
}
