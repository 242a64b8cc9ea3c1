package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/cmd/goodput/internal/topology"
	"github.com/goodput/goodput/internal/plan"
)

// planCmd computes before anything runs; nothing comes from the environment of a server.
type planCmd struct {
	File string `arg:"" optional:"" placeholder:"FILE" help:"A topology in YAML: layers with limits and replicas, and what they share; - is stdin. Instead of the flags."`

	Config        string              `env:"-" short:"c" placeholder:"FILE" help:"A policy file of goodput serve: the limit, objective, percentile, deadline, service and depth of a class, in place of flags. --service says how service times vary, or what they are where the file does not."`
	Class         string              `env:"-" placeholder:"NAME" help:"Which class of --config, where there are several."`
	Limit         policy.Limit        `env:"-" placeholder:"N" help:"Requests that run at once: a number, for a plan is made before auto has found one. Required without a file."`
	Service       topology.Service    `env:"-" placeholder:"DURATION[:SHAPE]" help:"Service time, from slot to response: its mean, and how it varies: 50ms:fixed, 50ms:exp, 50ms:lognormal:2 (the CV, standard deviation / mean) or 50ms:p99:300ms; \"50ms exponential\", \"50ms lognormal 2\", with spaces, as in a scenario, are the same. Taken as exponential if that is not said. Required without a file."`
	Objective     flags.Span          `env:"-" placeholder:"DURATION" help:"Latency that admitted requests must meet at the percentile, waiting included (the deadline, else 1s)."`
	Percentile    topology.Percentile `env:"-" placeholder:"P" default:"99" help:"Percentile of the objective: 50 to 99.9 (${default})."`
	Deadline      flags.Span          `env:"-" placeholder:"DURATION" help:"When callers stop caring (the objective)."`
	Burst         topology.Burst      `env:"-" placeholder:"FACTOR:DURATION" help:"A burst to absorb, in multiples of what the service can do: 2x:1s."`
	RequestBytes  flags.Size          `env:"-" placeholder:"SIZE" help:"Memory that a waiting request holds."`
	Depth         flags.Count         `env:"-" placeholder:"N" help:"The queue as it is: says what that depth does."`
	ProposedDepth flags.Count         `env:"-" placeholder:"N" help:"The queue as somebody wants it: says what would change."`
	Attempts      flags.Count         `env:"-" placeholder:"N" help:"How often a client tries in all, at most 100."`
	RetryInterval flags.Span          `env:"-" placeholder:"DURATION" help:"After how long a client tries again."`
	Print         bool                `env:"-" help:"Print an example of a topology file, with a word about each key, to save and change."`
	Format        string              `env:"-" placeholder:"FORMAT" enum:"text,json,markdown,go-comment" default:"text" help:"text, json, markdown (an agreement to sign before an overload) or go-comment (to paste beside a constant) (${default})."`

	given []string // flags that a policy file takes the place of
}

// BeforeApply is called by kong before Validate.
func (c *planCmd) BeforeApply(ctx *kong.Context) error {
	c.given = given(ctx, "limit", "objective", "percentile", "deadline", "depth")
	return nil
}

// Help is what kong prints below the one line.
func (planCmd) Help() string {
	return `How deep the queue of a limiter should be, what an overload does to it, and why, with the formula beside each number.

  goodput plan --limit 60 --service 50ms --objective 400ms --deadline 2s
  goodput plan --limit 60 --service 50ms --deadline 2s --depth 10000 --proposed-depth 50000
  goodput plan --limit 60 --service 50ms --objective 400ms --format go-comment
  goodput plan --print > topology.yaml
  goodput plan topology.yaml
  goodput plan --config policy.yaml --class search --service 50ms:exp

A topology is the layers that a request passes, each with its limit and its own service time:

  version: 1
  deadline: 2s
  layers:
    - {name: gateway, limit: 140, service: 2ms fixed}
    - {name: database, limit: 120, service: 40ms exponential}

Exit code 3: the answer is no. The objective is out of reach, a depth breaks it, or the layers do not fit together.`
}

// Validate is called by kong and states what is wrong in one sentence.
func (c *planCmd) Validate() error {
	if c.Print && c.File != "" {
		return fmt.Errorf("--print prints an example, and %s is a file to plan: give one of them", c.File)
	}
	if c.Print {
		return nil
	}
	if err := c.takePolicy(); err != nil {
		return err
	}
	if c.File != "" {
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"config", c.Config != ""},
			{"limit", c.Limit.Law != nil},
			{"service", c.Service.Mean != 0},
			{"objective", c.Objective != 0},
			{"deadline", c.Deadline != 0},
			{"burst", c.Burst.Factor != 0},
			{"request-bytes", c.RequestBytes != 0},
			{"depth", c.Depth != 0},
			{"proposed-depth", c.ProposedDepth != 0},
			{"attempts", c.Attempts != 0},
			{"retry-interval", c.RetryInterval != 0},
		} {
			if f.set {
				return fmt.Errorf("--%s and the file %s: the file says everything, or the flags do", f.name, c.File)
			}
		}
		return nil
	}
	if c.Limit.Law == nil {
		return errors.New("--limit is required, or a topology file: how many requests run at once, for example --limit 60; --print has an example of a file")
	}
	if c.Limit.Fixed() == 0 {
		return fmt.Errorf("--limit %v %s", c.Limit, topology.NeedsNumber)
	}
	if c.Service.Mean == 0 {
		return errors.New("--service is required: how long a request holds its slot, for example --service 50ms")
	}
	if err := c.input().Validate(); err != nil {
		return fmt.Errorf("--%w", err) // --attempts 200 are out of range
	}
	return nil
}

// takePolicy takes from the policy file what flags would have said.
func (c *planCmd) takePolicy() error {
	switch {
	case c.Config == "" && c.Class == "":
		return nil
	case c.Config == "":
		return fmt.Errorf("--class %s needs --config: the policy file that has it", c.Class)
	case c.File != "":
		return nil // said by Validate
	case len(c.given) > 0:
		return fmt.Errorf("--config and %s: with a file the policy is in the file alone", strings.Join(c.given, ", "))
	}
	class, err := policyClass(c.Config, c.Class)
	if err != nil {
		return err
	}
	l := &class.Limiter
	c.Class, c.Limit.Law = class.Name, l.Limit
	c.Objective, c.Deadline = flags.Span(l.Objective), flags.Span(untold(class))
	if l.Percentile != 0 {
		c.Percentile = topology.Percentile(l.Percentile)
	}
	if l.Depth > 0 {
		c.Depth = flags.Count(l.Depth)
	}
	if c.Service.Mean == 0 && l.Service != 0 {
		return c.Service.UnmarshalText([]byte(strictyaml.Short(l.Service)))
	}
	return nil
}

func (c *planCmd) input() plan.Input {
	return plan.Input{
		Limit: c.Limit.Fixed(), Service: c.Service.Service, Assumed: c.Service.Assumed,
		Objective: c.Objective.Duration(), Percentile: float64(c.Percentile), Deadline: c.Deadline.Duration(),
		Burst: plan.Burst(c.Burst), RequestBytes: int64(c.RequestBytes), Depth: int(c.Depth), Proposed: int(c.ProposedDepth),
		Attempts: int(c.Attempts), RetryInterval: c.RetryInterval.Duration(),
	}
}

// Run prints the plan of a limiter or of a file.
func (c *planCmd) Run(stdout io.Writer) error {
	if c.Print {
		_, err := stdout.Write(topology.Example)
		return err
	}
	if c.File != "" {
		return c.layers(stdout)
	}
	l, err := plan.New(c.input())
	if err != nil {
		return err
	}
	return c.tell(stdout, l, l.Findings, struct {
		Version int  `json:"version"`
		OK      bool `json:"ok"`
		*plan.Limiter
	}{1, plan.OK(l.Findings), l})
}

func (c *planCmd) layers(stdout io.Writer) error {
	src, err := readYAML(c.File)
	if err != nil {
		return usage(err)
	}
	t, err := topology.Read(c.name(), src)
	if err != nil {
		return usage(fmt.Errorf("the topology is wrong:\n%w", err))
	}
	a, err := plan.Check(t)
	if err != nil {
		return err
	}
	return c.tell(stdout, a, a.Findings, struct {
		Version int  `json:"version"`
		OK      bool `json:"ok"`
		*plan.Layers
	}{1, plan.OK(a.Findings), a})
}

// name is how errors call the file.
func (c *planCmd) name() string {
	if c.File == "-" {
		return "stdin"
	}
	return c.File
}

// An answer can be said in words in several ways.
type answer interface {
	Text() string
	Markdown(again string) string
	GoComment(again string) string
}

// tell writes the answer; a no is an error all the same.
func (c *planCmd) tell(stdout io.Writer, a answer, findings []plan.Finding, document any) error {
	var err error
	switch c.Format {
	case "json":
		e := json.NewEncoder(stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		err = e.Encode(document)
	case "markdown":
		_, err = io.WriteString(stdout, a.Markdown(c.again()))
	case "go-comment":
		_, err = io.WriteString(stdout, a.GoComment(c.again()))
	default:
		_, err = io.WriteString(stdout, a.Text())
	}
	if err != nil {
		return err
	}
	return answerNo(findings)
}

// answerNo is the failure of a plan with errors, or nil. What they are is in the
// answer.
func answerNo(findings []plan.Finding) error {
	n := 0
	for _, f := range findings {
		if f.Level == plan.Error {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return no(errors.New("the answer is no: 1 error"))
	}
	return no(fmt.Errorf("the answer is no: %d errors", n))
}

// again is the command that makes this answer once more.
func (c *planCmd) again() string {
	var b strings.Builder
	b.WriteString("goodput plan")
	if c.File != "" {
		b.WriteString(" " + quoted(c.File))
	}
	byFlags := c.Config == ""
	for _, f := range []struct {
		name  string
		set   bool
		value any
	}{
		{"config", c.Config != "", quoted(c.Config)},
		{"class", c.Class != "", c.Class},
		{"limit", byFlags && c.Limit.Law != nil, c.Limit},
		{"service", c.Service.Mean != 0, c.Service},
		{"objective", byFlags && c.Objective != 0, c.Objective.Duration()},
		{"percentile", byFlags && c.File == "" && c.Percentile != 0.99, fmt.Sprintf("%g", 100*c.Percentile)},
		{"deadline", byFlags && c.Deadline != 0, c.Deadline.Duration()},
		{"burst", c.Burst.Factor != 0, fmt.Sprintf("%gx:%v", c.Burst.Factor, c.Burst.Length)},
		{"request-bytes", c.RequestBytes != 0, int64(c.RequestBytes)},
		{"depth", byFlags && c.Depth != 0, int(c.Depth)},
		{"proposed-depth", c.ProposedDepth != 0, int(c.ProposedDepth)},
		{"attempts", c.Attempts != 0, int(c.Attempts)},
		{"retry-interval", c.RetryInterval != 0, c.RetryInterval.Duration()},
		{"format", c.Format != "text", c.Format},
	} {
		if f.set {
			fmt.Fprintf(&b, " --%s %v", f.name, f.value)
		}
	}
	return b.String()
}
