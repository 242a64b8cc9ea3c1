package plan

import (
	"math"
	"strings"
	"testing"
	"time"
)

// The sheet says what callers sign for: retries too. What is open stands apart, and
// a number says what it is of.
func TestSheetWords(t *testing.T) {
	in := sixty(exp50)
	in.Attempts, in.RetryInterval, in.Depth = 3, time.Second, 480
	sheet := plan(t, in).Markdown("x")
	said(t, sheet, "1.5x becomes 3.26x, 3x becomes 7.91x", "try at most 3 times in all, 1s apart",
		"without a bound on the queue, every answer is late from |", "3.9s on |", "In a queue 480 deep the last in line waits 400ms",
		"## Still open: to be settled before anybody signs", "- Error: depth 480")
	for line := range strings.Lines(sheet) {
		if strings.Contains(line, "Error") && !strings.HasPrefix(line, "- ") {
			t.Errorf("among what is agreed: %s", line)
		}
	}
	in.Attempts, in.Depth = 0, 0
	sheet = plan(t, in).Markdown("x")
	said(t, sheet, "try a bounded number of times")
	if strings.Contains(sheet, "becomes") || strings.Contains(sheet, "Still open") {
		t.Errorf("nobody retries, nothing is open:\n%s", sheet)
	}
}

// What is printed as in time and as refused adds up to what is printed as offered.
func TestShown(t *testing.T) {
	for _, c := range []struct{ offered, inTime, refused, want float64 }{
		{18000, 5950.4, 12030, 12050},
		{1731, 1153, 577.1, 581}, // 1150 of three figures
		{12000, 1199, 10801, 10800},
		{100_000, 99_900, 90, 100},
		{0.3, 0.1, 0.2, 0.2},
		{300, 100, 150, 150}, // 50 come too late
	} {
		e := Expected{Offered: c.offered, InTime: c.inTime, Refused: c.refused}
		if _, got := e.shown(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v refused, want %v", c, got, c.want)
		}
	}
	for share, want := range map[float64]string{0.999: "99.9 %", 0.9995: "99.95 %", 0.99002: "99 %", 1: "100 %"} {
		if got := percent(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
}
