package verify

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// How numbers, durations and what strangers said are written, in each form of a report.

// span is d in the unit that people say, to three figures.
func span(d time.Duration) string {
	switch {
	case d >= 2*time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return rate3(d.Seconds()) + " s"
	case d == 0:
		return "0 s"
	}
	return asMillis.show(d.Seconds()) + " ms"
}

// rate3 is x without zeros at its end: 10, 1.5.
func rate3(x float64) string {
	s := asSeconds.show(x)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// two is x to two figures or all before the point: a standard error is known no better.
func two(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// loadOf is a multiple of the capacity.
func loadOf(x float64) string { return fmt.Sprintf("%.4gx", x) }

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return short(s)
}

func typeOf(s string) string {
	if s == "" {
		return "no type"
	}
	return short(s)
}

func size(n int64) string { return digits(n) + " bytes" }

// digits is n in groups of three digits: 1,234,567.
func digits(n int64) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteRune(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// sentence ends s with a full stop, and begins it with a capital letter if it begins with a
// word, which p99 is not.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	first, n := utf8.DecodeRuneInString(s)
	if second, _ := utf8.DecodeRuneInString(s[n:]); unicode.IsLetter(second) || second == ' ' {
		s = string(unicode.ToUpper(first)) + s[n:]
	}
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// short is at most maxWords of a stranger's string, clean.
func short(s string) string {
	if len(s) > 4*maxWords { // a rune has at most four bytes
		s = s[:4*maxWords]
	}
	return cut(strings.TrimSpace(clean(s)), maxWords)
}

// clean replaces what would move the cursor, recolour the terminal or turn the direction of
// writing.
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

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
