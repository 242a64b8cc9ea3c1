package live

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/internal/hist"
)

// distinct fills every number of v with one that no other has: n and up, and durations as seconds.
func distinct(n *int64, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				distinct(n, v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			distinct(n, v.Index(i))
		}
	case reflect.Pointer:
		if v.Type().Elem() == reflect.TypeFor[Quantiles]() {
			v.Set(reflect.New(v.Type().Elem()))
			distinct(n, v.Elem())
		}
	case reflect.Int, reflect.Int64:
		*n++
		if v.SetInt(*n); v.Type() == reflect.TypeFor[time.Duration]() {
			v.SetInt(*n * int64(time.Second))
		}
	case reflect.Uint64:
		*n++
		v.SetUint(uint64(*n))
	case reflect.Float64:
		*n++
		v.SetFloat(float64(*n))
	}
}

// Each column of the history is what its name says, and there are those that Series promises.
func TestEachColumnIsWhatItsNameSays(t *testing.T) {
	var s goodput.Stats
	v := View{Name: "a"}
	n := int64(0)
	distinct(&n, reflect.ValueOf(&v).Elem())
	distinct(&n, reflect.ValueOf(&s).Elem())
	v.Rates.Reasons = map[string]float64{"queue_full": 1e6, "client": 1e6 + 1, "expired_in_queue": 0}
	if n >= 1e6 {
		t.Fatalf("%d numbers: those of the reasons are not distinct any more", n)
	}
	want := map[string]float64{
		"offered": v.Rates.Offered, "throughput": v.Rates.Throughput, "goodput": v.Rates.Goodput, "refused": v.Rates.Refused,
		"latency_p50": v.Latency.P50, "latency_p99": v.Latency.P99, "wait_p50": v.Wait.P50, "wait_p99": v.Wait.P99,
		"service_p50": v.Service.P50, "service_p99": v.Service.P99,
		"limit": float64(s.Limit), "in_use": float64(s.InUse), "waiting": float64(s.Waiting), "depth": float64(s.Depth),
		"age_seconds": s.Age.Seconds(), "derived_depth": float64(s.Derivation.Depth),
		"reason.queue_full": 1e6, "reason.client": 1e6 + 1,
	}
	got := map[string]float64{}
	for name, c := range historyOf([]*point{{at: epoch, names: []string{"a"}, rows: []row{rowOf(&s, &v)}}}, []string{"a"}).Limiters["a"] {
		got[name] = float64(c[0])
	}
	for name, w := range want {
		if got[name] != w || w == 0 {
			t.Errorf("%s is %v, want %v", name, got[name], w)
		}
	}
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		t.Errorf("columns %q, want %q", a, b)
	}
}

// Each quantile is at its own percentile, and each of the three is of its own histogram. Of 100
// durations 60 are in one bucket, 32 in the next, and so on: the p50, the objective's p90, the
// p95 and the p99 are in four.
func TestEachQuantileIsAtItsPercentile(t *testing.T) {
	at := func(shift, i int) float64 { return hist.Mid(100+10*shift+2*i, 0.5) }
	fill := func(h *goodput.Histogram, shift int) {
		for i, n := range []uint64{60, 32, 5, 3} {
			h.AddN(time.Duration(at(shift, i)*float64(time.Second)), n)
		}
	}
	var w window
	s := &goodput.Stats{}
	s.Derivation.Percentile = 0.9
	s.Service[goodput.Completed], s.Service[goodput.Late], s.Service[goodput.Failed] = &goodput.Histogram{}, &goodput.Histogram{}, &goodput.Histogram{}
	w.look(epoch, s)
	fill(&s.Latency, 0)
	fill(&s.Wait[goodput.WaitAdmitted], 1)
	fill(s.Service[goodput.Completed], 2)
	s.Service[goodput.Late].AddN(time.Duration(at(2, 3)*float64(time.Second)), 1)
	fill(s.Service[goodput.Failed], 5) // what has failed says nothing of the service
	_, q := w.look(epoch.Add(time.Second), s)
	for i, got := range q {
		count := uint64(100)
		if i == ofService {
			count++
		}
		// 60 of 100 are in the first, 92 up to the second, 97 up to the third.
		for name, x := range map[string][2]float64{"p50": {got.P50, at(i, 0)}, "target": {got.Target, at(i, 1)}, "p95": {got.P95, at(i, 2)}, "p99": {got.P99, at(i, 3)}} {
			lower, upper := hist.Mid(hist.Index(time.Duration(x[1]*float64(time.Second))), 0), hist.Bound(hist.Index(time.Duration(x[1]*float64(time.Second))))
			if x[0] < lower || x[0] > upper {
				t.Errorf("quantity %d: %s is %v, want it between %v and %v", i, name, x[0], lower, upper)
			}
		}
		if got.Count != count || got.Over || got.TargetOver {
			t.Errorf("quantity %d: %+v", i, got)
		}
	}
}
