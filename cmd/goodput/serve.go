package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/admin"
	"github.com/goodput/goodput/cmd/goodput/internal/build"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/policy"
	"github.com/goodput/goodput/limit"
)

// serveCmd protects a service.
type serveCmd struct {
	Config    string        `short:"c" placeholder:"FILE" help:"A policy file, which has all that the flags of a policy say and more: several services, classes of requests, tenants. SIGHUP and POST /-/reload on --admin read it again."`
	Upstream  string        `placeholder:"URL" help:"The service to protect: http://, https:// or h2c://; a path, as in http://host/app, is put before that of a request. Required without --config."`
	Limit     policy.Limit  `placeholder:"LIMIT" default:"auto" help:"Requests that the service runs at once: auto finds how many it can, auto:min=10,max=200 does so within bounds, auto:shared=true where others send to the service as well, 60 is a number that you know (${default}). See above for when to give one."`
	Objective flags.Span    `placeholder:"DURATION" default:"1s" help:"Latency that 99% of the admitted requests must meet, waiting included. It sizes the queue (${default})."`
	Listen    flags.Address `placeholder:"ADDRESS" default:":8080" help:"Where clients connect, in HTTP/1.1 or HTTP/2 without TLS (${default})."`
	Admin     flags.Address `placeholder:"ADDRESS" default:"127.0.0.1:8431" help:"Where probes, metrics and state are, or off (${default})."`

	Service        flags.Span      `placeholder:"DURATION" help:"Mean service time, if known; a measured one far from it is flagged."`
	Deadline       flags.Span      `placeholder:"DURATION" help:"Deadline of requests that bring none; without it they have --deadline-cap, or none."`
	DeadlineCap    flags.Span      `placeholder:"DURATION" help:"The longest deadline there is; a request that brings none has this one."`
	MaxQueueBytes  flags.Size      `placeholder:"SIZE" default:"64MiB" help:"Bytes of request bodies that may wait in memory (${default})."`
	MaxWaiting     flags.Count     `placeholder:"N" default:"65536" help:"Requests that may wait, whatever the derived depth (${default})."`
	Observe        bool            `help:"Decide and count, but refuse nothing and let nobody wait. Give a number as --limit: auto stays where it begins."`
	TrustedProxies []flags.Network `placeholder:"RANGE" help:"Peers whose X-Forwarded-*, X-Real-IP and Forwarded headers are kept, and whose X-Request-Start counts; those of everybody else are replaced, so behind nginx or an ingress say where it is."`
	Finish         flags.Pause     `placeholder:"DURATION" default:"0s" help:"For a service that does not notice when it is hung up on: how long a request whose client has left, or whose deadline has passed, keeps its slot until the service has answered. 0s frees it at once (${default})."`
	DrainDelay     flags.Pause     `placeholder:"DURATION" default:"0s" help:"After SIGTERM, keep accepting for so long: the time a balancer needs to notice, and a third more, as HTTP/2 is told in the last quarter (${default})."`
	DrainTimeout   flags.Span      `placeholder:"DURATION" default:"25s" help:"After that, let waiting and running requests end for so long; what is cut then makes the exit code 1. WebSockets are told to go at its beginning, and have 5s to (${default})."`
	logFiles
	logFlags

	upstream *url.URL
	policy   []string // the flags of a policy that were given, also by the environment
}

// processFlags are those of serve that are about this process. The others are a policy, and
// a policy is in one place: in the file, if there is one.
var processFlags = []string{"config", "admin", "drain-delay", "drain-timeout", "access-log", "access-log-query", "record", "record-size", "log-level", "log-format", "help"}

// BeforeApply is called by kong before Validate.
func (c *serveCmd) BeforeApply(ctx *kong.Context) error {
	for _, f := range ctx.Flags() {
		if slices.Contains(processFlags, f.Name) {
			continue
		}
		if slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag == f }) {
			c.policy = append(c.policy, "--"+f.Name)
		}
		for _, name := range f.Envs {
			if _, set := os.LookupEnv(name); set {
				c.policy = append(c.policy, name)
			}
		}
	}
	return nil
}

// Help is what kong prints below the one line.
func (serveCmd) Help() string {
	return `A request that the service can answer in time is passed on, at once or after a short wait; any other is refused at the door.

  goodput serve --upstream http://127.0.0.1:9000 --objective 400ms

How many run at once is found while it runs, from how the service answers: whether one request more in it makes the others slower. It begins with 20, has the service's number after some seconds of more load than that, and goes with it when it changes; as long as less comes, nothing needs to be found. Give a number instead, such as --limit 60,

  - where you know one that stays: workers, threads, the connections of a pool;
  - where so few requests come that there is little to learn from;
  - with --observe: where everything runs at once, nothing shows what a limit would do, and auto stays where it begins.

With a file instead of flags, goodput serve --config goodput.yaml; goodput check says what is wrong with one and what it amounts to.

Bounds, and where it begins, are written behind the law: with --limit auto:from=100,max=200 never more than 200 are in flight. Where others send to the service as well, this program on other machines among them, say --limit auto:shared=true: it begins with 4, rises slowly, and falls when the fastest answers show a queue in the service; a limit of auto alone, which sees its own effect and no other, would go far beyond what the service can do. The laws of others are there to compare: aimd, vegas and gradient2.`
}

// Validate is called by kong and states what is wrong in one sentence.
func (c *serveCmd) Validate() error {
	if err := c.validateLogs(); err != nil {
		return err
	}
	switch {
	case c.Config != "" && len(c.policy) > 0:
		return fmt.Errorf("--config and %s: with a file the policy is in the file alone, so that one place says what is in force", strings.Join(c.policy, ", "))
	case c.Config != "":
		return nil
	case c.Upstream == "":
		return errors.New("--upstream is required: where the service listens, for example --upstream http://127.0.0.1:9000; or --config with a policy file")
	}
	u, err := config.ParseServer(c.Upstream)
	if err != nil {
		return fmt.Errorf("--%w", err) // --upstream "..." has no scheme
	}
	if c.Listen == flags.Off {
		return errors.New("--listen off: a proxy needs an address to listen on, such as :8080")
	}
	c.upstream = u
	if err := c.config().Contradiction(func(key string) string { return "--" + strings.ReplaceAll(key, "_", "-") }); err != nil {
		return err
	}
	return c.limiter().Validate()
}

// config returns what the flags describe.
func (c *serveCmd) config() *config.Config {
	cfg := config.One(c.upstream)
	cfg.Listeners[0].Address = string(c.Listen)
	cfg.TrustedProxies = prefixes(c.TrustedProxies)
	one := &cfg.Classes[0]
	one.Limiter = c.limiter()
	one.Deadline, one.DeadlineCap, one.Finish = c.Deadline.Duration(), c.DeadlineCap.Duration(), c.Finish.Duration()
	return cfg
}

func (c *serveCmd) limiter() goodput.Config {
	return goodput.Config{
		Name:      config.DefaultName,
		Limit:     c.Limit.Law,
		Objective: c.Objective.Duration(),
		Service:   c.Service.Duration(),
		MaxItems:  int(c.MaxWaiting),
		MaxBytes:  int64(c.MaxQueueBytes),
		Observe:   c.Observe,
	}
}

// Run serves until a signal, then drains. A second signal ends it at once.
func (c *serveCmd) Run() error {
	signal.Ignore(syscall.SIGPIPE) // a log reader that leaves must not end us
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)

	heap := ballast()
	defer runtime.KeepAlive(heap)
	log := c.logger()
	s, err := c.start(log)
	if err != nil {
		return err
	}
	defer s.close()
	c.tell(log, s)
	go s.hearHangups(hangups) // as long as the process

	select {
	case err := <-s.failed:
		return err
	case got := <-signals:
		return c.drain(log, s, got, signals)
	}
}

// tell says what is served.
func (c *serveCmd) tell(log *slog.Logger, s *service) {
	facts := []any{"addr", s.addr(), "admin", s.adminAddr()}
	cfg := s.proxy.Config()
	if c.Config != "" {
		facts = append(facts, "config", c.Config, "config_sha", short(cfg.SHA256), "classes", len(cfg.Classes), "upstreams", len(cfg.Upstreams))
	} else {
		begins, _ := c.Limit.Law.Start() // validated
		facts = append(facts, "upstream", c.upstream.Redacted(), "limit", begins, "law", fmt.Sprint(c.Limit.Law),
			"objective_seconds", c.Objective.Duration().Seconds(), "observe", c.Observe)
	}
	log.Info("serving", append(facts, "version", build.Read().Version)...)
	for _, k := range cfg.Classes {
		if law := k.Limiter.Limit; k.Limiter.Observe && policy.Number(law) == 0 {
			if law == nil {
				law = limit.Auto{}
			}
			begins, _ := law.Start()
			log.Warn("the limit stays where it begins: where everything runs at once, nothing shows what a limit would do; give a number", "limiter", k.Name, "limit", begins)
		}
	}
}

func (c *serveCmd) drain(log *slog.Logger, s *service, got os.Signal, signals <-chan os.Signal) error {
	log.Info("draining", "signal", got.String(), "delay_seconds", c.DrainDelay.Duration().Seconds(),
		"timeout_seconds", c.DrainTimeout.Duration().Seconds())
	go func() {
		got := <-signals
		log.Error("stopped at once: second signal", "signal", got.String())
		os.Exit(exitRun)
	}()
	s.admin.Enter(admin.Draining)
	if err := s.proxy.Drain(c.DrainDelay.Duration(), c.DrainTimeout.Duration(), s.servers...); err != nil {
		log.Error(err.Error())
		return said(exitRun)
	}
	log.Info("stopped")
	return nil
}

func prefixes(networks []flags.Network) []netip.Prefix {
	var out []netip.Prefix
	for _, n := range networks {
		out = append(out, netip.Prefix(n))
	}
	return out
}
