package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/build"
	"github.com/goodput/goodput/cmd/goodput/internal/report"
	"github.com/goodput/goodput/cmd/goodput/internal/suite"
)

// suiteFlags choose a suite, which has its scenarios and laws.
type suiteFlags struct {
	Suite string   `env:"-" placeholder:"NAME" help:"Play a suite instead of scenarios: adaptive has the laws that find a limit, ours and those of others, beside a limit of the true size."`
	Quick bool     `env:"-" help:"Fewer scenarios of the suite, shorter and with fewer seeds."`
	Laws  []string `env:"-" name:"law" placeholder:"A,B" help:"Laws of the suite beside fixed and auto, with their details: ${laws} (all)."`
	Only  []string `env:"-" placeholder:"A,B" help:"Scenarios of the suite (all)."`
	Door  string   `env:"-" placeholder:"DOOR" enum:"queue,reject" default:"queue" help:"What the other laws of the suite have before them: the same queue as ours, or none, as in the libraries that they come from: queue, reject (${default})."`
}

// asked reports whether anything of a suite is said.
func (f *suiteFlags) asked() bool {
	return f.Quick || len(f.Laws) > 0 || len(f.Only) > 0 || f.Door != "queue"
}

func (c *simulateCmd) validateSuite() error {
	switch {
	case c.Suite != suite.Name:
		return fmt.Errorf("suite %q is unknown: %s", c.Suite, suite.Name)
	case len(c.Files)+len(c.Builtin)+len(c.Policies) > 0 || c.Print || c.Config != "" || c.Class != "":
		return errors.New("--suite has its own scenarios and laws: files, --builtin, --config, --policies and --print are about others")
	case c.output().kind() == "html":
		return errors.New("a suite is text or json, not html")
	case c.Repeat != nil && (*c.Repeat < 1 || *c.Repeat > maxRepeat):
		return fmt.Errorf("--repeat %d is out of range: 1 to %d", *c.Repeat, maxRepeat)
	}
	return nil
}

// playSuite plays it and writes the result. The answer is no if our law misses what is asked of
// it.
func (c *simulateCmd) playSuite(out *bytes.Buffer) error {
	if c.List {
		return suite.List(out, c.Quick, c.columns())
	}
	o := suite.Options{Quick: c.Quick, Laws: c.Laws, Only: c.Only, Workers: runtime.GOMAXPROCS(0)}
	if c.Door == "reject" {
		o.Door = suite.Reject
	}
	if c.Seed != nil {
		o.Seed = *c.Seed
	}
	if c.Repeat != nil {
		o.Repeat = *c.Repeat
	}
	runs, err := o.Jobs()
	if err != nil {
		return usage(err)
	}
	show := countRuns(runs)
	o.Done = show.done
	s, err := suite.Run(o)
	show.clear()
	if err != nil {
		return err
	}
	if c.output().kind() == "json" {
		err = s.JSON(out, build.Read().String(), c.againSuite())
	} else {
		err = s.Text(out, c.columns(), c.Laws)
	}
	if err != nil {
		return err
	}
	missed, criteria := 0, s.Judge()
	for _, c := range criteria {
		if !c.Met {
			missed++
		}
	}
	if missed > 0 {
		return no(fmt.Errorf("suite %s: auto misses %d of %d criteria", c.Suite, missed, len(criteria)))
	}
	return nil
}

// columns is how wide the output may be.
func (c *simulateCmd) columns() int {
	if c.Output != "-" {
		return report.Columns
	}
	width, _ := report.Terminal(os.Stdout)
	return width
}

// againSuite is the command that makes the same report.
func (c *simulateCmd) againSuite() string {
	command := "goodput simulate --suite " + c.Suite
	if c.Quick {
		command += " --quick"
	}
	if len(c.Laws) > 0 {
		command += " --law " + strings.Join(c.Laws, ",")
	}
	if len(c.Only) > 0 {
		command += " --only " + strings.Join(c.Only, ",")
	}
	if c.Door != "queue" {
		command += " --door " + c.Door
	}
	if c.Seed != nil {
		command += fmt.Sprintf(" --seed %d", *c.Seed)
	}
	if c.Repeat != nil {
		command += fmt.Sprintf(" --repeat %d", *c.Repeat)
	}
	return command
}
