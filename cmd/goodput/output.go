package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/report"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// An output is where a report goes, and as what.
type output struct {
	format string // text, json, html, or auto
	file   string // - is stdout
}

// check says what is wrong with it.
func (o output) check() error {
	switch ext := strings.ToLower(path.Ext(o.file)); {
	case o.format != "auto" || o.file == "-":
	case ext != "" && ext != ".html" && ext != ".json" && ext != ".txt":
		return fmt.Errorf("--output %s: a report is .txt, .json or .html; for another name say --format", o.file)
	}
	return nil
}

// kind is the format, by the name of the file if nobody said.
func (o output) kind() string {
	if o.format != "auto" {
		return o.format
	}
	switch ext := strings.ToLower(path.Ext(o.file)); ext {
	case ".html", ".json":
		return ext[1:]
	}
	return "text"
}

// render writes r in the format of o. Where that goes to a file, a line on stderr says
// how it came out.
func (o output) render(w io.Writer, r *report.Report) error {
	if o.file != "-" {
		fmt.Fprintln(os.Stderr, report.Verdict(r))
	}
	switch o.kind() {
	case "json":
		return r.JSON(w)
	case "html":
		return r.HTML(w)
	}
	width, colour := report.Columns, false
	if o.file == "-" {
		width, colour = report.Terminal(os.Stdout)
	}
	return r.Text(w, width, colour)
}

// writable says why a report could not be written, before the work that it is about, and
// whether another one is there.
func (o output) writable() (there bool, err error) {
	if o.file == "-" {
		return false, nil
	}
	before, missing := os.Stat(o.file)
	f, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return false, err
	}
	err = f.Close()
	if missing != nil {
		return false, cmp.Or(err, os.Remove(o.file)) // nothing is there until there is a report
	}
	return before.Size() > 0, err
}

// write writes a report as a whole, or not: no half of one overwrites the last.
func (o output) write(stdout io.Writer, text []byte) (err error) {
	if o.file == "-" {
		_, err = stdout.Write(text)
	} else {
		err = os.WriteFile(o.file, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// readYAML reads a file of YAML.
func readYAML(name string) ([]byte, error) {
	return readAtMost(name, strictyaml.MaxBytes, "a file of this kind may be")
}

// readAtMost reads a file, or stdin for -, up to what it may have: some have no end.
func readAtMost(name string, most int64, what string) ([]byte, error) {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return nil, unreadable(name, err)
		}
		defer f.Close()
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s is larger than %s, %d bytes", name, what, most)
	}
	if err != nil {
		return nil, unreadable(name, err)
	}
	return text, nil
}

// An unread is why a file could not be read: each command says it in the same way.
type unread struct {
	name string
	why  error
}

func (u *unread) Error() string { return fmt.Sprintf("cannot read %s: %v", u.name, u.why) }
func (u *unread) Unwrap() error { return u.why }

func unreadable(name string, err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err // the name is said already
	}
	return &unread{name, err}
}
