package live

import (
	"math"
	"strconv"
	"time"

	"github.com/goodput/goodput"
)

const (
	// kept is how many ticks of the past are kept: five minutes. Whoever opens the page does so
	// because something is wrong, and what he needs is how it began.
	kept = int(5 * time.Minute / interval)

	// maxKept is of how many limiters there is a past. A row of 33 numbers of 4 bytes is
	// 132 bytes, 300 of them are 40 KB: 100 limiters take 4 MB, and 256 take 10 MB. Those beyond
	// that are shown as they are now.
	maxKept = 256
)

// The columns of a row; those of the reasons follow.
const (
	colOffered = iota
	colThroughput
	colGoodput
	colRefused
	colLatencyP50
	colLatencyP99
	colWaitP50
	colWaitP99
	colServiceP50
	colServiceP99
	colLimit
	colInUse
	colWaiting
	colDepth
	colAge
	colDerived

	colReasons
)

const columns = colReasons + len(goodput.Stats{}.Refusals)

// columnNames are the names in Series.
var columnNames = func() (names [columns]string) {
	copy(names[:], []string{
		"offered", "throughput", "goodput", "refused",
		"latency_p50", "latency_p99", "wait_p50", "wait_p99", "service_p50", "service_p99",
		"limit", "in_use", "waiting", "depth", "age_seconds", "derived_depth",
	})
	for i := colReasons; i < columns; i++ {
		names[i] = "reason." + goodput.Reason(i-colReasons).String()
	}
	return names
}()

// none is the number in a Column that stands for none.
var none = float32(math.NaN())

// A row is one limiter at one tick. Seven digits are more than a chart shows.
type row [columns]float32

func rowOf(s *goodput.Stats, v *View) (r row) {
	for i, q := range [...]*Quantiles{v.Latency, v.Wait, v.Service} {
		p50, p99 := none, none
		if q != nil {
			p50, p99 = float32(q.P50), float32(q.P99)
		}
		r[colLatencyP50+2*i], r[colLatencyP99+2*i] = p50, p99
	}
	r[colOffered], r[colThroughput] = float32(v.Rates.Offered), float32(v.Rates.Throughput)
	r[colGoodput], r[colRefused] = float32(v.Rates.Goodput), float32(v.Rates.Refused)
	r[colLimit], r[colInUse], r[colWaiting] = float32(s.Limit), float32(s.InUse), float32(s.Waiting)
	r[colDepth], r[colDerived] = float32(s.Depth), float32(s.Derivation.Depth)
	r[colAge] = float32(s.Age.Seconds())
	for i := colReasons; i < columns; i++ {
		r[i] = none // one that does not occur is not told
		if rate, is := v.Rates.Reasons[goodput.Reason(i-colReasons).String()]; is && rate > 0 {
			r[i] = float32(rate)
		}
	}
	return r
}

// A point is one tick of the past. It is not changed once it is there, so that whoever encodes a
// history does so without a lock.
type point struct {
	at    time.Time
	names []string // of the first maxKept limiters
	rows  []row    // theirs
	scene map[string]float32
}

// row returns that of a limiter, which is the one of number i as long as there was no reload;
// nil: there was no such limiter.
func (p *point) row(name string, i int) *row {
	if i < len(p.names) && p.names[i] == name {
		return &p.rows[i]
	}
	for i, n := range p.names {
		if n == name {
			return &p.rows[i]
		}
	}
	return nil
}

// historyOf returns the columns of the limiters that are named, and of the demo.
func historyOf(past []*point, names []string) History {
	h := History{Times: make([]float64, len(past)), Limiters: map[string]Series{}}
	for i, p := range past {
		h.Times[i] = float64(p.at.UnixMilli()) / 1000
	}
	for number, name := range names {
		var all [columns]Column
		for i, p := range past {
			if r := p.row(name, number); r != nil {
				for c, v := range r {
					all[c].set(i, len(past), v)
				}
			}
		}
		s := Series{}
		for c, column := range all {
			if column != nil {
				s[columnNames[c]] = column
			}
		}
		h.Limiters[name] = s
	}
	for i, p := range past {
		for name, v := range p.scene {
			if h.Demo == nil {
				h.Demo = Series{}
			}
			c := h.Demo[name]
			c.set(i, len(past), v)
			h.Demo[name] = c
		}
	}
	return h
}

// set writes a number into a column of a length, which is there from its first number on.
func (c *Column) set(i, length int, v float32) {
	if v != v { // NaN
		return
	}
	if *c == nil {
		*c = make(Column, length)
		for j := range *c {
			(*c)[j] = none
		}
	}
	(*c)[i] = v
}

// A Column is numbers, of which a NaN or an infinite one is null in JSON.
type Column []float32

// MarshalJSON writes four digits: a chart of 1000 pixels shows three.
func (c Column) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 6*len(c)+2), '[')
	for i, v := range c {
		if i > 0 {
			b = append(b, ',')
		}
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, f, 'g', 4, 32)
		}
	}
	return append(b, ']'), nil
}
