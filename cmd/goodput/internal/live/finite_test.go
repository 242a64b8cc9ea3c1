package live

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// scramble fills everything that v has with what its type can be: small and huge numbers, those
// that are none, and names with quotes. It keeps arrays of counters that rise and fall.
func scramble(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				scramble(r, v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			scramble(r, v.Index(i))
		}
	case reflect.Pointer:
		if v.Type().Elem() == reflect.TypeFor[goodput.Histogram]() && r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scramble(r, v.Elem())
		}
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, r.Int64N(1e6), math.MaxInt64, math.MinInt64}[r.IntN(6)])
	case reflect.Uint64:
		v.SetUint([]uint64{0, 1, r.Uint64N(1e6), r.Uint64(), math.MaxUint64}[r.IntN(5)])
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -1e308, r.Float64(), math.Inf(1), math.NaN()}[r.IntN(6)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "a", "\"\n\x00\xff</script>"}[r.IntN(3)])
	}
}

// finiteJSON fails if v has a number that is none: JSON has no words for those, and encoding it
// would fail altogether.
func finiteJSON(t *testing.T, what string, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var back any
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatalf("%s: %v in %s", what, err, b)
	}
	return string(b)
}

// Whatever the statistics say, in whatever order, and whenever: each number of a tick and of the
// history is finite, no rate is negative, and an event has one line of data.
func TestEveryNumberIsFinite(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	tr := &track{}
	now := epoch
	var past []*point
	for range 500 {
		s := &Snapshot{at: now}
		scramble(r, reflect.ValueOf(&s.Stats).Elem())
		for range r.IntN(3) {
			var tenant goodput.TenantState
			scramble(r, reflect.ValueOf(&tenant).Elem())
			s.Tenants = append(s.Tenants, tenant)
		}
		v := tr.follow(s)
		text := finiteJSON(t, "a view", v)
		rates := v.Rates
		if rates.Offered < 0 || rates.Throughput < 0 || rates.Refused < 0 || rates.InTime != nil && (*rates.InTime < 0 || *rates.InTime > 1) {
			t.Fatalf("%+v", rates)
		}
		for _, tenant := range v.Tenants {
			if tenant.Served < 0 {
				t.Fatalf("%+v", tenant)
			}
		}
		past = append(past, &point{at: now, names: []string{v.Name}, rows: []row{rowOf(&s.Stats, &v)}, scene: map[string]float32{"p99": float32(r.NormFloat64()) / float32(r.IntN(2))}})
		if e := string(event("event: tick", v)); !strings.HasSuffix(e, "\n\n") || strings.Count(e, "\n") != 3 || !strings.Contains(e, text) {
			t.Fatalf("%q", e)
		}
		now = now.Add([]time.Duration{0, 1, -time.Second, time.Second, time.Hour}[r.IntN(5)])
	}
	finiteJSON(t, "the history", historyOf(past, []string{"", "a", "b"}))
}

// What cannot be encoded is a comment, which a browser skips, and no event.
func TestWhatCannotBeEncodedIsAComment(t *testing.T) {
	if e := string(event("event: tick", math.NaN())); !strings.HasPrefix(e, ": cannot be shown: ") || strings.Count(e, "\n") != 2 {
		t.Errorf("%q", e)
	}
}
