package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/admin"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/demo"
	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/metrics"
	"github.com/goodput/goodput/cmd/goodput/internal/proxy"
	"github.com/goodput/goodput/limit"
)

// webLoad is what the live demo begins with: a service that is well, for whoever opens the page to
// overload.
const webLoad = 0.8

// BeforeApply is called by kong before Validate. It remembers what was typed: the environment is
// that of a server as well, and its GOODPUT_LIMIT is not about this.
func (c *demoCmd) BeforeApply(ctx *kong.Context) error {
	for _, p := range ctx.Path {
		if p.Flag != nil {
			c.typed = append(c.typed, p.Flag.Name)
		}
	}
	return nil
}

// Help is what kong prints below the one line.
func (demoCmd) Help() string {
	return `In the terminal: the same overload twice, and both in a table.

With --web, in a browser, until Ctrl-C: a service of 10 slots, 50ms each, so 200 requests a second, clients that leave after 500ms, and goodput, which may be before it or not. What one sees in one minute:

  1. Begin: 0.8 of what it can do is asked of it, and nearly all is in time.
  2. Move the load to 3: the service is as busy as it can be, and what is in time falls to almost nothing. The queue is as long as clients wait: whoever reaches its front is about to leave.
  3. Switch protection on: within 3s 200 a second are in time again, at the same load. The others are told no at once, and the page says why.
  4. Off: it collapses again. Load below 1: it comes back, since the queue is gone when its clients are.

With --serve the service of the terminal's demo, 60 slots of 50ms, waits for whoever calls it: through goodput at --listen, and directly at the port after it.

    goodput demo --serve
    goodput verify http://127.0.0.1:8432/ --objective 400ms
    goodput verify http://127.0.0.1:8433/ --objective 400ms

All of it is in this process and on the loopback interface. A viewer may offer up to 10 times what the service can do, and 2048 requests are under way at the most.`
}

// Flags that mean nothing in the terminal, with --web, and with --serve.
var (
	listenFlags = []string{"listen"}
	notWeb      = []string{"duration", "format"}
	notServe    = []string{"load", "duration", "format"}
)

// checkWay says in one sentence which flags do not go together, or which number is out of range.
func (c *demoCmd) checkWay() error {
	for _, name := range c.typed {
		switch {
		case c.Web && slices.Contains(notWeb, name):
			return fmt.Errorf("--%s and --web: the live demo runs until it is ended and is seen in a browser", name)
		case c.Serve && slices.Contains(notServe, name):
			return fmt.Errorf("--%s and --serve: the service is there until it is ended, and whoever calls it brings the load", name)
		case !c.Web && !c.Serve && slices.Contains(listenFlags, name):
			return fmt.Errorf("--%s is where the page of --web is, and the service of --serve: without them the demo is in the terminal", name)
		}
	}
	switch {
	case c.Listen == flags.Off && c.Web:
		return errors.New("--listen off: the page needs an address, such as 127.0.0.1:8432")
	case c.Listen == flags.Off && c.Serve:
		return errors.New("--listen off: the service needs an address, such as 127.0.0.1:8432")
	case !c.Web:
		return nil
	}
	if err := demo.CheckWebLoad(c.webLoad()); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

func (c *demoCmd) webLoad() float64 {
	if slices.Contains(c.typed, "load") {
		return c.Load
	}
	return webLoad
}

// webLimit is the number of slots, unless another limit was typed.
func (c *demoCmd) webLimit() limit.Law {
	if slices.Contains(c.typed, "limit") {
		return c.Limit.Law
	}
	return limit.Fixed(demo.WebSlots)
}

// web runs the live demo until ctx is done, which is no failure.
func (c *demoCmd) web(ctx context.Context, stderr io.Writer) error {
	on, err := net.Listen("tcp", string(c.Listen))
	if err != nil {
		return cannotListen("--listen", string(c.Listen), err)
	}
	defer on.Close()
	s := &service{
		log: slog.New(slog.DiscardHandler), failed: make(chan error, 1),
		reloads: metrics.Reloads{Good: true, At: time.Now()},
	}
	scene, err := demo.Start(ctx, demo.WebConfig{Load: c.webLoad(), Seed: c.Seed, Protect: s.protectWeb(c.webLimit())})
	if s.proxy != nil {
		defer s.proxy.Close() // after what talks to it
	}
	if err != nil {
		return err
	}
	defer scene.Close()

	shown := s.shown()
	shown.Demo = &admin.Demo{Controls: scene, Scene: func() any { return scene.Scene() }}
	s.admin = admin.New(shown)
	server := s.admin.Server()
	defer server.Close() // viewers stay as long as they may
	go s.run(server, on)
	go s.admin.Watch(ctx)
	s.admin.Enter(admin.Ready)
	fmt.Fprintf(stderr, "open %s\nCtrl-C ends it.\n", pageURL(on.Addr()))

	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// protectWeb is the proxy of serve, with what the admin listener shows of one.
func (s *service) protectWeb(law limit.Law) func(*url.URL) (*http.Server, error) {
	return func(upstream *url.URL) (*http.Server, error) {
		cfg := config.One(upstream)
		cfg.Classes[0].Limiter = goodput.Config{Name: config.DefaultName, Limit: law, Objective: demo.WebObjective}
		p, err := proxy.New(cfg, proxy.Options{Logger: s.log})
		if err != nil {
			return nil, err
		}
		s.proxy = p
		return p.Server(cfg.Listeners[0]), nil
	}
}

// pageURL is what to open: a browser needs an address that is one.
func pageURL(on net.Addr) string {
	host, port, _ := net.SplitHostPort(on.String()) // of a listener
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}
