package main

import (
	"fmt"
	"io"
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

// readYAML reads a file, or stdin for -, up to what it may have: some have no end.
func readYAML(name string) ([]byte, error) {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	text, err := io.ReadAll(io.LimitReader(f, strictyaml.MaxBytes+1))
	if len(text) > strictyaml.MaxBytes {
		return nil, fmt.Errorf("%s is larger than a file of this kind may be, %d bytes", name, strictyaml.MaxBytes)
	}
	return text, err
}
