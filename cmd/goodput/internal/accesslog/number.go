package accesslog

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
	"time"
)

// Numbers are read from bytes and stay integers: a binary fraction cannot hold
// 0.001, and an arrival in seconds since 1970 has more digits than a float64.

// nano is the scale of a decimal: nine digits behind the point.
const nano = 1_000_000_000

// maxSpan is the longest duration that is believed, a year: it keeps every sum
// of a few durations and an instant inside 63 bits.
const maxSpan = 366 * 24 * time.Hour

// A decimal is whole + nanos/1e9, and not negative.
type decimal struct{ whole, nanos int64 }

// scaleOf[n] is 10^(9-n): what n digits behind the point count.
var scaleOf = [...]int64{1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0}

// readDecimal reads all of b, as digits with or without a point and more digits.
// Digits beyond the ninth behind the point are dropped.
func readDecimal(b []byte) (d decimal, ok bool) {
	i := 0
	for ; i < len(b) && isDigit(b[i]); i++ {
		if i == 18 { // 10^18 fits 63 bits, the next digit may not
			return d, false
		}
		d.whole = d.whole*10 + int64(b[i]-'0')
	}
	if i == 0 {
		return d, false
	}
	if i == len(b) {
		return d, true
	}
	if b[i] != '.' || i+1 == len(b) {
		return d, false
	}
	digits := 0
	for _, c := range b[i+1:] {
		if !isDigit(c) {
			return d, false
		}
		if digits < 9 {
			d.nanos = d.nanos*10 + int64(c-'0')
			digits++
		}
	}
	d.nanos *= scaleOf[digits]
	return d, true
}

// readNumber is readDecimal that takes an exponent too, as programs write small
// numbers to JSON: 5e-05.
func readNumber(b []byte) (d decimal, ok bool) {
	if d, ok = readDecimal(b); ok || !bytes.ContainsAny(b, "eE") {
		return d, ok
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(f >= 0 && f < 1e18) {
		return d, false
	}
	whole, frac := math.Modf(f)
	return decimal{int64(whole), int64(frac * nano)}, true
}

// times returns d x unit, in the unit's unit; not ok above 63 bits.
func (d decimal) times(unit int64) (n int64, ok bool) {
	hi, lo := bits.Mul64(uint64(d.whole), uint64(unit))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	fh, fl := bits.Mul64(uint64(d.nanos), uint64(unit)) // < 10^9 x 2^63: the quotient fits
	frac, _ := bits.Div64(fh, fl, nano)
	sum := lo + frac
	return int64(sum), sum <= math.MaxInt64
}

// readSpan reads a duration that is a number of units.
func readSpan(b []byte, unit time.Duration) (time.Duration, bool) {
	d, ok := readDecimal(b)
	if !ok {
		return 0, false
	}
	n, ok := d.times(int64(unit))
	return time.Duration(n), ok && n <= int64(maxSpan)
}

// readInt reads all of b as a count of at most 31 bits.
func readInt(b []byte) (n int, ok bool) {
	if len(b) == 0 || len(b) > 10 {
		return 0, false
	}
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, n <= math.MaxInt32
}

// readStatus reads a status of one to three digits; "-", "" and "-1" are none.
func readStatus(b []byte) (status int, ok bool) {
	if isDash(b) || string(b) == "-1" {
		return NoStatus, true
	}
	n, ok := readInt(b)
	return n, ok && len(b) <= 3
}

// isDash says whether a field stands for nothing.
func isDash(b []byte) bool { return len(b) == 0 || len(b) == 1 && b[0] == '-' }

func isDigit(c byte) bool { return c-'0' <= 9 }
