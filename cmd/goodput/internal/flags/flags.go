// Package flags has the values that commands take: durations, sizes, counts and
// addresses. Each parses itself and, if it cannot, says in one sentence which
// text it got and what is allowed, so that every command says it alike.
package flags

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/limit"
)

// maxSpan is the longest duration anywhere: arithmetic on a day of nanoseconds
// is far from overflow, and no caller waits longer.
const maxSpan = 24 * time.Hour

// A Span is a duration of 1 ms to 24 h. Zero is what an absent flag has.
type Span time.Duration

// UnmarshalText parses "400ms", "2s", "1m30s".
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < time.Millisecond || d > maxSpan {
		return fmt.Errorf("%q is not a duration of 1ms to 24h, such as 400ms, 2s or 1m30s", text)
	}
	*s = Span(d)
	return nil
}

// Duration returns s for what computes with it.
func (s Span) Duration() time.Duration { return time.Duration(s) }

// A Pause is a duration of 0 to 24 h.
type Pause time.Duration

// UnmarshalText parses as Span does, and allows 0.
func (p *Pause) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 || d > maxSpan {
		return fmt.Errorf("%q is not a duration of 0s to 24h, such as 0s, 5s or 1m30s", text)
	}
	*p = Pause(d)
	return nil
}

// Duration returns p for what computes with it.
func (p Pause) Duration() time.Duration { return time.Duration(p) }

// maxSize is more memory than one machine has; its sum with itself fits int64.
const maxSize = 1 << 50

// A Size is a number of bytes, 1 to 1 PiB.
type Size int64

var units = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
	{"", 1},
}

// UnmarshalText parses "64MiB", "1.5GiB", "100kB", "4096".
func (s *Size) UnmarshalText(text []byte) error {
	for _, u := range units {
		number, ok := strings.CutSuffix(string(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		n *= u.bytes
		// The negation refuses NaN as well.
		if err != nil || !(n >= 1 && n <= maxSize) || n != math.Trunc(n) {
			break
		}
		*s = Size(n)
		return nil
	}
	return fmt.Errorf("%q is not a size of 1B to 1024TiB, such as 64MiB, 1.5GiB or 4096", text)
}

// A Count is a whole number, 1 to limit.Max. Zero is what an absent flag has.
type Count int

// UnmarshalText parses "60".
func (c *Count) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > limit.Max {
		return fmt.Errorf("%q is not a whole number of 1 to %d", text, limit.Max)
	}
	*c = Count(n)
	return nil
}

// An Address is where to listen: host:port, or :port for every interface.
type Address string

// Off is the address of a listener that is not wanted.
const Off Address = "off"

// UnmarshalText checks the form; whether the host is ours only listening tells.
func (a *Address) UnmarshalText(text []byte) error {
	*a = Address(text)
	if *a == Off {
		return nil
	}
	_, port, err := net.SplitHostPort(string(text))
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address to listen on, such as 127.0.0.1:8431, [::1]:8431 or :8080", text)
	}
	return nil
}

// A Network is a range of addresses.
type Network netip.Prefix

// UnmarshalText parses "10.0.0.0/8", and an address alone as itself.
func (n *Network) UnmarshalText(text []byte) error {
	if addr, err := netip.ParseAddr(string(text)); err == nil {
		*n = Network(netip.PrefixFrom(addr, addr.BitLen()))
		return nil
	}
	p, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%q is not an address or a range of addresses, such as 10.0.0.0/8 or ::1", text)
	}
	*n = Network(p)
	return nil
}
