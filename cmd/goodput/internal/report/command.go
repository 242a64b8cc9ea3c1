package report

import (
	"strings"
	"unicode/utf8"
)

// command sets a line of shell after a label into a width, such that a copy of it is
// the same command: it is broken before a flag, with the backslash that the shell
// wants there, and never inside quotes or between a flag and its value. What is
// longer than a line stays whole: a terminal wraps it, and a copy of that is right.
func command(label, line string, width int) (lines []string) {
	begin := label
	for _, part := range parts(line) {
		n := utf8.RuneCountInString(begin) + 1 + utf8.RuneCountInString(part)
		switch {
		case begin == label || strings.TrimSpace(begin) == "":
			begin += part
		case n+len(" \\") <= width:
			begin += " " + part
		default:
			lines = append(lines, begin+" \\")
			begin = strings.Repeat(" ", len(label)) + part
		}
	}
	return append(lines, begin)
}

// parts are the flags of a command with their values, after what is before the
// first.
func parts(line string) (all []string) {
	for _, w := range shellWords(line) {
		flag := len(w) > 1 && w[0] == '-'
		if len(all) == 0 || flag {
			all = append(all, w)
			continue
		}
		all[len(all)-1] += " " + w
	}
	return all
}

// shellWords splits line at the blanks outside of quotes, and leaves the quotes.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quote, escaped := rune(0), false
	for _, c := range line {
		switch {
		case escaped:
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ' ':
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
			continue
		}
		word.WriteRune(c)
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}
