package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// checkCmd reads policy files and says what they come to.
type checkCmd struct {
	Files  []string `arg:"" name:"file" help:"Policy files; - is stdin."`
	Format string   `env:"-" placeholder:"FORMAT" enum:"text,json" default:"text" help:"text or json (${default})."`
}

// Help is what kong prints below the one line.
func (checkCmd) Help() string {
	return `Everything that is wrong with a policy file, at once and each with its line; and if nothing is: what listens, which class takes which requests, its limit, the depth of its queue with the arithmetic, and what may be wrong all the same. Certificates that the file names, relative to the working directory, are read as well. goodput schema --format text has every key.

  goodput check policy.yaml
  goodput check --format json policy.yaml

Exit code 2: something is wrong. Warnings alone exit with 0.`
}

// A checked file is one file of the answer. What is in it stays; keys may be added.
type checkedFile struct {
	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	SHA256   string          `json:"sha256,omitempty"`
	Errors   []checkedFault  `json:"errors"`
	Warnings []checkedNotice `json:"warnings"`
	*config.Description

	fault string  // the errors with their lines
	read  *unread // there is no more to say of a file that cannot be
}

type checkedFault struct {
	Line     int            `json:"line,omitempty"` // from 1; 0: the file as a whole
	Column   int            `json:"column,omitempty"`
	Sentence string         `json:"sentence"`
	Others   []checkedPlace `json:"contradicts,omitempty"`
}

type checkedPlace struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

type checkedNotice struct {
	Class    string `json:"class,omitempty"`
	Sentence string `json:"sentence"`
}

// Run checks the files and prints what was found.
func (c *checkCmd) Run(stdout io.Writer) error {
	var all []*checkedFile
	bad := 0
	for _, name := range c.Files {
		f := checkFile(name)
		if !f.Valid {
			bad++
		}
		all = append(all, f)
	}
	if err := c.print(stdout, all); err != nil {
		return err
	}
	switch {
	case bad == 0:
		return nil
	case len(all) == 1 && all[0].read != nil:
		return usage(all[0].read)
	case len(all) == 1:
		return usage(fmt.Errorf("%s is not valid", all[0].File))
	}
	return usage(fmt.Errorf("%d of %d files are not valid", bad, len(all)))
}

func checkFile(name string) *checkedFile {
	f := &checkedFile{File: name, Errors: []checkedFault{}, Warnings: []checkedNotice{}}
	if name == "-" {
		f.File = "stdin"
	}
	src, err := readYAML(name)
	if err != nil {
		errors.As(err, &f.read)
		f.fail(err)
		return f
	}
	cfg, warnings, err := config.ReadAll(f.File, src, time.Now())
	if err != nil {
		f.fail(err)
	}
	if cfg == nil {
		return f
	}
	for _, w := range warnings {
		f.Warnings = append(f.Warnings, checkedNotice(w))
	}
	f.Valid, f.SHA256, f.Description = err == nil, cfg.SHA256, cfg.Describe()
	return f
}

// fail adds what is wrong.
func (f *checkedFile) fail(err error) {
	f.fault += err.Error() + "\n"
	e := (*strictyaml.Errors)(nil)
	if !errors.As(err, &e) {
		f.Errors = append(f.Errors, checkedFault{Sentence: err.Error()})
		return
	}
	for _, p := range e.Problems {
		at := checkedFault{Line: p.Line, Column: p.Column, Sentence: p.Sentence}
		for _, o := range p.Other {
			at.Others = append(at.Others, checkedPlace(o))
		}
		f.Errors = append(f.Errors, at)
	}
}

func (c *checkCmd) print(w io.Writer, all []*checkedFile) error {
	if c.Format == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Version int            `json:"version"`
			Files   []*checkedFile `json:"files"`
		}{1, all})
	}
	if len(all) == 1 && all[0].read != nil {
		return nil // Run says it
	}
	for _, f := range all {
		if err := f.print(w); err != nil {
			return err
		}
	}
	return nil
}

func (f *checkedFile) print(w io.Writer) error {
	if f.fault != "" {
		_, err := io.WriteString(w, f.fault)
		return err
	}
	fmt.Fprintf(w, "%s: valid\n", f.File)
	if err := f.Text(w); err != nil {
		return err
	}
	for _, n := range f.Warnings {
		where := "warning"
		if n.Class != "" {
			where = "warning: class " + n.Class
		}
		if _, err := fmt.Fprintf(w, "  %s: %s\n", where, n.Sentence); err != nil {
			return err
		}
	}
	return nil
}
