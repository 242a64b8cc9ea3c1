package flags

import (
	"encoding"
	"strings"
	"testing"
	"time"
)

// C059: a duration that overflows, is no number, negative or zero where that
// means nothing is an error with the text in it, never a wrapped-around value.
func TestBadValuesAreOneSentence_C059(t *testing.T) {
	for _, c := range []struct {
		value encoding.TextUnmarshaler
		texts []string
	}{
		{new(Span), []string{"", "1", "0", "0s", "-1s", "1e300s", "10000000000s", "9223372036854775807h", "NaN", "999us", "24h1ns", "1 s"}},
		{new(Pause), []string{"", "5", "-1s", "1e300s", "10000000000s", "25h"}},
		{new(Size), []string{"", "0", "-1", "1e300", "NaN", "Inf", "-64MiB", "1.3B", "64 MiB", "64mib", "1125899906842625", "MiB"}},
		{new(Count), []string{"", "0", "-5", "1.5", "1e3", "NaN", "1048577", "99999999999999999999"}},
		{new(Address), []string{"", "foo", "8080", ":99999", ":http", ":-1", "::1:80", "a:b:c"}},
		{new(Network), []string{"", "10.0.0.0/33", "localhost", "10/8", "1.2.3.4/"}},
	} {
		for _, text := range c.texts {
			err := c.value.UnmarshalText([]byte(text))
			if err == nil {
				t.Errorf("%T accepts %q as %v", c.value, text, c.value)
				continue
			}
			if msg := err.Error(); !strings.Contains(msg, `"`+text+`"`) || strings.Contains(msg, "\n") || !strings.Contains(msg, "such as") && !strings.Contains(msg, "whole number of") {
				t.Errorf("%T %q: %q does not say in one sentence what it got and what is allowed", c.value, text, msg)
			}
		}
	}
}

func TestGoodValues(t *testing.T) {
	var (
		span  Span
		pause Pause
		size  Size
		count Count
		addr  Address
	)
	for _, c := range []struct {
		value encoding.TextUnmarshaler
		text  string
		same  func() bool
	}{
		{&span, "400ms", func() bool { return span.Duration() == 400*time.Millisecond }},
		{&span, "24h", func() bool { return span.Duration() == 24*time.Hour }},
		{&pause, "0s", func() bool { return pause == 0 }},
		{&pause, "0", func() bool { return pause == 0 }},
		{&size, "64MiB", func() bool { return size == 64<<20 }},
		{&size, "1.5GiB", func() bool { return size == 3<<29 }},
		{&size, "100kB", func() bool { return size == 100_000 }},
		{&size, "4096", func() bool { return size == 4096 }},
		{&size, "1024TiB", func() bool { return size == 1<<50 }},
		{&count, "60", func() bool { return count == 60 }},
		{&addr, "off", func() bool { return addr == Off }},
		{&addr, "[::1]:0", func() bool { return addr == "[::1]:0" }},
	} {
		if err := c.value.UnmarshalText([]byte(c.text)); err != nil {
			t.Errorf("%T %q: %v", c.value, c.text, err)
		} else if !c.same() {
			t.Errorf("%T %q was read as %v", c.value, c.text, c.value)
		}
	}
}
