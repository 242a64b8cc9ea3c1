package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/alecthomas/kong"

	"github.com/goodput/goodput/cmd/goodput/internal/accesslog"
	"github.com/goodput/goodput/cmd/goodput/internal/build"
	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/load"
	"github.com/goodput/goodput/cmd/goodput/internal/report"
	"github.com/goodput/goodput/cmd/goodput/internal/verify"
)

// verifyCmd offers a service more than it can do, and judges it. What a server takes from its
// environment is not about the load that it gets, so nothing here comes from there. The question
// before a load leaves this machine is in verify_confirm.go.
type verifyCmd struct {
	URL string `arg:"" name:"url" help:"What is asked, again and again: http:// or https://. Only this address gets any of the load. The report has it, but for the values of query parameters whose names say that they are secret: token, key, signature, password, auth and the like. The same holds for --header."`

	Steps     multiples  `env:"-" placeholder:"LIST" default:"0.5,1,1.5,3,10" help:"Loads, as multiples of the capacity: 0.1 to 20, ascending, at most 12 (${default})."`
	Duration  flags.Span `env:"-" placeholder:"DURATION" default:"10s" help:"How long each load lasts: 1s to 5m (${default})."`
	Deadline  flags.Span `env:"-" placeholder:"DURATION" default:"2s" help:"When callers leave, which the service is told: 10ms to 1m (${default})."`
	Objective flags.Span `env:"-" placeholder:"DURATION" help:"Latency that the p99 of what is admitted must meet, above capacity too (the deadline)."`
	Capacity  perSecond  `env:"-" placeholder:"N/s" help:"What the service can do, such as 1200/s; then it is not searched for."`
	Arrivals  string     `env:"-" placeholder:"LAW" enum:"poisson,constant" default:"poisson" help:"poisson, as independent users come, or constant, evenly spaced (${default})."`
	Trace     string     `env:"-" placeholder:"FILE" help:"Arrivals of an access log or a trace instead, pressed together or stretched to each load; - is stdin."`
	LogFormat string     `env:"-" placeholder:"FORMAT" enum:"${logformats}" default:"auto" help:"How the lines of --trace are laid out: ${logformats} (${default})."`
	Columns   string     `env:"-" placeholder:"LIST" help:"Which column of a csv or json --trace has the arrivals: arrival=TIMESTAMP."`
	Pattern   string     `env:"-" placeholder:"REGEXP" help:"A line of a --trace in any other format, with a group: (?P<arrival>...)."`
	Seed      uint64     `env:"-" placeholder:"N" default:"1" help:"Seed of the arrivals; the same seed is the same load (${default})."`

	Attempts int  `env:"-" placeholder:"N" default:"1" help:"How often a caller asks in all while it is refused and has time left, after 25ms to 75ms, and twice that with each time: 1 to 10 (${default}). The search for the capacity has 1. In time, refused and latency are of each caller and its last answer, and the latency is from the start of its last attempt; statuses, Retry-After and connections are judged with every attempt."`
	Obey     bool `env:"-" help:"Before they ask again, callers wait as long as Retry-After says."`

	Method string   `env:"-" placeholder:"METHOD" help:"Method of HTTP (GET, or POST with --body)."`
	Header []string `env:"-" sep:"none" placeholder:"'K: V'" help:"A header of each request. May be given more than once."`
	Body   string   `env:"-" placeholder:"FILE" help:"Body of each request, at most 1MiB; - is stdin."`
	HTTP   string   `env:"-" name:"http" placeholder:"VERSION" enum:"auto,1.1,2" default:"auto" help:"1.1, which needs a connection for each request that waits, or 2, also in clear text; auto asks the server for 2 (${default})."`
	Expect statuses `env:"-" placeholder:"STATUS" help:"Statuses that are answers of the service, such as 200,404 (what it answers while it is idle)."`

	AnyBody bool `env:"-" help:"Answers of the service are told from others by status and media type alone: for bodies that change from one answer to the next by more than their length does while it is idle. A refusal that looks like an answer is then taken for one."`

	MaxRate     float64 `env:"-" placeholder:"N" default:"20000" help:"Never offer more requests per second, the mean of each load: 1 to 100000 (${default}). No second gets more than that and 5 times the square root of it times --attempts."`
	MaxRequests int64   `env:"-" placeholder:"N" default:"2000000" help:"Never send more requests in all: 1 to 10000000 (${default})."`
	Confirm     string  `env:"-" placeholder:"HOST" help:"The host of the URL once more, for one that is not this machine, where nobody can be asked."`

	Format string `env:"-" placeholder:"FORMAT" enum:"text,json,html,auto" default:"auto" help:"Result as text, json or html; auto goes by the name of the output, and is text on stdout (${default})."`
	Output string `env:"-" placeholder:"FILE" default:"-" help:"Where the result goes; - is stdout (${default})."`

	url    *url.URL
	header http.Header
	given  []string // flags that were given, each as often as it was: about arrivals, --steps, and those of said
}

// BeforeApply is called by kong before Validate.
func (c *verifyCmd) BeforeApply(ctx *kong.Context) error {
	c.given = given(ctx, "arrivals", "log-format", "columns", "pattern", "capacity", "steps", "trace", "body", "method", "output", "confirm")
	return nil
}

// Help is what kong prints below the one line.
func (verifyCmd) Help() string {
	return `Does the service stay useful when more is asked of it than it can do? It is asked while it is idle, its capacity is found, and then it gets half, once, one and a half times, three times and ten times as much, whatever it answers. Callers leave at their deadline.

  goodput verify http://127.0.0.1:8080/search
  goodput verify http://127.0.0.1:8080/search --objective 400ms --output verify.html
  goodput verify https://staging.example/search --confirm staging.example --max-rate 3000

What is asked for has names: ` + strings.Join(verify.Names, ", ") + `. The report has each with its figures. If there is no answer it has what was measured all the same, and says of each that it is not judged.

Exit code 0: all criteria are met. 1: the report could not be written, or something else went wrong. 2: the command line or a file that it names is wrong. 3: a criterion is not met. 4: no answer, since the load could not be offered in time, too few requests got through, or the target is not there. 130: interrupted.`
}

// multiples are loads: "0.5,1,3".
type multiples []float64

// UnmarshalText parses them.
func (m *multiples) UnmarshalText(text []byte) error {
	*m = nil
	for word := range strings.SplitSeq(string(text), ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return fmt.Errorf("%q in %q is not a multiple of the capacity, 0.1 to 20, such as those of 0.5,1,3", word, text)
		}
		*m = append(*m, x)
	}
	return nil
}

// statuses are those of HTTP: "200,404".
type statuses []int

// UnmarshalText parses them; of a flag that is given more than once all count.
func (s *statuses) UnmarshalText(text []byte) error {
	for word := range strings.SplitSeq(string(text), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return fmt.Errorf("%q in %q is not a status of HTTP, 200 to 499, such as those of 200,404", word, text)
		}
		*s = append(*s, n)
	}
	return nil
}

// perSecond is a rate: "1200/s" or "1200".
type perSecond float64

// UnmarshalText parses it.
func (p *perSecond) UnmarshalText(text []byte) error {
	var n float64
	number := strings.TrimSuffix(string(text), "/s")
	if _, err := fmt.Sscanf(number+"\n", "%g\n", &n); err != nil || !(n >= 0.1 && n <= 100_000) {
		return fmt.Errorf("%q is not a rate of 0.1 to 100000 per second, such as 1200/s", text)
	}
	*p = perSecond(n)
	return nil
}

// Validate is called by kong and states what is wrong in one sentence.
func (c *verifyCmd) Validate() (err error) {
	if c.url, err = verify.ParseURL(c.URL); err != nil {
		return err
	}
	if c.header, err = verify.Header(c.Header); err != nil {
		return err
	}
	if host := c.url.Hostname(); c.Confirm != "" && !strings.EqualFold(c.Confirm, host) {
		return fmt.Errorf("--confirm %s is not the host of the URL, %s", c.Confirm, host)
	}
	steps := 0
	for _, flag := range c.given {
		value, is := c.said(flag)
		switch {
		case is && value == "": // of a variable of the shell that was not set, as a rule
			return fmt.Errorf("%s is empty: say its value, or leave it out", flag)
		case is:
		case flag == "--steps":
			if steps++; steps > 1 {
				return errors.New("--steps is given twice: say all loads in one, such as --steps 0.5,1,3")
			}
		case flag == "--capacity":
		case flag == "--arrivals" && c.Trace != "":
			return errors.New("--arrivals and --trace: the arrivals are those of the file, or follow a law")
		case flag != "--arrivals" && c.Trace == "":
			return fmt.Errorf("%s is about --trace: the file whose arrivals are played", flag)
		}
	}
	o := c.logOptions()
	switch {
	case c.Trace == "-" && c.Body == "-":
		return errors.New("--trace - and --body - are both stdin: give one of them a name")
	case c.Trace != "":
		if err := o.Validate(); err != nil {
			return err
		}
	}
	s := c.settings()
	if err := s.Validate(); err != nil {
		return err
	}
	return cmp.Or(s.Judgeable(), output{c.Format, c.Output}.check())
}

// said is the value of a flag that must have one.
func (c *verifyCmd) said(flag string) (value string, is bool) {
	switch flag {
	case "--trace":
		return c.Trace, true
	case "--body":
		return c.Body, true
	case "--method":
		return c.Method, true
	case "--output":
		return c.Output, true
	case "--confirm":
		return c.Confirm, true
	}
	return "", false
}

func (c *verifyCmd) settings() verify.Settings {
	s := verify.Settings{
		Method: c.Method, Deadline: c.Deadline.Duration(), Objective: c.Objective.Duration(),
		Loads: c.Steps, Length: c.Duration.Duration(), Calm: verify.DefaultCalm, Arrivals: c.Arrivals,
		Attempts: c.Attempts, Obey: c.Obey, Expect: c.Expect, AnyBody: c.AnyBody, Seed: c.Seed, MaxRate: c.MaxRate, MaxRequests: c.MaxRequests,
	}
	if s.Objective == 0 {
		s.Objective = s.Deadline
	}
	if s.Method == "" {
		s.Method = "GET"
		if c.Body != "" {
			s.Method = "POST"
		}
	}
	if c.Trace != "" {
		s.Arrivals = c.Trace
	}
	return s
}

func (c *verifyCmd) logOptions() accesslog.Options {
	return accesslog.Options{
		Format: accesslog.Format(c.LogFormat), Columns: c.Columns, Pattern: c.Pattern, Spread: time.Second, Stdin: os.Stdin,
	}
}

// Run shows the run on stderr and its report on stdout.
func (c *verifyCmd) Run(stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	cfg, err := c.config()
	if err != nil {
		return usage(err)
	}
	there, err := output{c.Format, c.Output}.writable()
	if err != nil {
		return usage(fmt.Errorf("--output: %w", err))
	}
	cfg.Target, err = verify.Resolve(ctx, c.url)
	switch {
	case err != nil && ctx.Err() == nil:
		return void(fmt.Errorf("no answer: %w", err))
	case err == nil && !cfg.Target.Local:
		err = c.confirm(ctx)
	}
	if ctx.Err() != nil {
		return interrupted
	}
	if err != nil {
		return err
	}
	r := verify.Run(ctx, cfg)
	if ctx.Err() != nil && there { // a part of a run does not replace the report of a whole one
		return &failure{exitInterrupted, fmt.Errorf("interrupted: no answer; %s is as it was", c.Output)}
	}
	if err := c.tell(r, stdout); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted
	}
	return verdict(r)
}

var interrupted = &failure{exitInterrupted, errors.New("interrupted: no answer")}

// config reads the files.
func (c *verifyCmd) config() (cfg verify.Config, err error) {
	cfg = verify.Config{
		Settings: c.settings(), Header: c.header, HTTP: c.HTTP, Capacity: float64(c.Capacity),
		Program: build.Read().String(), Command: c.again(),
		Progress: os.Stderr,
		Redraw:   term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
	}
	if cfg.Redraw {
		cfg.Columns, _, _ = term.GetSize(int(os.Stderr.Fd())) // 0 if it does not say
	}
	if c.Body != "" {
		if cfg.Body, err = readAtMost(c.Body, verify.MaxBody, "a body may be here"); err != nil {
			return cfg, fmt.Errorf("--body: %w", err)
		}
	}
	if c.Trace != "" {
		if cfg.Trace, err = c.arrivals(); err != nil {
			return cfg, fmt.Errorf("--trace %w", err)
		}
	}
	return cfg, nil
}

// arrivals reads those of the log; how often, how long and what else it says is not asked.
func (c *verifyCmd) arrivals() (all []time.Duration, err error) {
	log, err := accesslog.Open([]string{c.Trace}, c.logOptions())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	for r, err := range log.Records() {
		if err != nil {
			return nil, err
		}
		all = append(all, time.Duration(r.Arrival-log.Summary().First))
	}
	p := load.Plan{Rate: 1, Duration: time.Second, Deadline: time.Second, Trace: all}
	if all == nil {
		err = errors.New("has no arrivals")
	} else {
		err = p.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Trace, err)
	}
	return all, nil
}

// tell writes the report, also one without an answer: what it has shows why.
func (c *verifyCmd) tell(r *verify.Report, stdout io.Writer) error {
	o := output{c.Format, c.Output}
	var b bytes.Buffer
	var err error
	switch o.kind() {
	case "json":
		err = r.JSON(&b)
	case "html":
		err = r.HTML(&b)
	default:
		width, colour := report.Columns, false
		if o.file == "-" {
			width, colour = report.Terminal(os.Stdout)
		}
		err = r.Text(&b, width, colour)
	}
	if err != nil {
		return err
	}
	if o.file != "-" && r.Certified() { // any other verdict is what the command fails with
		fmt.Fprintln(os.Stderr, r.Line())
	}
	return o.write(stdout, b.Bytes())
}

// verdict is the failure that a report stands for, or nil.
func verdict(r *verify.Report) error {
	if r.Certified() {
		return nil
	}
	if r.Void != "" {
		return void(fmt.Errorf("no answer: %s", r.Void))
	}
	var missed []string
	for _, c := range r.Criteria {
		if !c.Met {
			missed = append(missed, c.Name)
		}
	}
	return no(fmt.Errorf("%d of %d criteria are not met: %s", len(missed), len(r.Criteria), strings.Join(missed, ", ")))
}
