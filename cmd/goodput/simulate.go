package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/build"
	"github.com/goodput/goodput/cmd/goodput/internal/builtin"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/report"
	"github.com/goodput/goodput/cmd/goodput/internal/scenario"
	"github.com/goodput/goodput/internal/sim"
)

// simulateCmd plays scenarios through the core in virtual time.
type simulateCmd struct {
	Files    []string `arg:"" optional:"" name:"file" help:"Scenario files; - is stdin."`
	Builtin  []string `env:"-" placeholder:"NAME" help:"A scenario that is part of the program; more than one as a,b."`
	List     bool     `env:"-" help:"List the scenarios that are part of the program, or of the suite."`
	Print    bool     `env:"-" help:"Print the scenario file instead of playing it, as a start for a file of one's own; without a scenario, one with every key and what it means."`
	Config   string   `env:"-" short:"c" placeholder:"FILE" help:"A policy file of goodput serve: the limiter and the deadlines of a class, in place of the policy that the scenario has where its clients arrive."`
	Class    string   `env:"-" placeholder:"NAME" help:"Which class of --config, where there are several."`
	Seed     *uint64  `env:"-" placeholder:"N" help:"Seed of the first run; the same seed is the same result (what the file says, or 1)."`
	Repeat   *int     `env:"-" placeholder:"N" help:"Runs of each policy, each with another seed: 1 to 100 (what the file says, or 1)."`
	Policies []string `env:"-" placeholder:"A,B" help:"Play these policies, in this order: those that the file compares, goodput, ${baselines} (those that it compares)."`
	Ceilings bool     `env:"-" negatable:"" default:"true" help:"Compute what no policy can exceed, which takes up to a second."`
	Format   string   `env:"-" placeholder:"FORMAT" enum:"text,json,html,auto" default:"auto" help:"Result as text, json or html; auto goes by the name of the output, and is text on stdout (${default})."`
	Output   string   `env:"-" placeholder:"FILE" default:"-" help:"Where the result goes; - is stdout (${default})."`

	suiteFlags `embed:""`

	class *config.Class // of --config; nil: the policy is the scenario's
}

func (c *simulateCmd) Help() string {
	return `What would the policy do that protects my service, in front of a service like this one:
  goodput simulate --builtin overload-3x --config policy.yaml --class search
It is played as if it stood in the scenario: a load of 3x is three times what the service does
under its limit, and what compare says differently of goodput, it says of this policy.`
}

// Validate is called by kong and states what is wrong in one sentence.
func (c *simulateCmd) Validate() error {
	if c.Suite != "" {
		return cmp.Or(c.validateSuite(), c.output().check())
	}
	scenarios := len(c.Files) + len(c.Builtin)
	switch {
	case c.asked():
		return errors.New("--quick, --law, --only and --door are about a suite: --suite adaptive")
	case c.Config != "" && (c.List || c.Print):
		return errors.New("--config says what is played: with --list and --print nothing is")
	case c.Config == "" && c.Class != "":
		return fmt.Errorf("--class %s needs --config: the policy file that has it", c.Class)
	case c.Config == "-" && slices.Contains(c.Files, "-"):
		return errors.New("--config - and the scenario - are both stdin: give one of them a name")
	case c.List && scenarios > 0:
		return errors.New("--list lists the built-in scenarios and takes none")
	case !c.List && !c.Print && scenarios == 0:
		return errors.New("no scenario: give a file, or --builtin NAME; --list has the names")
	case c.Repeat != nil && (*c.Repeat < 1 || *c.Repeat > maxRepeat):
		return fmt.Errorf("--repeat %d is out of range: 1 to %d", *c.Repeat, maxRepeat)
	case c.output().kind() == "html" && scenarios > 1:
		return fmt.Errorf("an html report has one scenario, not %d", scenarios)
	}
	return c.output().check()
}

// maxRepeat is as in a file: more runs make a standard error of a tenth no smaller
// than a longer run does.
const maxRepeat = 100

func (c *simulateCmd) output() output { return output{c.Format, c.Output} }

// Run plays every scenario and writes one report for each.
func (c *simulateCmd) Run(stdout io.Writer) error {
	var out bytes.Buffer
	err := c.run(&out)
	if out.Len() == 0 {
		return err
	}
	if wrong := c.output().write(stdout, out.Bytes()); wrong != nil {
		return wrong
	}
	return err
}

// run writes to out. With an answer that is no, or none, the report is there too.
func (c *simulateCmd) run(out *bytes.Buffer) error {
	switch {
	case c.Suite != "":
		return c.playSuite(out)
	case c.List:
		return listBuiltins(out)
	}
	if c.Print && len(c.Files)+len(c.Builtin) == 0 {
		out.Write(scenario.Reference)
		return nil
	}
	sources, err := c.sources()
	if err != nil {
		return usage(err)
	}
	if c.Print {
		for _, s := range sources {
			out.Write(s.text)
		}
		return nil
	}
	if c.Config != "" {
		if c.class, err = policyClass(c.Config, c.Class); err != nil {
			return usage(err)
		}
	}
	files, err := c.load(sources)
	if err != nil {
		return usage(err)
	}
	var bad []error
	for i, f := range files {
		r, verdict, err := c.simulate(f, sources[i])
		if err != nil {
			return fmt.Errorf("%s: %w", sources[i].file, err)
		}
		if i > 0 && c.output().kind() == "text" {
			out.WriteString("\n")
		}
		if err := c.output().render(out, r); err != nil {
			return err
		}
		bad = append(bad, verdict)
	}
	return errors.Join(bad...) // its code is that of the first
}

// A source is a scenario file that has been read.
type source struct {
	file string // how errors call it
	args string // what names it on a command line
	text []byte
}

func (c *simulateCmd) sources() (all []source, err error) {
	for _, name := range c.Files {
		text, err := readYAML(name)
		if errors.Is(err, fs.ErrNotExist) && slices.Contains(builtin.Names(), name) {
			err = fmt.Errorf("%w, but %s is part of the program: --builtin %s", err, name, name)
		}
		if err != nil {
			return nil, err
		}
		file := name
		if name == "-" {
			file = "stdin"
		}
		all = append(all, source{file, name, text})
	}
	for _, name := range c.Builtin {
		file, text, err := builtin.File(name)
		if err != nil {
			return nil, err
		}
		all = append(all, source{file, "--builtin " + name, text})
	}
	return all, nil
}

// load reads the sources, with what the command line says differently. Everything
// that is wrong with any of them is in the error.
func (c *simulateCmd) load(sources []source) (files []*scenario.File, err error) {
	var bad []error
	for _, s := range sources {
		f, err := scenario.LoadFor(s.file, s.text, c.Policies, c.given())
		if err == nil {
			err = c.playsGiven(f, s)
			c.change(f)
		}
		files, bad = append(files, f), append(bad, err)
	}
	return files, errors.Join(bad...)
}

// change applies the seeds of the command line.
func (c *simulateCmd) change(f *scenario.File) {
	if c.Seed != nil {
		f.Seed = *c.Seed
	}
	if c.Repeat != nil {
		f.Repeat = *c.Repeat
	}
}

var firstSentence = regexp.MustCompile(`^.*?[.?](?:\s|$)`)

// listBuiltins writes a line for each scenario: its name and what it is.
func listBuiltins(out *bytes.Buffer) error {
	for _, name := range builtin.Names() {
		file, text, err := builtin.File(name)
		if err != nil {
			return err
		}
		f, err := scenario.Load(file, text)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-17s %s\n", name, strings.TrimRight(firstSentence.FindString(f.About), ". "))
	}
	return nil
}

// simulate plays f. verdict is why the answer is no, or none; the report says it
// too.
func (c *simulateCmd) simulate(f *scenario.File, s source) (r *report.Report, verdict, err error) {
	runs, err := play(f)
	if err != nil {
		return nil, nil, err
	}
	r = &report.Report{
		Scenario: f.Name, About: f.About, Rule: f.Rule, Why: f.Why,
		Program: build.Read().String(), Command: c.again(f, s), Seed: f.Seed,
	}
	var all []*sim.Result
	for i, p := range f.Compare {
		r.Policies = append(r.Policies, report.Policy{Name: p.Name, Runs: runs[i]})
		all = append(all, runs[i]...)
	}
	if c.Ceilings {
		if r.Ceilings, err = f.Play(0).Ceilings(f.Seed); err != nil {
			return nil, nil, err
		}
	}
	if f.Unjudged > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d criteria of the file are about policies that --policies leaves out, and are not judged.", f.Unjudged))
	}
	r.Notes = append(r.Notes, c.whose(f)...)
	missed := 0
	for _, v := range f.Judge(all) {
		r.Criteria = append(r.Criteria, report.Criterion{Text: v.Text, Met: v.Holds, Measured: v.Worst})
		if !v.Holds {
			missed++
		}
	}
	switch n := fewest(all); {
	case n < leastRequests && len(f.Trace) == 0:
		why := fmt.Sprintf("%d requests came in the window, and a 99th percentile takes %d", n, leastRequests)
		r.Notes = append(r.Notes, why+".")
		verdict = void(fmt.Errorf("no answer: %s: %s", s.file, why))
	case missed > 0:
		verdict = no(fmt.Errorf("%s: %d of %d criteria are not met", s.file, missed, len(r.Criteria)))
	}
	return r, verdict, nil
}

// again is the command that makes the same report.
func (c *simulateCmd) again(f *scenario.File, s source) string {
	command := fmt.Sprintf("goodput simulate %s", s.args)
	if c.class != nil {
		command += fmt.Sprintf(" --config %s --class %s", quoted(c.Config), quoted(c.class.Name))
	}
	command += fmt.Sprintf(" --seed %d", f.Seed)
	if c.Repeat != nil {
		command += fmt.Sprintf(" --repeat %d", *c.Repeat)
	}
	if len(c.Policies) > 0 {
		command += " --policies " + strings.Join(c.Policies, ",")
	}
	return command
}
