package accesslog

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestStamps compares with package time over random instants, zones and
// notations, and over what package time refuses.
func TestStamps(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	layouts := []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.000Z0700", "2006-01-02 15:04:05.999999999 -0700", "2006-01-02 15:04:05,000 -07:00",
		"02/Jan/2006:15:04:05 -0700", "02/Jan/2006:15:04:05.000 -0700", "2006-01-02T15:04:05-07", "2006-01-02 15:04:05.000000",
		"02/Jan/2006:15:04:05.000",
	}
	last := time.Date(2261, 12, 31, 23, 0, 0, 0, time.UTC).Unix()
	for i := range 50_000 {
		zone := time.FixedZone("", (rng.IntN(48)-24)*1800)
		at := time.Unix(86400+rng.Int64N(last-86400), rng.Int64N(1e9)).In(zone)
		layout := layouts[i%len(layouts)]
		text := at.Format(layout)
		model, err := time.ParseInLocation(layout, text, zone)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := readStamp([]byte(text), zone); !ok || got != model.UnixNano() {
			t.Fatalf("seed %d: %s: %d %t, want %d", seed, text, got, ok, model.UnixNano())
		}
		// One byte wrong: both refuse, or both agree.
		b := []byte(text)
		b[rng.IntN(len(b))] = "0123456789:-+/. TZJx"[rng.IntN(20)]
		got, ok := readStamp(b, zone)
		if model, err := time.ParseInLocation(layout, string(b), zone); err == nil && ok && model.UnixNano() != got && model.Year() > 1970 && model.Year() < 2261 {
			t.Fatalf("seed %d: %s: %d, want %d", seed, b, got, model.UnixNano())
		}
	}
	for _, text := range []string{
		"", "x", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-00-01T00:00:00Z", "2024-01-00T00:00:00Z", "2024-01-32T00:00:00Z",
		"1969-12-31T23:59:59Z", "2262-01-01T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:61Z",
		"2024-01-01T00:00:00.Z", "2024-01-01T00:00:00+25:00", "2024-01-01T00:00:00+01:60", "2024-01-01T00:00:00 CET", "29/Feb/2023:00:00:00 +0000",
		"01/Foo/2024:00:00:00 +0000", "01/Jan/2024:00:00:00 +1", "01/Jan/2024 00:00:00",
	} {
		if ns, ok := readStamp([]byte(text), nil); ok {
			t.Errorf("%q is %v", text, time.Unix(0, ns).UTC())
		}
	}
	if ns, ok := readStamp([]byte("2016-12-31T23:59:60Z"), nil); !ok || ns != time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano() {
		t.Error("a leap second is refused")
	}
}

// TestDecimals compares with exact fractions.
func TestDecimals(t *testing.T) {
	const seed = 8
	rng := rand.New(rand.NewPCG(seed, 0))
	units := []int64{1, 999, 1e3, 1e6, 1e9, 60e9, 100_000}
	for range 50_000 {
		text := big.NewInt(rng.Int64N(1 << rng.IntN(50))).String()
		if n := rng.IntN(10); n > 0 {
			text += "." + strings.Repeat("0", rng.IntN(3)) + big.NewInt(rng.Int64N(1e6)).String()
		}
		unit := units[rng.IntN(len(units))]
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatal(text)
		}
		exact.Mul(exact, new(big.Rat).SetInt64(unit))
		want := new(big.Int).Quo(exact.Num(), exact.Denom())
		d, ok := readDecimal([]byte(text))
		if !ok {
			t.Fatalf("%q is no number", text)
		}
		got, fits := d.times(unit)
		if fits != want.IsInt64() || fits && got != want.Int64() {
			t.Fatalf("seed %d: %s x %d = %d %t, want %v", seed, text, unit, got, fits, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "1..2", "1.2.3", "0x1", "1 ", "1234567890123456789", "NaN", "Inf"} {
		if d, ok := readDecimal([]byte(text)); ok {
			t.Errorf("%q is %+v", text, d)
		}
	}
	for text, want := range map[string]decimal{"5e-05": {0, 50_000}, "1.5e3": {1500, 0}, "2E+2": {200, 0}} {
		if d, ok := readNumber([]byte(text)); !ok || d != want {
			t.Errorf("%s is %+v, %t", text, d, ok)
		}
	}
	for _, text := range []string{"1e30", "-1e2", "e5", "1e", "0x1p3e", "Infe"} {
		if d, ok := readNumber([]byte(text)); ok {
			t.Errorf("%q is %+v", text, d)
		}
	}
}
