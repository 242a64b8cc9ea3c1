package pressure

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"
)

// A quota is how much CPU time a group has in each period. The zero one has no bound.
type quota struct{ time, period time.Duration }

func (q quota) unlimited() bool { return q.time == 0 }

// cpus returns how many processors that is: 0.5 for 50 of 100 ms.
func (q quota) cpus() float64 { return float64(q.time) / float64(q.period) }

// longest is the most microseconds that are taken for one: a day. The kernel allows a
// period of a second, and 2^44 ns of quota in it, five hours.
const longest = 24 * 3600 * 1e6

func newQuota(length, period int64) (quota, error) {
	if length <= 0 || length > longest || period <= 0 || period > longest {
		return quota{}, fmt.Errorf("a quota of %d in periods of %d µs is none: both are 1 to %d", length, period, int64(longest))
	}
	return quota{time.Duration(length) * time.Microsecond, time.Duration(period) * time.Microsecond}, nil
}

// parseMax parses cpu.max of version 2: "50000 100000", or "max 100000" without a bound.
func parseMax(s string) (quota, error) {
	f := strings.Fields(s)
	if len(f) != 2 {
		return quota{}, fmt.Errorf("%q is not a quota and a period", cut(s))
	}
	period, err := parseNumber(f[1])
	if err != nil {
		return quota{}, err
	}
	if f[0] == "max" {
		return quota{}, nil
	}
	length, err := parseNumber(f[0])
	if err != nil {
		return quota{}, err
	}
	return newQuota(length, period)
}

// A stat is what is counted of a group since it began.
type stat struct {
	periods   uint64 // in which something ran
	throttled uint64 // of those, in which the quota was spent
	usage     time.Duration
}

// before reports whether something in s is less than in o: they are of two groups.
func (s *stat) before(o *stat) bool {
	return s.periods < o.periods || s.throttled < o.throttled || s.usage < o.usage
}

// parseStat parses cpu.stat. Version 2 has usage_usec in it; version 1 has not, and
// usage is then -1. How long threads were throttled, throttled_usec or throttled_time, is
// not looked at: it is summed over processors, so it is not the share of anything.
func parseStat(s string) (stat, error) {
	v, periods, throttled := stat{usage: -1}, 0, 0
	for line := range strings.Lines(s) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "nr_periods", "nr_throttled", "usage_usec":
		default:
			continue
		}
		n, err := parseNumber(value)
		if err == nil && n < 0 {
			err = fmt.Errorf("%d is negative", n)
		}
		if err != nil {
			return stat{}, fmt.Errorf("%s: %w", key, err)
		}
		switch key {
		case "nr_periods":
			v.periods, periods = uint64(n), periods+1
		case "nr_throttled":
			v.throttled, throttled = uint64(n), throttled+1
		case "usage_usec":
			if n > math.MaxInt64/1000 {
				return stat{}, fmt.Errorf("usage_usec: %d is too large", n)
			}
			v.usage = time.Duration(n) * time.Microsecond
		}
	}
	if periods != 1 || throttled != 1 {
		return stat{}, errors.New("nr_periods and nr_throttled are not in it once each")
	}
	return v, nil
}

func parseNumber(s string) (int64, error) {
	s = strings.TrimSpace(s)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", cut(s))
	}
	return n, nil
}

// cut shortens what is quoted in a sentence.
func cut(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// readFile parses a file, and names it in the error.
func readFile[T any](fsys fs.FS, name string, parse func(string) (T, error)) (v T, err error) {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, reason(err))
	}
	v, err = parse(string(b))
	return v, in(name, err)
}

func in(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// reason drops the path from an error of a file system, which is said already.
func reason(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
