package report

import (
	"math"
	"strings"
	"time"

	"github.com/goodput/goodput/internal/sim"
)

// blocks are the eighths of a line. Nothing at all has a sign of its own: it is what
// a collapse looks like, and a blank would look like the end of the run.
var blocks = []rune("▁▂▃▄▅▆▇█")

const nothing = '·'

// sparkline draws the goodput of series in width columns of length/width each, from
// 0 to top per second. It is blank where the series has ended. What falls into a bin
// is spread evenly over it, so that a column shows the rate of its own stretch.
func sparkline(series []sim.Bin, length time.Duration, top float64, width int) string {
	var b strings.Builder
	column := length.Seconds() / float64(width)
	for c := range width {
		from := column * float64(c)
		n, covered := during(series, from, from+column)
		switch {
		case covered < column/2:
			b.WriteByte(' ')
		case n <= 0:
			b.WriteRune(nothing)
		default:
			level := math.Ceil(n / covered / top * float64(len(blocks)))
			b.WriteRune(blocks[min(max(int(level), 1), len(blocks))-1])
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// during is what was answered in time in [from, to) seconds, and how much of that
// stretch the series covers.
func during(series []sim.Bin, from, to float64) (n, covered float64) {
	begin := 0.0
	for _, bin := range series {
		end := bin.End.Seconds()
		if both := min(end, to) - max(begin, from); both > 0 {
			n += float64(bin.InTime) * both / (end - begin)
			covered += both
		}
		begin = end
	}
	return n, covered
}

// extent is how long the longest series of the policies is, and the highest rate of
// goodput in any bin of them.
func extent(policies []Policy) (length time.Duration, top float64) {
	for _, p := range policies {
		var begin time.Duration
		for _, bin := range p.Runs[0].Series {
			if bin.End > begin {
				top = max(top, float64(bin.InTime)/(bin.End-begin).Seconds())
			}
			begin = bin.End
		}
		length = max(length, begin)
	}
	return length, top
}

// lasted is d as it is said of a run: 3m16s, 8.99s, 0.25s. More figures are of the
// last arrival, not of the run.
func lasted(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
