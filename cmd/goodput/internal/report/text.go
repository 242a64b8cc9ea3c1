package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A column is one figure of the table. Its width in a terminal leaves a blank before
// the longest of its heads, the first has the one of the name; with all that can be
// there 14 of 80 are left for that.
type column struct {
	Key    string    // of the figure in the JSON
	Heads  [2]string // the second line is the unit
	width  int       // in a terminal; 0: the page alone has room for it
	unit   unit
	figure func(*Figures) Figure
	worth  func(*Report) bool // whether it says anything; nil is always
}

const (
	minName = 16
	maxName = 28
)

var allColumns = []column{
	{"offered_per_second", [2]string{"offered", "/s"}, 7, rate, func(f *Figures) Figure { return f.Offered }, nil},
	{"goodput_per_second", [2]string{"goodput", "/s"}, 8, rate, func(f *Figures) Figure { return f.Goodput }, nil},
	{"goodput_ratio", [2]string{"goodput", "%"}, 8, percent, func(f *Figures) Figure { return f.Ratio }, nil},
	{"refused_ratio", [2]string{"refused", "%"}, 8, percent, func(f *Figures) Figure { return f.Refused }, nil},
	{"failed_ratio", [2]string{"failed", "%"}, 7, percent, func(f *Figures) Figure { return f.Failed }, (*Report).fails},
	{"kept_ratio", [2]string{"kept", "%"}, 0, percent, func(f *Figures) Figure { return f.Kept }, (*Report).keeps},
	{"latency_p50_seconds", [2]string{"p50", "ms"}, 7, millis, func(f *Figures) Figure { return f.P50 }, nil},
	{"latency_p99_seconds", [2]string{"p99", "ms"}, 7, millis, func(f *Figures) Figure { return f.P99 }, nil},
	{
		"good_p50_seconds",
		[2]string{"in time", "p50 ms"},
		0, millis, func(f *Figures) Figure { return f.GoodP50 },
		func(r *Report) bool { return r.some(Figures.apart) },
	},
	{
		"told_p50_seconds",
		[2]string{"told", "p50 ms"},
		7, millis, func(f *Figures) Figure { return f.Told },
		func(r *Report) bool { return r.some(func(f Figures) bool { return f.Told.Runs > 0 }) },
	},
	{"peak_queue", [2]string{"queue", "peak"}, 7, count, func(f *Figures) Figure { return f.PeakQueue }, nil},
}

// columns are those that say something about r.
func (r *Report) columns() (out []column) {
	for _, c := range allColumns {
		if c.worth == nil || c.worth(r) {
			out = append(out, c)
		}
	}
	return out
}

// Text writes r for a terminal of width columns, at least 80, with ANSI colours if
// colour is set. Terminal knows both.
func (r *Report) Text(w io.Writer, width int, colour bool) error {
	if err := r.check(); err != nil {
		return err
	}
	t := &text{width: max(width, Columns), colour: colour}
	t.columns = slices.DeleteFunc(r.columns(), func(c column) bool { return c.width == 0 })
	t.name = t.nameWidth(r)
	if r.Scenario != "" {
		t.line(t.bold(clean(r.Scenario)))
	}
	t.prose("", r.About)
	t.gap()
	t.table(r)
	t.tenants(r)
	if users := r.users(); users != "" {
		t.gap()
		t.prose("", users)
	}
	t.sparks(r)
	for _, d := range r.derivations() {
		t.gap()
		t.line(t.bold("depth of " + clean(d.Name)))
		t.prose("", d.Line)
	}
	t.gap()
	if r.Rule != "" {
		t.prose("rule of thumb: ", r.Rule)
	}
	t.prose("measured:      ", r.measured())
	t.prose("why:           ", r.Why)
	t.criteria(r.Criteria)
	t.end(r)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// A text is lines that fit a width.
type text struct {
	b       strings.Builder
	width   int
	name    int // width of the name
	columns []column
	colour  bool
}

// nameWidth fits the longest name into what the figures leave, up to maxName.
func (t *text) nameWidth(r *Report) int {
	longest := minName - 1
	for _, p := range r.Policies {
		longest = max(longest, utf8.RuneCountInString(clean(p.Name)))
		for _, c := range p.classes() {
			longest = max(longest, 2+utf8.RuneCountInString(clean(c.Name)))
		}
	}
	left := t.width
	for _, c := range t.columns {
		left -= c.width
	}
	return min(longest+1, maxName, left)
}

// table writes the policies, a second line under each with the standard errors, and
// the ceilings in the columns that they are about.
func (t *text) table(r *Report) {
	for i, first := range []string{"policy", ""} {
		heads := make([]string, len(t.columns))
		for k, c := range t.columns {
			heads[k] = c.Heads[i]
		}
		t.line(t.bold(t.row(first, heads)))
	}
	for _, p := range r.Policies {
		t.figures(clean(p.Name), p.Figures(), len(p.Runs))
		for i, c := range p.classes() {
			t.figures("  "+clean(c.Name), p.Class(i), len(p.Runs))
		}
	}
	// What was offered is said above: the name of a ceiling has that column too.
	name := t.name + t.columns[0].width
	t.line(t.dim(strings.Repeat("-", name+t.columns[1].width+t.columns[2].width)))
	for _, c := range r.ceilings() {
		t.line(pad(cut(c.Name, name-1), name) + cells(t.columns[1:], []string{rate.show(c.Rate), percent.show(c.Ratio)}))
	}
	for _, why := range r.Ceilings.Missing {
		t.prose("", why)
	}
	t.good(r)
	t.kept(r)
	t.attempts(r)
	t.gap()
	for _, l := range r.legend() {
		t.faint(l)
	}
}

// good is a line for the column that the table has no room for, about the policies
// for which it differs from the p50 that is there.
func (t *text) good(r *Report) {
	var all []string
	for _, p := range r.Policies {
		if f := p.Figures(); f.apart() {
			all = append(all, p.Name+" "+f.GoodP50.plain(millis)+f.GoodP50.spread(millis)+" ms")
		}
	}
	if len(all) > 0 {
		t.gap()
		t.prose("", "p50 of what was answered in time, where it is another: "+strings.Join(all, ", ")+".")
	}
}

// kept is a line for another such column.
func (t *text) kept(r *Report) {
	var all []string
	for _, p := range r.Policies {
		if f := p.Figures().Kept; seen(f.Mean) {
			all = append(all, p.Name+" "+f.plain(percent)+f.spread(percent)+" %")
		}
	}
	if len(all) > 0 {
		t.gap()
		t.prose("", "kept at home: "+strings.Join(all, ", ")+".")
	}
}

// attempts is a line about clients that try again, each class of them by itself.
func (t *text) attempts(r *Report) {
	const shown = 1.005 // is 1.01
	var all []string
	for _, p := range r.Policies {
		if f := p.Figures().Attempts; f.Mean < shown {
			continue
		}
		said := p.Name + " " + p.Figures().Attempts.plain(times)
		var classes []string
		for i, c := range p.classes() {
			classes = append(classes, c.Name+" "+p.Class(i).Attempts.plain(times))
		}
		if classes != nil {
			said += " (" + strings.Join(classes, ", ") + ")"
		}
		all = append(all, said)
	}
	if len(all) > 0 {
		t.gap()
		t.prose("", "attempts per request: "+strings.Join(all, ", ")+".")
	}
}

// figures writes a line, and one with the standard errors if there are several runs.
func (t *text) figures(name string, f Figures, runs int) {
	means, spreads := make([]string, len(t.columns)), make([]string, len(t.columns))
	for k, c := range t.columns {
		x := c.figure(&f)
		means[k], spreads[k] = x.plain(c.unit), x.spread(c.unit)
	}
	t.line(t.row(name, means))
	if runs > 1 {
		t.line(t.dim(t.row("", spreads)))
	}
}

func (t *text) row(name string, figures []string) string {
	return strings.TrimRight(pad(cut(name, t.name-1), t.name)+cells(t.columns, figures), " ")
}

// cells sets figures to the right in their columns, with a blank before each. One that has no
// room is shown to three figures: 8070051 ms as 8.07M.
func cells(columns []column, figures []string) string {
	var b strings.Builder
	for i, f := range figures {
		if utf8.RuneCountInString(f) >= columns[i].width {
			f = short(f)
		}
		b.WriteString(strings.Repeat(" ", max(columns[i].width-utf8.RuneCountInString(f), 0)) + f)
	}
	return b.String()
}

// short is a figure to three digits with an SI prefix, up to 999T: ±123456 is ±123k. What is no
// figure, or less than a thousand, stays.
func short(figure string) string {
	digits, plus := strings.CutPrefix(figure, "±")
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.Abs(x) < 1000 {
		return figure
	}
	for _, prefix := range []string{"k", "M", "G", "T"} {
		if x /= 1000; math.Abs(x) < 999.5 || prefix == "T" {
			digits = strconv.FormatFloat(x, 'f', three(x), 64) + prefix
			break
		}
	}
	if plus {
		return "±" + digits
	}
	return digits
}

// sparks draws the goodput of each policy over time, all to one scale.
func (t *text) sparks(r *Report) {
	length, top := extent(r.Policies)
	if top == 0 {
		return // nobody was answered, or there is no series: the table says so
	}
	t.gap()
	t.line(t.bold(fmt.Sprintf("goodput over %v, 0 to %s/s", lasted(length), rate.show(top))))
	for _, p := range r.Policies {
		t.line(pad(cut(clean(p.Name), t.name-1), t.name) + sparkline(p.Runs[0].Series, length, top, t.width-t.name))
	}
}

func (t *text) criteria(all []Criterion) {
	if len(all) == 0 {
		return
	}
	t.gap()
	for _, c := range all {
		mark, word := t.paint("32", "✓"), "met"
		if !c.Met {
			mark, word = t.paint("31", "✗"), "not met"
		}
		sentence := word + ": " + clean(c.Text)
		if c.Measured != "" {
			sentence += ", measured " + clean(c.Measured)
		}
		for i, l := range wrap(sentence, t.width-2) {
			if i > 0 {
				mark = " "
			}
			t.line(mark + " " + l)
		}
	}
}

// end says what makes this again.
func (t *text) end(r *Report) {
	t.gap()
	for _, n := range r.Notes {
		t.prose("note: ", n)
	}
	seeds := r.seeds()
	if r.Program != "" {
		seeds += "; " + r.Program
	}
	t.faint(seeds)
	if r.Command != "" {
		for _, l := range command("again: ", clean(r.Command), t.width) {
			t.line(t.dim(l))
		}
	}
}

func (t *text) line(s string) { t.b.WriteString(s + "\n") }

// gap ends a paragraph: one empty line, however many ask for it.
func (t *text) gap() {
	if s := t.b.String(); s != "" && !strings.HasSuffix(s, "\n\n") {
		t.line("")
	}
}

// prose wraps s after a label, its further lines set in as far.
func (t *text) prose(label, s string) {
	if s == "" {
		return
	}
	for i, l := range wrap(clean(s), t.width-len(label)) {
		if i > 0 {
			l = strings.Repeat(" ", len(label)) + l
		} else {
			l = t.bold(label) + l
		}
		t.line(l)
	}
}

func (t *text) faint(s string) {
	for _, l := range wrap(clean(s), t.width) {
		t.line(t.dim(l))
	}
}

func (t *text) bold(s string) string { return t.paint("1", s) }
func (t *text) dim(s string) string  { return t.paint("2", s) }

func (t *text) paint(code, s string) string {
	if !t.colour || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// clean replaces what would move the cursor, recolour the terminal or turn the
// direction of writing: a name is data.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return ' '
		case !unicode.IsPrint(c):
			return utf8.RuneError
		}
		return c
	}, s)
}

// wrap breaks s at blanks into lines of at most width; a word that is longer is
// broken where it must be.
func wrap(s string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		for {
			room := width - utf8.RuneCountInString(line)
			if line != "" {
				room--
			}
			n := utf8.RuneCountInString(word)
			if n <= room {
				line = strings.TrimPrefix(line+" "+word, " ")
				break
			}
			if line == "" {
				runes := []rune(word)
				lines, word = append(lines, string(runes[:width])), string(runes[width:])
				continue
			}
			lines, line = append(lines, line), ""
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 0))
}
