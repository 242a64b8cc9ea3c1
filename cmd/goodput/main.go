// Command goodput keeps a service useful while it is overloaded.
//
//	goodput serve    a reverse proxy that admits what can be served in time
//	goodput demo     the same overload, without it and with it
//	goodput plan     how deep a queue may be, and what an overload does to it
//	goodput simulate scenarios through the same code in virtual time
//	goodput replay   access logs through it: what yesterday would have been
//	goodput verify   a load test past capacity, with a verdict
//	goodput check    what is wrong with a policy file, and what it comes to
//	goodput schema   what a policy file looks like, for editors
//	goodput version
//	goodput help     what there is, and with the name of a command its flags
//
// Exit codes: 0 done, also after a graceful SIGTERM; 1 failed at run time;
// 2 wrong usage; 3 the answer is no, a criterion is not met; 4 no answer, because a
// measurement is void; 130 interrupted.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/cmd/goodput/internal/suite"
	"github.com/goodput/goodput/internal/sim"
)

// The exit codes that a script may rely on.
const (
	exitOK    = 0
	exitRun   = 1
	exitUsage = 2
	exitNo    = 3
	exitVoid  = 4
)

// program is the command line. Each command is a file beside this one.
type program struct {
	Serve    serveCmd    `cmd:"" help:"Protect a service: a reverse proxy that admits what can be served in time."`
	Demo     demoCmd     `cmd:"" help:"Show one overload without protection and with it: twice in the terminal, or live in a browser."`
	Plan     planCmd     `cmd:"" help:"Compute the depth of a queue, and what an overload does to it, before it happens."`
	Simulate simulateCmd `cmd:"" help:"Play scenarios through the same code in virtual time, beside what others do."`
	Replay   replayCmd   `cmd:"" help:"Play the arrivals of access logs through policies: what yesterday would have been."`
	Verify   verifyCmd   `cmd:"" help:"Offer a service up to ten times what it can do, and say whether it stays useful."`
	Check    checkCmd    `cmd:"" help:"Say what is wrong with policy files, and what they come to: the depths, with their arithmetic."`
	Schema   schemaCmd   `cmd:"" help:"Print every key of a policy file: as text, or as a JSON schema for editors."`
	Version  versionCmd  `cmd:"" help:"Print version, revision and Go version."`
}

// A failure is an error with the exit code that belongs to it.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usage says that err is about the command line, not about what happened.
func usage(err error) error { return &failure{exitUsage, err} }

// no says that the answer is no.
func no(err error) error { return &failure{exitNo, err} }

// said is a failure that is in the log already.
func said(code int) error { return &failure{code, errors.New("")} }

// void says that a measurement gave no answer.
func void(err error) error { return &failure{exitVoid, err} }

// meant returns args in our words: help and --version are what other programs know.
func meant(args []string) []string {
	switch {
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	}
	return args
}

// unparsed is what is wrong with a command line, and where help is, if it has no command.
func unparsed(parser *kong.Kong, err error, empty bool) error {
	where := (*kong.ParseError)(nil)
	switch {
	case empty:
		var names []string
		for _, c := range parser.Model.Children {
			names = append(names, c.Name)
		}
		return fmt.Errorf("a command is required: %s; goodput --help says what each does", strictyaml.Either(names))
	case errors.As(err, &where) && where.Context.Selected() == nil:
		return fmt.Errorf("%w; goodput --help lists the commands", err)
	}
	return err
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run parses and runs args. Results go to stdout; everything else, logs and the
// one sentence about what is wrong, to stderr.
func run(args []string, stdout, stderr io.Writer) int {
	var p program
	parser := kong.Must(&p,
		kong.Name("goodput"),
		kong.Description("Keeps a service useful while it is overloaded."),
		kong.DefaultEnvars("GOODPUT"),
		kong.Writers(stdout, stderr),
		kong.WithHyphenPrefixedParameters(true), // "--limit -5" is a bad value, not a flag -5
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(stdout, (*io.Writer)(nil)),
		kong.Vars{"baselines": strings.Join(sim.Baselines, ", "), "logformats": logFormats(), "laws": strings.Join(suite.Laws[2:], ", ")},
	)
	command, err := parser.Parse(meant(args))
	if err != nil {
		// kong would exit with 80 here.
		fmt.Fprintf(stderr, "goodput: %v\n", unparsed(parser, err, len(args) == 0))
		return exitUsage
	}
	if err := command.Run(); err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintf(stderr, "goodput: %s\n", text)
		}
		var f *failure
		if errors.As(err, &f) {
			return f.code
		}
		return exitRun
	}
	return exitOK
}
