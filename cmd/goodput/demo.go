package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/demo"
	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/cmd/goodput/internal/proxy"
)

// exitInterrupted is what a shell expects of a program that SIGINT ended.
const exitInterrupted = 130

// demoCmd shows one overload without protection and with it. What is of --web alone is in
// demo_web.go, and of --serve in demo_serve.go.
type demoCmd struct {
	Load     float64      `placeholder:"FACTOR" default:"3" help:"Load to offer, as a multiple of what the service can do: 0.1 to 20 (${default}). With --web what it begins with: 0 to 10 (0.8)."`
	Duration flags.Span   `placeholder:"DURATION" default:"20s" help:"How long each of the two runs is: 1s to 5m (${default})."`
	Seed     uint64       `placeholder:"N" default:"1" help:"Seed of arrivals and service times; the same seed is the same load (${default})."`
	Limit    policy.Limit `placeholder:"LIMIT" default:"60" help:"Requests that run at once behind the limiter; the service has 60 slots (${default}). With auto the limiter finds that by itself, and has 5s of the load to begin with, which are not counted. With --web the service has 10 slots, and this is 10."`
	Format   string       `placeholder:"FORMAT" enum:"text,json" default:"text" help:"Result as text or json (${default})."`

	Web    bool          `xor:"way" help:"Show it live in a browser instead, with a slider for the load and a switch for the protection, until Ctrl-C."`
	Serve  bool          `xor:"way" help:"Serve the service of the demo instead, for loads of your own such as goodput verify: through goodput, and directly on the port after that, until Ctrl-C."`
	Listen flags.Address `placeholder:"ADDRESS" default:"127.0.0.1:8432" env:"GOODPUT_DEMO_LISTEN" help:"Where the page of --web is, and the service of --serve (${default})."`

	typed []string // names of the flags on the command line
}

// Validate is called by kong and states what is wrong in one sentence.
func (c *demoCmd) Validate() error {
	if err := c.checkWay(); err != nil || c.Web || c.Serve {
		return err
	}
	if err := c.config().Validate(); err != nil {
		return fmt.Errorf("--%w", err) // --load 25 is out of range
	}
	return nil
}

// Run shows the runs on stderr and their result on stdout, or all of it in a browser.
func (c *demoCmd) Run(stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	switch {
	case c.Web:
		return c.web(ctx, os.Stderr)
	case c.Serve:
		return c.serve(ctx, os.Stderr)
	}
	report, err := demo.Run(ctx, c.config())
	switch {
	case ctx.Err() != nil:
		return &failure{exitInterrupted, errors.New("interrupted: no result")}
	case err != nil:
		return err
	}
	return c.tell(report, stdout)
}

// tell writes the report, also one that is void: what it has shows why.
func (c *demoCmd) tell(report *demo.Report, stdout io.Writer) error {
	write := report.Text
	if c.Format == "json" {
		write = report.JSON
	}
	err := write(stdout)
	if why := report.Void(); err == nil && why != "" {
		return void(fmt.Errorf("no answer: %s", why))
	}
	return err
}

func (c *demoCmd) config() demo.Config {
	return demo.Config{
		Load: c.Load, Duration: c.Duration.Duration(), Seed: c.Seed, Limit: c.Limit.Law,
		Protect:  protect,
		Progress: os.Stderr,
		Redraw:   term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
	}
}

// protect is the proxy of serve. It logs nothing: what fails is in the result.
func protect(upstream *url.URL, lim *goodput.Limiter) (*http.Server, error) {
	cfg := config.One(upstream)
	p, err := proxy.New(cfg, proxy.Options{
		Logger:     slog.New(slog.DiscardHandler),
		NewLimiter: func(goodput.Config) *goodput.Limiter { return lim },
	})
	if err != nil {
		return nil, err
	}
	return p.Server(cfg.Listeners[0]), nil
}
