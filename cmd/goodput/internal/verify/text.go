package verify

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// The text is read from its top by somebody who has ten seconds: the verdict, what is not
// met and why, what to do. After that come the figures, and what it takes to believe and
// repeat them.

const (
	minWidth  = 80
	nameWidth = 2 + 20 // a mark, and the longest name of a figure with a blank
	unitWidth = 3
	cellWidth = 9 // "≥" and a hundred seconds in milliseconds; five steps and more fit 80 columns
)

// Text writes r for a terminal of width columns, at least 80, with ANSI colours if colour
// is set. The command at its end is one line however long it is, so that a copy is right.
func (r *Report) Text(w io.Writer, width int, colour bool) error {
	t := &text{width: max(width, minWidth), colour: colour}
	t.verdict(r)
	t.steps(r)
	t.series(r)
	t.list("what else was seen", r.seen())
	t.found(r)
	t.met(r)
	t.unjudged(r)
	t.end(r)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// verdict is what it is all about, with the criteria that are not met.
func (t *text) verdict(r *Report) {
	code, mark := "1;31", "✗"
	switch {
	case r.Certified():
		code, mark = "1;32", "✓"
	case r.Verdict() == "no answer":
		code, mark = "1;33", "?"
	}
	t.line(t.paint(code, mark+" "+strings.ToUpper(r.Verdict())) + "  " + short(r.Target))
	t.prose("  ", sentence(r.reason()))
	t.prose("  → ", r.advice())
	said := map[string]bool{}
	for _, c := range r.failed() {
		t.gap()
		t.marked("31", "✗", c.Name+": "+c.Text)
		if c.Measured == unmeasured.measured {
			t.prose("  ", c.Measured)
		} else {
			t.prose("  measured: ", c.Measured)
		}
		if !said[c.Why] { // one cause may be behind several
			t.prose("  ", sentence(c.Why))
		}
		said[c.Why] = true
	}
	t.gap()
}

// steps are the table, in as many parts as its columns need.
func (t *text) steps(r *Report) {
	if len(r.Steps) == 0 {
		return
	}
	rows := r.rows()
	fit := (t.width - nameWidth - unitWidth) / cellWidth
	for from := 0; from < len(r.Steps); from += fit {
		to := min(from+fit, len(r.Steps))
		head := left("  load", nameWidth+unitWidth)
		for _, s := range r.Steps[from:to] {
			head += right(loadOf(s.Load), cellWidth)
		}
		t.line(t.bold(head))
		for _, row := range rows {
			t.row(row, row.Cells[from:to])
		}
		t.gap()
	}
	for _, l := range r.legend() {
		t.faint(l)
	}
	t.gap()
}

func (t *text) row(row row, cells []string) {
	mark := " "
	if row.Failed {
		mark = "✗"
	}
	line := left(cut(mark+" "+row.Name, nameWidth-1), nameWidth) + left(row.Unit, unitWidth)
	for _, c := range cells {
		line += right(c, cellWidth)
	}
	if row.Failed {
		line = t.paint("31", line)
	}
	t.line(line)
}

// series draws who was answered in time, step by step, all to the scale of the capacity.
func (t *text) series(r *Report) {
	top := r.Capacity.PerSecond * load.BinLength.Seconds()
	if top <= 0 {
		return
	}
	const label = 8
	var all []string
	longest := 0
	for _, s := range r.steps() {
		longest = max(longest, len(s.Result.Bins)+len(calmOf(s)))
	}
	if longest == 0 {
		return
	}
	each := (longest + t.width - label - 2) / (t.width - label - 1) // bins a column
	for _, s := range r.steps() {
		line := left(loadOf(s.Load), label) + spark(s.Result.Bins, top, each)
		if s.Calm != nil {
			line += "|" + spark(calmOf(s), top, each)
		}
		all = append(all, line)
	}
	t.line(t.bold("in time, over each load"))
	for _, l := range all {
		t.line(l)
	}
	t.faint(fmt.Sprintf("A column is %s, a full one the capacity; after | half of it is offered.", span(time.Duration(each)*load.BinLength)))
	t.gap()
}

func calmOf(s Step) []load.Bin {
	if s.Calm == nil {
		return nil
	}
	return s.Calm.Bins
}

// spark is a column for each so many bins: "·" for nothing, and one of eight heights.
func spark(bins []load.Bin, top float64, each int) string {
	const heights = "▁▂▃▄▅▆▇█"
	var b strings.Builder
	for from := 0; from < len(bins); from += each {
		part := bins[from:min(from+each, len(bins))]
		var n int64
		for _, bin := range part {
			n += bin.InTime
		}
		k := int(float64(n) / top / float64(len(part)) * 8)
		switch {
		case n == 0:
			b.WriteRune('·')
		default:
			b.WriteRune([]rune(heights)[min(max(k-1, 0), 7)])
		}
	}
	return b.String()
}

func (t *text) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.line(t.bold(title))
	for _, l := range lines {
		t.prose("  ", l)
	}
	t.gap()
}

// found is how the capacity was.
func (t *text) found(r *Report) {
	t.prose("capacity: ", r.capacity())
	t.prose("idle:     ", r.idle())
	t.gap()
	probes := r.probes()
	if len(probes) == 0 {
		return
	}
	for i, cells := range append([][]string{probeHeads}, probes...) {
		line := "  "
		for k, c := range cells {
			line += right(c, utf8.RuneCountInString(probeHeads[k])+2)
		}
		if i == 0 {
			line = t.bold(line)
		}
		t.line(line)
	}
	t.gap()
}

// met are the criteria that are, and what was measured.
func (t *text) met(r *Report) {
	met := len(r.Criteria) - len(r.failed())
	if met == 0 {
		return
	}
	t.line(t.bold(fmt.Sprintf("%d of %d criteria are met", met, len(r.Criteria))))
	for _, c := range r.Criteria {
		if !c.Met {
			continue
		}
		s := c.Name + ": " + c.Text
		if c.Measured != "" {
			s += "; measured " + c.Measured
		}
		t.marked("32", "✓", s)
	}
	t.gap()
}

// unjudged are the criteria without a verdict.
func (t *text) unjudged(r *Report) {
	if len(r.Unjudged) == 0 {
		return
	}
	t.line(t.bold("not judged, " + r.unjudgedHead()))
	seen, unseen := r.open()
	for _, c := range seen {
		t.marked("33", "?", c.Name+": "+c.Text+"; measured "+c.Measured)
		t.prose("  ", c.Why)
	}
	if unseen != "" {
		t.marked("33", "?", unseen)
	}
	t.gap()
}

// end says what to be careful with, and what makes this again.
func (t *text) end(r *Report) {
	for _, n := range r.Notes {
		t.prose("note: ", n)
	}
	t.gap()
	t.prose("settings: ", r.settings())
	t.prose("run:      ", joined(r.when(), r.Program))
	if r.Command != "" {
		t.line(t.bold("again:    ") + clean(r.Command))
	}
}

// joined are those of two that there are.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
