package plan

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Numbers as people read them: three figures and a unit.

// brief returns a time given in seconds: "49.9ms", "8.33s", "41.7s", "1h2m".
func brief(s float64) string {
	switch {
	case s <= 0 || math.IsNaN(s):
		return "0s"
	case s > 9999*3600:
		return "over a year"
	}
	d := seconds(s)
	if d == 0 {
		return "0s"
	}
	unit := math.Pow(10, math.Floor(math.Log10(float64(d)))-2)
	if d >= 100*time.Second {
		unit = float64(time.Second)
	}
	if unit > 1 {
		d = time.Duration(math.Round(float64(d)/unit) * unit)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// figures returns a number to four figures without an exponent: "1200", "66.67".
func figures(f float64) string {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return "0"
	}
	digits := 3 - int(math.Floor(math.Log10(math.Abs(f))))
	if digits <= 0 {
		return fmt.Sprintf("%.0f", f)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.*f", min(digits, 6), f), "0"), ".")
}

// perSecond returns "1200/s".
func perSecond(f float64) string { return figures(f) + "/s" }

// percent returns a share as "21.7 %": three figures, but never more exact than
// a hundredth, and never 0 or 100 for what is not.
func percent(share float64) string {
	p := 100 * share
	switch {
	case p > 0 && p < 0.01:
		return "< 0.01 %"
	case p > 99.99 && p < 100:
		return "> 99.99 %"
	case p > 99 && p < 100:
		return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", p), "0"), ".") + " %"
	}
	return fmt.Sprintf("%.3g %%", p)
}

// size returns bytes in decimal units: "20.1MB", as flags take them.
func size(n int64) string {
	f := float64(n)
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if f < 1000 {
			return fmt.Sprintf("%.3g%s", f, unit)
		}
		f /= 1000
	}
	return fmt.Sprintf("%.4g%s", f, "TB")
}

// quantileName returns "p99" for 0.99.
func quantileName(q float64) string { return fmt.Sprintf("p%g", math.Round(q*1e5)/1e3) }

// miss returns what a percentile leaves, as "1 %".
func miss(q float64) string { return fmt.Sprintf("%g %%", math.Round((1-q)*1e5)/1e3) }

// plural returns "1 slot", "60 slots".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
