package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
	"github.com/goodput/goodput/cmd/goodput/internal/build"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/replay"
	"github.com/goodput/goodput/cmd/goodput/internal/report"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/internal/sim"
)

// replayCmd plays the arrivals of access logs through policies. What a server takes
// from its environment is not about logs, so nothing here comes from there.
type replayCmd struct {
	Logs []string `arg:"" name:"log" help:"Access logs or traces, plain or gzip, any number; - is stdin."`

	Config    string       `env:"-" short:"c" placeholder:"FILE" help:"A policy file of goodput serve: its limit, objective and deadline, and all else that it says of a queue, in place of flags. Where it has several classes, --class NAME, without a path, says which."`
	Limit     policy.Limit `env:"-" placeholder:"LIMIT" help:"Requests that run at once: a number, or auto, which finds it and needs --slots; auto:min=2,max=200,shared=true has all that it can be told. Required without --config."`
	Slots     flags.Count  `env:"-" placeholder:"N" help:"Requests that the service can really run at once, whatever the limit (the limit)."`
	Objective flags.Span   `env:"-" placeholder:"DURATION" default:"1s" help:"Latency that the p99 of admitted requests must meet (${default})."`
	Deadline  flags.Span   `env:"-" placeholder:"DURATION" help:"When the callers stop caring (they never do, and the objective is what in time means)."`
	Load      float64      `env:"-" placeholder:"FACTOR" help:"Compress or stretch time so that so many times the capacity is offered: 0.01 to 100 (as recorded)."`
	Policies  []string     `env:"-" placeholder:"A,B" default:"goodput,none,reject" help:"Policies: goodput, ${baselines} (${default})."`
	Depth     flags.Count  `env:"-" placeholder:"N" help:"Queue of fifo and lifo (limit x objective / mean service time, the rule of thumb)."`
	Seed      uint64       `env:"-" placeholder:"N" default:"1" help:"Seed of the service times that the log does not have (${default})."`

	LogFormat      string        `env:"-" placeholder:"FORMAT" enum:"${logformats}" default:"auto" help:"How the lines are laid out: ${logformats} (${default})."`
	Columns        string        `env:"-" placeholder:"LIST" help:"What csv and json hold: arrival=TIMESTAMP,service=0.1ms*ContextTokens+20ms*GeneratedTokens. Fields: arrival or end, queue, service, total, status, class, path, cost, size."`
	Pattern        string        `env:"-" placeholder:"REGEXP" help:"A line of any other format, with groups: (?P<arrival>...) (?P<service_ms>...)."`
	Class          []string      `env:"-" sep:"none" placeholder:"NAME=PATH" help:"Put a path in a class, * is anything; with a cost: search=/api/search*,cost=8. May be given more than once, the first that fits decides. Of what goodput serve has written, a NAME alone is the class that is read."`
	Zone           string        `env:"-" placeholder:"ZONE" help:"Zone of stamps that have none: Europe/Berlin (UTC)."`
	Unit           time.Duration `env:"-" placeholder:"UNIT" help:"Unit of the last number of apache lines (1us)."`
	Spread         flags.Pause   `env:"-" placeholder:"DURATION" default:"1s" help:"Resolution of stamps: if a file has no finer ones, arrivals are spread over it; 0s leaves them (${default})."`
	KeepDuplicates bool          `env:"-" help:"Count identical lines as often as they come."`

	Format string `env:"-" placeholder:"FORMAT" enum:"text,json,html,auto" default:"auto" help:"Result as text, json or html; auto goes by the name of the output, and is text on stdout (${default})."`
	Output string `env:"-" placeholder:"FILE" default:"-" help:"Where the result goes; - is stdout (${default})."`

	given []string      // flags of a policy that were given
	only  string        // class of the log, if it says one
	class *config.Class // of the file
}

// BeforeApply is called by kong before Validate.
func (c *replayCmd) BeforeApply(ctx *kong.Context) error {
	c.given = given(ctx, "limit", "objective", "deadline")
	return nil
}

// maxSlots is the most that a simulation has.
const maxSlots = 100_000

// Validate is called by kong and states what is wrong in one sentence.
func (c *replayCmd) Validate() error {
	if c.Load != 0 && !(c.Load >= 0.01 && c.Load <= 100) {
		return fmt.Errorf("--load %v is out of range: 0.01 to 100 times the capacity", c.Load)
	}
	known := append([]string{"goodput"}, sim.Baselines...)
	for i, name := range c.Policies {
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("--policies: policy %q is unknown%s", name, strictyaml.Unknown(name, known))
		case slices.Contains(c.Policies[:i], name):
			return fmt.Errorf("--policies has %q twice", name)
		}
	}
	if err := c.takePolicy(); err != nil {
		return err
	}
	if c.Limit.Fixed() == 0 && c.Slots == 0 {
		return fmt.Errorf("--slots is required with --limit %v: a log does not say how many requests the service can run at once, and that is what is to be found, for example --slots 60", c.Limit)
	}
	if c.Slots > maxSlots {
		return fmt.Errorf("--slots %d is out of range: 1 to %d", c.Slots, maxSlots)
	}
	if len(c.Policies) == 0 {
		return errors.New("--policies has no policy: goodput, for example")
	}
	o, err := c.options()
	if err == nil {
		err = o.Validate()
	}
	if err != nil {
		return err
	}
	return output{c.Format, c.Output}.check()
}

// takePolicy takes from the file what flags would have said.
func (c *replayCmd) takePolicy() error {
	name, rules := "", []string(nil)
	for _, text := range c.Class {
		if strings.Contains(text, "=") {
			rules = append(rules, text)
			continue
		}
		if name != "" {
			return fmt.Errorf("--class %s and --class %s: a log is played through one class of the file", name, text)
		}
		name = text
	}
	c.Class, c.only = rules, name
	switch {
	case c.Config == "" && c.Limit.Law == nil:
		return errors.New("--limit is required, or --config with a policy file: how many requests run at once, for example --limit 60")
	case c.Config == "":
		return nil
	case len(c.given) > 0:
		return fmt.Errorf("--config and %s: with a file the policy is in the file alone", strings.Join(c.given, ", "))
	}
	class, err := policyClass(c.Config, name)
	if err != nil {
		return err
	}
	c.class, c.only = class, class.Name
	c.Limit.Law = class.Limiter.Limit
	c.Objective, c.Deadline = flags.Span(class.Limiter.Objective), flags.Span(untold(class))
	return nil
}

// foreign says that a class cannot be read from a log that names none.
func (c *replayCmd) foreign(sum *accesslog.Summary) error {
	for i := range sum.Files {
		if c.only != "" && c.class == nil && !sum.Files[i].Own() {
			_, err := replay.ParseClass(c.only)
			return fmt.Errorf("--class %w", err)
		}
	}
	return nil
}

func (c *replayCmd) options() (o accesslog.Options, err error) {
	o = accesslog.Options{
		Format: accesslog.Format(c.LogFormat), Columns: c.Columns, Pattern: c.Pattern, Unit: c.Unit,
		Only: c.only, Spread: c.Spread.Duration(),
		KeepDuplicates: c.KeepDuplicates, Stdin: os.Stdin,
	}
	if c.Zone != "" {
		if o.Zone, err = time.LoadLocation(c.Zone); err != nil {
			return o, fmt.Errorf("--zone %q is not a zone, such as Europe/Berlin", c.Zone)
		}
	}
	for _, text := range c.Class {
		class, err := replay.ParseClass(text)
		if err != nil {
			return o, fmt.Errorf("--class %w", err)
		}
		o.Classes = append(o.Classes, class)
	}
	return o, nil
}

// Run reads the logs, plays them and writes one report.
func (c *replayCmd) Run(stdout io.Writer) error {
	o, err := c.options()
	if err != nil {
		return usage(err)
	}
	log, err := accesslog.Open(c.Logs, o)
	if err != nil {
		return usage(err)
	}
	defer log.Close()
	if err := c.foreign(log.Summary()); err != nil {
		return usage(err)
	}
	survey, err := replay.Look(log)
	if err != nil {
		return err
	}
	if why := survey.Void(log.Summary()); why != "" {
		for _, n := range survey.Notes(log.Summary(), o.Classes) {
			fmt.Fprintln(os.Stderr, n)
		}
		return void(fmt.Errorf("no answer: %s", why))
	}
	r, err := c.play(survey, log.Summary(), o.Classes)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	to := output{c.Format, c.Output}
	if err := to.render(&text, r); err != nil {
		return err
	}
	return to.write(stdout, text.Bytes())
}

func (c *replayCmd) play(survey *replay.Survey, sum *accesslog.Summary, rules []accesslog.Class) (*report.Report, error) {
	objective := c.Objective.Duration()
	how := replay.Policy(c.Limit.Law, objective)
	if c.class != nil {
		how = c.class.Policy().Limiter
	}
	o := replay.Options{
		Policy: how, Slots: cmp.Or(int(c.Slots), c.Limit.Fixed()), Deadline: c.Deadline.Duration(),
		Load: c.Load, Depth: int(c.Depth), Compare: c.Policies, Seed: c.Seed,
	}
	if o.Depth == 0 {
		o.Depth = survey.Rule(o.Slots, objective)
	}
	if err := o.Policy.Validate(); err != nil {
		return nil, usage(fmt.Errorf("--%w", err))
	}
	results, ceilings, err := survey.Run(o)
	if err != nil {
		return nil, err
	}
	r := &report.Report{
		Scenario: "replay", About: survey.About(o), Program: build.Read().String(), Command: c.again(), Seed: c.Seed,
		Ceilings: ceilings, Notes: survey.Notes(sum, rules),
	}
	for _, run := range results {
		r.Policies = append(r.Policies, report.Policy{Name: run.Policy, Runs: []*sim.Result{run}})
	}
	return r, nil
}

// again is the command that makes the same report.
func (c *replayCmd) again() string {
	words := []string{"goodput replay"}
	for _, log := range c.Logs {
		words = append(words, quoted(log))
	}
	add := func(flag, value string, said bool) {
		if said {
			words = append(words, flag, quoted(value))
		}
	}
	byFlags := c.class == nil
	if !byFlags {
		add("--config", c.Config, true)
	}
	add("--class", c.only, c.only != "")
	add("--limit", fmt.Sprint(c.Limit), byFlags)
	add("--slots", fmt.Sprint(c.Slots), c.Slots != 0)
	add("--objective", strictyaml.Short(c.Objective.Duration()), byFlags)
	add("--deadline", strictyaml.Short(c.Deadline.Duration()), byFlags && c.Deadline != 0)
	add("--load", fmt.Sprint(c.Load), c.Load != 0)
	add("--depth", fmt.Sprint(c.Depth), c.Depth != 0)
	add("--seed", fmt.Sprint(c.Seed), c.Seed != 1)
	add("--policies", strings.Join(c.Policies, ","), true)
	add("--log-format", c.LogFormat, c.LogFormat != "auto")
	add("--columns", c.Columns, c.Columns != "")
	add("--pattern", c.Pattern, c.Pattern != "")
	for _, class := range c.Class {
		add("--class", class, true)
	}
	add("--zone", c.Zone, c.Zone != "")
	add("--unit", c.Unit.String(), c.Unit != 0)
	add("--spread", strictyaml.Short(c.Spread.Duration()), c.Spread.Duration() != time.Second)
	if c.KeepDuplicates {
		words = append(words, "--keep-duplicates")
	}
	return strings.Join(words, " ")
}

// quoted returns a word of a command as a shell reads it back.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=+%@", r))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// logFormats are the names for --log-format, for the help.
func logFormats() string {
	var names []string
	for _, f := range accesslog.Formats {
		names = append(names, string(f))
	}
	return strings.Join(names, ",")
}
