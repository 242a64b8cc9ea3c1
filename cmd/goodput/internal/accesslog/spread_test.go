package accesslog

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Servers that write whole seconds pile up what arrived in each of them at its
// beginning. Spread, the arrivals of a second are even over it, those of a log with
// a finer stamp stay where they are, and the order of the lines changes nothing.
func TestSpread(t *testing.T) {
	const n, seconds = 20_000, 10
	line := func(i int, fraction string) string {
		return fmt.Sprintf(`192.0.2.1 - - [21/Jan/2019:08:00:%02d%s +0000] "GET /%d HTTP/1.1" 200 0 "-" "-" 0.000 0.000`, i%seconds, fraction, i)
	}
	var whole []string
	for i := range n {
		whole = append(whole, line(i, ""))
	}
	arrivals := func(lines []string) (at []int64, spread int64) {
		name := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Open([]string{name}, Options{Spread: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for r, err := range l.Records() {
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, r.Arrival)
		}
		return at, l.Summary().Files[0].Spread
	}
	at, spread := arrivals(whole)
	if spread != n {
		t.Errorf("%d of %d spread", spread, n)
	}
	var sum, sumsq float64
	for _, a := range at {
		f := float64(a%1e9) / 1e9
		sum, sumsq = sum+f, sumsq+f*f
	}
	mean, variance := sum/n, sumsq/n-sum/n*sum/n
	// Even over a second: mean 1/2, variance 1/12; four standard errors of 20,000.
	if math.Abs(mean-0.5) > 4*math.Sqrt(1.0/12/n) || math.Abs(variance-1.0/12) > 4*math.Sqrt(1.0/180/n) {
		t.Errorf("fractions have the mean %.4f and the variance %.4f, want .5 and .0833", mean, variance)
	}
	var reversed []string
	for i := range n {
		reversed = append(reversed, whole[n-1-i])
	}
	again, _ := arrivals(reversed)
	for i := range at {
		if at[i] != again[i] {
			t.Fatalf("arrival %d is %d, and %d with the lines reversed", i, at[i], again[i])
		}
	}
	// One stamp with a fraction among the first, and nothing is spread.
	fine, spread := arrivals([]string{line(1, ""), line(2, ".000"), line(3, ".250"), line(4, "")})
	if spread != 0 || fine[0]%1e9 != 0 || fine[1]%1e9 != 0 || fine[3]%1e9 != 0 {
		t.Errorf("fine stamps: %v, %d spread", fine, spread)
	}
}
