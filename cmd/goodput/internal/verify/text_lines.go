package verify

import (
	"strings"
	"unicode/utf8"
)

// A text is lines that fit a width.
type text struct {
	b      strings.Builder
	width  int
	colour bool
}

func (t *text) line(s string) { t.b.WriteString(strings.TrimRight(s, " ") + "\n") }

// gap ends a paragraph: one empty line, however many ask for it.
func (t *text) gap() {
	if s := t.b.String(); s != "" && !strings.HasSuffix(s, "\n\n") {
		t.line("")
	}
}

// prose wraps s after a label, which stands out, and sets its further lines in as far.
func (t *text) prose(label, s string) {
	if s == "" {
		return
	}
	for i, l := range wrap(clean(s), t.width-utf8.RuneCountInString(label)) {
		if i > 0 {
			t.line(strings.Repeat(" ", utf8.RuneCountInString(label)) + l)
			continue
		}
		t.line(t.bold(label) + l)
	}
}

// marked is prose after a mark of one column that has a colour.
func (t *text) marked(code, mark, s string) {
	for i, l := range wrap(clean(s), t.width-2) {
		if i > 0 {
			mark = " "
		}
		t.line(t.paint(code, mark) + " " + l)
	}
}

func (t *text) faint(s string) {
	for _, l := range wrap(clean(s), t.width) {
		t.line(t.paint("2", l))
	}
}

func (t *text) bold(s string) string { return t.paint("1", s) }

func (t *text) paint(code, s string) string {
	if !t.colour || strings.TrimSpace(s) == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// wrap breaks s at blanks into lines of at most width; a word that is longer is broken where
// it must be.
func wrap(s string, width int) (lines []string) {
	line, used := "", 0
	for _, word := range strings.Fields(s) {
		n := utf8.RuneCountInString(word)
		if line != "" && used+1+n > width {
			lines, line, used = append(lines, line), "", 0
		}
		for line == "" && n > width {
			runes := []rune(word)
			lines, word, n = append(lines, string(runes[:width])), string(runes[width:]), n-width
		}
		if line != "" {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// right sets s to the right of n columns, with a blank before it.
func right(s string, n int) string {
	return strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 1)) + s
}

func left(s string, n int) string {
	return s + strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 0))
}
