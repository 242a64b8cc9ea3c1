package rivals

import (
	"slices"

	"github.com/goodput/goodput/limit"
)

// A tally is the service times of several windows.
type tally struct {
	n     float64
	times []timed
}

// timed is a time, in seconds, that occurred n times.
type timed struct{ at, n float64 }

// most is how many different times a tally keeps: a window has some 250 buckets, and a
// second or two have twenty windows.
const most = 1 << 13

// add counts the times of w. Those that are no times are left out.
func (t *tally) add(w *limit.Window) {
	if w.Times == nil {
		return
	}
	for at, n := range w.Times {
		if at <= 0 || !(n > 0) {
			continue
		}
		n = min(n, 1<<30) // of a window
		if len(t.times) == most {
			t.fold()
		}
		t.n += n
		t.times = append(t.times, timed{at.Seconds(), n})
	}
}

// fold makes one of neighbours.
func (t *tally) fold() {
	t.sort()
	half := t.times[:0]
	for i := 0; i+1 < len(t.times); i += 2 {
		a, b := t.times[i], t.times[i+1]
		half = append(half, timed{(a.at*a.n + b.at*b.n) / (a.n + b.n), a.n + b.n})
	}
	t.times = half
}

func (t *tally) sort() {
	slices.SortFunc(t.times, func(a, b timed) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
}

func (t *tally) reset() { t.n, t.times = 0, t.times[:0] }

// shortest returns the shortest time, in seconds. n is above 0.
func (t *tally) shortest() float64 {
	s := t.times[0].at
	for _, x := range t.times {
		s = min(s, x.at)
	}
	return s
}

// quantile returns the q-quantile in seconds, between the middles of neighbouring
// times as a digest does. n is above 0.
func (t *tally) quantile(q float64) float64 {
	t.sort()
	want, before := q*t.n, 0.0
	for i, x := range t.times {
		mid := before + x.n/2
		if mid >= want {
			if i == 0 {
				return x.at
			}
			p := t.times[i-1]
			last := before - p.n/2
			if !(mid > last) { // of numbers too far apart for a float64
				return x.at
			}
			return p.at + (x.at-p.at)*(want-last)/(mid-last)
		}
		before += x.n
	}
	return t.times[len(t.times)-1].at
}

// A mean is an exponential average that begins as a plain one.
type mean struct {
	warm  float64 // so many are the plain mean
	share float64 // of the newest, later
	n     float64
	v     float64
}

func newMean(age, warm float64) mean { return mean{warm: warm, share: 2 / (age + 1)} }

func (m *mean) add(v float64) float64 {
	if m.n < m.warm {
		m.n++
		m.v += (v - m.v) / m.n
	} else {
		m.v += m.share * (v - m.v)
	}
	return m.v
}
