package figures

import (
	"fmt"
	"math"
)

// A Promise is one number that goodput says it reaches.
type Promise struct {
	Line  string // what it is part of
	Text  string
	Part  string // who measures it
	Least bool   // the bound is the least that is good; else the most
	Bound float64
	Unit  string // after the number: " ms", or nothing

	// Reason is why it is missed, in a sentence, where it has been and the reason is known.
	Reason string

	measure func(*Run) (Figure, bool)
}

// A Figure is what was measured of a Promise.
type Figure struct {
	Value     float64 // the median of the passes, or the worst of several scenes
	Low, High float64 // of the passes; both 0: there is one value
	Note      string  // beside it
}

// A Verdict is a Promise with its Figure.
type Verdict struct {
	Promise
	Figure
	Measured bool
}

// Judge returns what r says of each promise.
func (r *Run) Judge() []Verdict {
	var all []Verdict
	for _, p := range promises() {
		v := Verdict{Promise: p}
		v.Figure, v.Measured = p.measure(r)
		all = append(all, v)
	}
	return all
}

// Count returns how many of all are met, missed and not measured.
func Count(all []Verdict) (met, missed, absent int) {
	for _, v := range all {
		switch {
		case !v.Measured:
			absent++
		case v.Met():
			met++
		default:
			missed++
		}
	}
	return met, missed, absent
}

// Met reports whether the number was measured and is on the right side of the bound.
func (v Verdict) Met() bool {
	switch {
	case !v.Measured || math.IsNaN(v.Value):
		return false
	case v.Least:
		return v.Value >= v.Bound
	}
	return v.Value <= v.Bound
}

// Word is the verdict in a word.
func (v Verdict) Word() string {
	switch {
	case !v.Measured:
		return "not measured"
	case v.Met():
		return "met"
	}
	return "**MISSED**"
}

// Why is the reason of a miss, "" if there is none to give.
func (v Verdict) Why() string {
	switch {
	case !v.Measured || v.Met():
		return ""
	case v.Reason == "":
		return "No reason is known; it was met before."
	}
	return v.Reason
}

// String is v in a line.
func (v Verdict) String() string {
	return fmt.Sprintf("%s: %s, %s; %s", v.Text, v.value(), v.bound(), v.Why())
}

// bound is the bound in words.
func (v Verdict) bound() string {
	if v.Least {
		return "at least " + number(v.Bound) + v.Unit
	}
	return "at most " + number(v.Bound) + v.Unit
}

// value is the figure in words.
func (v Verdict) value() string {
	if !v.Measured {
		return "-"
	}
	s := number(v.Value) + v.Unit
	if v.Low != v.High {
		s += fmt.Sprintf(" (%s to %s)", number(v.Low), number(v.High))
	}
	return s
}

// number is x with as many digits as a table needs: three after the point below 10, none
// from 100 on, and thousands set apart.
func number(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return "never"
	case x == math.Trunc(x) && a < 1000:
		return fmt.Sprintf("%.0f", x)
	case a < 0.001:
		return fmt.Sprintf("%.4f", x)
	case a < 10:
		return fmt.Sprintf("%.3f", x)
	case a < 100:
		return fmt.Sprintf("%.1f", x)
	case a < 1000:
		return fmt.Sprintf("%.0f", x)
	}
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// A worst is the worst of several figures, for promises that all of them have to keep.
type worst struct {
	least bool
	value float64
	note  string
	any   bool
}

// add takes a figure into account; who says which it was.
func (w *worst) add(v float64, who string) {
	if !w.any || math.IsNaN(v) || w.least && v < w.value || !w.least && v > w.value {
		w.value, w.note, w.any = v, who, true
	}
}

func (w *worst) figure() (Figure, bool) {
	return Figure{Value: w.value, Note: w.note}, w.any
}

// never is the value of a time that has no end. It keeps no bound.
var never = math.NaN()
