package topology

import (
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/internal/plan"
)

const ms = time.Millisecond

func TestService(t *testing.T) {
	for text, want := range map[string]Service{
		"50ms":             {plan.Service{Mean: 50 * ms}, true},
		"50ms:exp":         {plan.Service{Mean: 50 * ms}, false},
		"50ms:exponential": {plan.Service{Mean: 50 * ms}, false},
		"50ms exponential": {plan.Service{Mean: 50 * ms}, false},
		"200us:fixed":      {plan.Service{Mean: 200 * time.Microsecond, Shape: plan.Fixed}, false},
		"50ms:lognormal:2": {plan.Service{Mean: 50 * ms, Shape: plan.Lognormal, CV: 2}, false},
		"50ms lognormal 2": {plan.Service{Mean: 50 * ms, Shape: plan.Lognormal, CV: 2}, false},
		"50ms:p99:900ms":   {plan.Service{Mean: 50 * ms, Shape: plan.Tailed, P99: 900 * ms}, false},
	} {
		var s Service
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s: %+v, %v; want %+v", text, s, err, want)
		}
		var again Service
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Errorf("%s prints itself as %s: %v", text, s, err)
		}
	}
	for _, text := range []string{
		"", "50", "ms", "-50ms", "0", "50ms:", "50ms::", "50ms:cauchy", "50ms:exp:2", "50ms:fixed:1", "50ms:lognormal", "50ms:lognormal:",
		"50ms:lognormal:x", "50ms:lognormal:NaN", "50ms:lognormal:-1", "50ms:lognormal:1e9", "50ms:p99", "50ms:p99:10ms", "50ms:p99:10s", "50ms:p99:x",
		"50ms:lognormal:2:3", "2h", "1ns", "1e300s",
	} {
		var s Service
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %+v", text, s)
		} else if !strings.HasPrefix(err.Error(), `"`+text+`"`) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v does not begin with it", text, err)
		}
	}
}

func TestBurstPercentileRange(t *testing.T) {
	var b Burst
	if err := b.UnmarshalText([]byte("2.5x:300ms")); err != nil || b != (Burst{2.5, 300 * ms}) {
		t.Errorf("%+v %v", b, err)
	}
	for _, text := range []string{"", "2x", "2:1s", "x:1s", "1x:1s", "-2x:1s", "NaNx:1s", "2x:", "2x:0s", "2x:25h", "1001x:1s", "2x:1s:1s"} {
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for the burst %+v", text, b)
		}
	}
	for text, want := range map[string]Percentile{"99": 0.99, "p99": 0.99, "0.99": 0.99, "99.9": 0.999, "50": 0.5} {
		var p Percentile
		if err := p.UnmarshalText([]byte(text)); err != nil || float64(p-want) > 1e-12 || float64(want-p) > 1e-12 {
			t.Errorf("%s: %v %v", text, p, err)
		}
	}
	for _, text := range []string{"", "100", "49", "1", "0", "NaN", "-99", "ninety", "p", "1e9"} {
		var p Percentile
		if err := p.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for the percentile %v", text, p)
		}
	}
	for text, want := range map[string]Range{"6000": {6000, 6000}, "112-900": {112, 900}, "112 - 900": {112, 900}} {
		var r Range
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s: %+v %v", text, r, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "900-112", "1-", "a-b", "1-2-3", "99999999999999999999", "1.5"} {
		var r Range
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for the range %+v", text, r)
		}
	}
}
