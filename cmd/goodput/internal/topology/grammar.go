// Package topology has what a plan is made from: the small grammars of its flags,
// and the YAML file of a service in layers. Both say durations, services and ranges
// alike.
package topology

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/internal/plan"
)

const serviceForms = "50ms, 50ms:fixed, 50ms:exp, 50ms:lognormal:2 or 50ms:p99:300ms, with spaces or colons"

// A Service is a service time: its mean, and its shape if that is known.
type Service struct {
	plan.Service
	Assumed bool // the shape was not said: exponential
}

// UnmarshalText parses "50ms", "50ms:fixed", "50ms:exp", "50ms:lognormal:2" (the
// coefficient of variation) and "50ms:p99:300ms"; spaces do for colons, as in the
// scenarios of simulate.
func (s *Service) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("%q is not a service time, such as %s", text, serviceForms)
	parts := strings.Split(strings.Join(strings.Fields(string(text)), ":"), ":")
	mean, err := time.ParseDuration(parts[0])
	if err != nil || len(parts) > 3 {
		return wrong
	}
	out := Service{Service: plan.Service{Mean: mean}}
	shape, value := "", ""
	if len(parts) > 1 {
		shape = parts[1]
	}
	if len(parts) > 2 {
		value = parts[2]
	}
	switch {
	case len(parts) == 1:
		out.Assumed = true
	case (shape == "exp" || shape == "exponential") && len(parts) == 2:
	case shape == "fixed" && len(parts) == 2:
		out.Shape = plan.Fixed
	case shape == "lognormal" && value != "":
		out.Shape = plan.Lognormal
		if out.CV, err = strconv.ParseFloat(value, 64); err != nil {
			return fmt.Errorf("%q has no coefficient of variation: %q is not a number such as 2", text, value)
		}
	case shape == "p99" && value != "":
		out.Shape = plan.Tailed
		if out.P99, err = time.ParseDuration(value); err != nil {
			return fmt.Errorf("%q has no 99th percentile: %q is not a duration such as 300ms", text, value)
		}
	default:
		return wrong
	}
	if err := out.Validate(); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	*s = out
	return nil
}

// String returns the service as its flag takes it.
func (s Service) String() string {
	switch {
	case s.Assumed:
		return s.Mean.String()
	case s.Shape == plan.Fixed:
		return s.Mean.String() + ":fixed"
	case s.Shape == plan.Lognormal:
		return fmt.Sprintf("%v:lognormal:%g", s.Mean, s.CV)
	case s.Shape == plan.Tailed:
		return fmt.Sprintf("%v:p99:%v", s.Mean, s.P99)
	}
	return s.Mean.String() + ":exp"
}

// A Burst is a load that lasts: a multiple of the completion rate, and how long.
type Burst plan.Burst

// UnmarshalText parses "2x:1s".
func (b *Burst) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("%q is not a burst of more than 1x to 1000x for 1ms to 24h, such as 2x:1s", text)
	factor, length, ok := strings.Cut(string(text), ":")
	number, times := strings.CutSuffix(factor, "x")
	f, err := strconv.ParseFloat(number, 64)
	// The negation refuses NaN as well.
	if !ok || !times || err != nil || !(f > 1 && f <= 1000) {
		return wrong
	}
	d, err := time.ParseDuration(length)
	if err != nil || d < time.Millisecond || d > 24*time.Hour {
		return wrong
	}
	*b = Burst{Factor: f, Length: d}
	return nil
}

// A Percentile is a share of requests, 0.5 to 0.999.
type Percentile float64

// UnmarshalText parses "99", "p99", "99.9" and "0.99".
func (p *Percentile) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(strings.TrimPrefix(string(text), "p"), 64)
	if f > 1 {
		f = math.Round(f*1e7) / 1e9 // 99.9/100 is a hair above 0.999
	}
	if err != nil || !(f >= 0.5 && f <= 0.999) {
		return fmt.Errorf("%q is not a percentile of 50 to 99.9, such as 99", text)
	}
	*p = Percentile(f)
	return nil
}

// A Range is a whole number that moves between two others.
type Range plan.Range

// UnmarshalText parses "6000" and "112-900".
func (r *Range) UnmarshalText(text []byte) error {
	low, high, moves := strings.Cut(string(text), "-")
	if !moves {
		high = low
	}
	lo, err := strconv.Atoi(strings.TrimSpace(low))
	hi, err2 := strconv.Atoi(strings.TrimSpace(high))
	if err != nil || err2 != nil || lo < 1 || hi < lo || hi > most {
		return fmt.Errorf("%q is neither a whole number such as 6000 nor a range such as 112-900", text)
	}
	*r = Range{lo, hi}
	return nil
}
