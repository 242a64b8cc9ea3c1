package suite

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

const nameWidth = 15 // of the longest scenario, and a blank

// Text writes s for a terminal of width columns: laws as columns and scenarios as rows,
// then what more there is to say of ours and of the laws in detail, then the criteria.
func (s *Suite) Text(w io.Writer, width int, detail []string) error {
	var b bytes.Buffer
	wrap(&b, "", s.title(), width)
	b.WriteString("\n")
	s.ratios(&b)
	for k, name := range s.Laws {
		if name == Auto || name != Fixed && slices.Contains(detail, name) {
			b.WriteString("\n")
			s.details(&b, k, width)
		}
	}
	b.WriteString("\n")
	missed := 0
	for _, c := range s.Judge() {
		mark := "met"
		if !c.Met {
			mark = "MISSED"
			missed++
		}
		wrap(&b, fmt.Sprintf("  %-6s  ", mark), fmt.Sprintf("%s: %s", c.Text, c.Measured), width)
	}
	if missed == 0 {
		fmt.Fprintf(&b, "\nauto meets all of it.\n")
	} else {
		fmt.Fprintf(&b, "\nauto misses %d of what is asked of it.\n", missed)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// List writes the scenarios, each with what a law may get wrong there.
func List(w io.Writer, quick bool, width int) error {
	var b bytes.Buffer
	for _, c := range cases(quick) {
		wrap(&b, fmt.Sprintf("%-*s ", nameWidth, c.Name), c.Why, width)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (s *Suite) title() string {
	kind, door := "", ""
	if s.Quick {
		kind = ", quick"
	}
	if s.Door == Reject {
		door = "; other laws refuse at once"
	}
	most := 0
	for i := range s.Cases {
		most = max(most, len(s.Row(i, 0).Seeds))
	}
	first := s.Row(0, 0).Seeds[0]
	seeds := fmt.Sprintf("seed %d", first)
	if most > 1 {
		seeds = fmt.Sprintf("seeds %d to %d", first, first+uint64(most)-1)
	}
	return fmt.Sprintf("Suite %s%s: goodput over that of a limit of the true size%s (%s)", Name, kind, door, seeds)
}

// ratios is the table of all laws. ! is a miss of ours.
func (s *Suite) ratios(b *bytes.Buffer) {
	heads := [2]string{fmt.Sprintf("%-*s %7s", nameWidth, "", "oracle"), fmt.Sprintf("%-*s %7s", nameWidth, "scenario", "/s")}
	for _, name := range s.Laws[1:] {
		heads[0] += fmt.Sprintf("%*s ", columnWidth(name), name)
	}
	fmt.Fprintf(b, "%s\n%s\n", strings.TrimRight(heads[0], " "), heads[1])
	for i := range s.Cases {
		s.line(b, s.Cases[i].Name, whole(s.Row(i, 0).Oracle), leastRatio, func(k int) float64 { return s.Row(i, k).Ratio })
	}
	j := judge{suite: s}
	s.line(b, "worst", "", leastRatio, func(k int) float64 { worst, _ := j.ratios(k); return worst })
	s.line(b, "mean", "", leastMean, func(k int) float64 { _, mean := j.ratios(k); return mean })
}

// line is one of the table: a figure of each law, ours marked if it is below the least.
func (s *Suite) line(b *bytes.Buffer, name, oracle string, least float64, figure func(law int) float64) {
	line := fmt.Sprintf("%-*s %7s", nameWidth, name, oracle)
	for k := 1; k < len(s.Laws); k++ {
		v, mark := figure(k), " "
		if s.Laws[k] == Auto && v < least {
			mark = "!"
		}
		line += fmt.Sprintf("%*.3f%s", columnWidth(s.Laws[k]), v, mark)
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// columnWidth is that of a law without the mark: its name, or 0.000, after a blank.
func columnWidth(name string) int { return max(len(name), 5) + 1 }

// A detail is a column of the second table.
type detail struct {
	heads [2]string
	width int
	show  func(*Row) string
}

var detailed = []detail{
	{[2]string{"offered", "/s"}, 8, func(r *Row) string { return whole(r.Offered) }},
	{[2]string{"in time", "/s"}, 8, func(r *Row) string { return whole(r.Goodput) }},
	{[2]string{"in obj.", "ratio"}, 8, func(r *Row) string { return figure("%.3f", r.RatioObjective) }},
	{[2]string{"p99", "ms"}, 6, func(r *Row) string { return whole(r.P99 * 1000) }},
	{[2]string{"settle", "s"}, 7, func(r *Row) string { return figure("%.1f", r.Settle) }},
	{[2]string{"limit", ""}, 7, func(r *Row) string { return whole(r.Limit) }},
	{[2]string{"+-", "%"}, 5, func(r *Row) string { return figure("%.0f", 100*r.Deviation/r.Limit) }},
	{[2]string{"refused", "%"}, 8, func(r *Row) string { return figure("%.1f", 100*r.Refused) }},
}

// details is the table of one law.
func (s *Suite) details(b *bytes.Buffer, law, width int) {
	for line := range 2 {
		name := s.Laws[law]
		if line == 1 {
			name = "scenario"
		}
		fmt.Fprintf(b, "%-*s", nameWidth, name)
		for _, d := range detailed {
			fmt.Fprintf(b, "%*s", d.width, d.heads[line])
		}
		b.WriteString("\n")
	}
	more := false
	for i := range s.Cases {
		r := s.Row(i, law)
		fmt.Fprintf(b, "%-*s", nameWidth, r.Scenario)
		for _, d := range detailed {
			fmt.Fprintf(b, "%*s", d.width, d.show(r))
		}
		b.WriteString("\n")
		more = more || r.more() != ""
	}
	if more {
		b.WriteString("\n")
	}
	for i := range s.Cases {
		if r := s.Row(i, law); r.more() != "" {
			wrap(b, fmt.Sprintf("%-*s ", nameWidth, r.Scenario), r.more(), width)
		}
	}
}

// more is what is said of steps and of fleets alone.
func (r *Row) more() string {
	switch {
	case !math.IsNaN(r.InFlight):
		return fmt.Sprintf("%.0f in flight at the database, %.0f at most; an instance has %.2f to %.2f of its fair share",
			r.InFlight, r.PeakInFlight, r.Least, r.Most)
	case !math.IsNaN(r.Restored):
		return fmt.Sprintf("%.3f of the new capacity in the first 10 s, 95 %% back after %.1f s", r.FirstTen, r.Restored)
	case !math.IsNaN(r.FirstTen):
		return fmt.Sprintf("%.3f of the new capacity in the first 10 s", r.FirstTen)
	}
	return ""
}

func whole(v float64) string {
	if v < 100 {
		return figure("%.1f", v)
	}
	return figure("%.0f", v)
}

// figure is v, or a dash for no number.
func figure(format string, v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// wrap writes text after a head, in lines of width columns; those after the first are indented
// as far.
func wrap(b *bytes.Buffer, head, text string, width int) {
	line := head
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && len(line) > len(head) {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", len(head))
		}
		if len(line) > len(head) {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}
