package report

import (
	"os"

	"golang.org/x/term"
)

// Columns is the width of a terminal that nobody knows the width of, and the least
// that the table needs.
const Columns = 80

// maxColumns is what a line of prose may have: longer ones are not read.
const maxColumns = 120

// Terminal returns how to show Text on f: as wide as the terminal, 80 to 120
// columns, in colour unless NO_COLOR is set (https://no-color.org) or TERM says that
// it cannot. What is no terminal has 80 columns and no colour.
func Terminal(f *os.File) (width int, colour bool) {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) {
		return Columns, false
	}
	width, _, err := term.GetSize(fd)
	if err != nil {
		width = Columns
	}
	colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return min(max(width, Columns), maxColumns), colour
}
