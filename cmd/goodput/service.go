package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/admin"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/listen"
	"github.com/goodput/goodput/cmd/goodput/internal/metrics"
	"github.com/goodput/goodput/cmd/goodput/internal/proxy"
	"github.com/goodput/goodput/cmd/goodput/internal/upstream"
	"github.com/goodput/goodput/cmd/goodput/internal/watch"
)

// A service is what serve has running: a proxy, the listeners of the configuration, one
// server for each, and the admin listener.
type service struct {
	log       *slog.Logger
	path      string // of the policy file; "" for flags
	proxy     *proxy.Proxy
	listeners []config.Listener // as they were opened: a reload does not change them
	servers   []*http.Server
	open      []*listen.Listener
	admin     *admin.Admin
	adminOn   net.Listener // nil if off
	failed    chan error
	logs      requestLogs
	stopWatch context.CancelFunc
	watched   chan struct{}

	reloading sync.Mutex // held by the reload that is under way, which may wait for a disk

	mu      sync.Mutex
	reloads metrics.Reloads
}

// readPolicy reads a policy file and the files that it names. What is wrong is for the user,
// each with its line; what may be wrong is in the log.
func readPolicy(path string, log *slog.Logger) (*config.Config, error) {
	src, err := readRegular(path)
	if err != nil {
		return nil, err
	}
	cfg, warnings, err := config.ReadAll(path, src, time.Now())
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		log.Warn(w.Sentence, "config", path, "limiter", w.Class)
	}
	return cfg, nil
}

// readRegular is readYAML for a file that is read again: a pipe has nothing the second time, and
// opening it waits for a writer.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, unreadable(path, errors.New("it is not a regular file"))
	}
	return readYAML(path)
}

// start builds the parts, opens the listeners and serves.
func (c *serveCmd) start(log *slog.Logger) (*service, error) {
	cfg := c.config()
	if c.Config != "" {
		var err error
		if cfg, err = readPolicy(c.Config, log); err != nil {
			return nil, usage(err)
		}
	}
	logs, err := c.openLogs(os.Stdout, log)
	if err != nil {
		return nil, usage(err)
	}
	p, err := proxy.New(cfg, logs.options(log))
	if err != nil {
		logs.close(log)
		return nil, usage(err)
	}
	s := &service{
		log: log, path: c.Config, proxy: p, logs: logs, listeners: cfg.Listeners, failed: make(chan error, len(cfg.Listeners)+1),
		reloads: metrics.Reloads{Good: true, At: time.Now()},
	}
	s.admin = admin.New(s.shown())
	if err := s.listen(c.Admin); err != nil {
		s.closeListeners()
		p.Close()
		logs.close(log)
		return nil, err
	}
	if s.adminOn != nil {
		go s.run(s.admin.Server(), s.adminOn)
	}
	for i, srv := range s.servers {
		go s.run(srv, s.open[i])
	}
	s.admin.Enter(admin.Ready)

	ctx, cancel := context.WithCancel(context.Background())
	s.stopWatch, s.watched = cancel, make(chan struct{})
	go func() {
		defer close(s.watched)
		watch.Run(ctx, log, p.Limiters)
	}()
	if s.adminOn != nil {
		go s.admin.Watch(ctx)
	}
	go listen.Watch(ctx, p.Overloaded, s.open...)
	return s, nil
}

// shown is what the admin listener shows.
func (s *service) shown() admin.Config {
	a := admin.Config{
		Limiters: s.proxy.Limiters, Longest: s.longest,
		Proxy: metrics.Proxy{
			Open: s.proxy.Open, MaxUpgraded: s.proxy.MaxUpgraded,
			Failures: s.proxy.Failures, Deadlines: s.proxy.Deadlines, Door: s.proxy.Door,
			Reloads: s.reloaded, Listeners: s.listened, Overflows: listen.Overflows,
			Servers: s.behind, Traffic: s.lasting, Logs: s.logs.numbers, Switched: s.switched,
		},
		Policy:  func() (source, sum string) { return s.proxy.Config().Source, s.proxy.Config().SHA256 },
		Observe: &admin.Observe{Set: s.proxy.SetObserve, All: s.observing},
	}
	if s.path != "" {
		a.Reload = s.reload
	}
	return a
}

// observing is how it is with observe mode, in the order of the limiters.
func (s *service) observing() []admin.Observing {
	var all []admin.Observing
	for _, is := range s.proxy.Observing() {
		all = append(all, admin.Observing(is))
	}
	return all
}

// switched is of which limiters observe mode is not as the policy says.
func (s *service) switched() map[string]bool {
	all := map[string]bool{}
	for _, is := range s.proxy.Observing() {
		all[is.Limiter] = is.On != is.Policy
	}
	return all
}

// longest returns the longest deadline of a class.
func (s *service) longest(class string) time.Duration {
	for _, c := range s.proxy.Config().Classes {
		if c.Name == class {
			return max(c.Deadline, c.DeadlineCap)
		}
	}
	return 0
}

// listen opens all listeners, or none is served.
func (s *service) listen(adminOn flags.Address) error {
	for _, l := range s.listeners {
		on, err := listen.Open(l, s.log)
		if err != nil {
			return s.where(err)
		}
		s.open = append(s.open, on)
		s.servers = append(s.servers, s.proxy.Server(l))
	}
	if adminOn == flags.Off {
		return nil
	}
	on, err := net.Listen("tcp", string(adminOn))
	if err != nil {
		return cannotListen("--admin", string(adminOn), err)
	}
	s.adminOn = on
	return nil
}

// where says which flag or which file asked for a listener that cannot be had.
func (s *service) where(err error) error {
	if s.path == "" {
		return fmt.Errorf("--listen: %w", err)
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// cannotListen says why the listener that a flag asked for cannot be had: "listen tcp :8431: bind:"
// says nothing that the flag does not.
func cannotListen(flag, addr string, err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	if sys := (*os.SyscallError)(nil); errors.As(err, &sys) {
		err = sys.Err
	}
	return fmt.Errorf("%s: cannot listen on %s: %w", flag, addr, err)
}

func (s *service) closeListeners() {
	for _, l := range s.open {
		l.Close()
	}
	if s.adminOn != nil {
		s.adminOn.Close()
	}
}

func (s *service) run(srv *http.Server, l net.Listener) {
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.failed <- fmt.Errorf("listener %s failed: %w", l.Addr(), err)
	}
}

// reload puts what the policy file says now in force, or says why not: then what was in force
// is. What needs a restart is in the note. One reload at a time is under way.
func (s *service) reload() (note string, err error) {
	if !s.reloading.TryLock() {
		return "", errors.New("a reload is under way: the policy file, or what it names, is still being read")
	}
	defer s.reloading.Unlock()
	cfg, err := readPolicy(s.path, s.log)
	for _, l := range s.open { // first: newer keys are good under either configuration
		if err == nil {
			err = l.Reload()
		}
	}
	if err == nil {
		err = s.proxy.Reconfigure(cfg)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.reloads.Good, s.reloads.Why, s.reloads.FailedAt = false, err.Error(), time.Now()
		s.reloads.Failed++
		s.log.Error("reload failed: the configuration until now stays in force", "config", s.path, "err", err)
		return "", err
	}
	s.reloads.Good, s.reloads.At = true, time.Now()
	s.reloads.Done++
	s.reloads.Restart = !reflect.DeepEqual(cfg.Listeners, s.listeners)
	if s.reloads.Restart {
		note = "restart needed: listeners have changed, and those that are open stay as they are"
		s.log.Warn(note, "config", s.path)
	}
	s.log.Info("reloaded", "config", s.path, "config_sha", short(cfg.SHA256), "classes", len(cfg.Classes))
	return note, nil
}

// hearHangups reloads at each SIGHUP. It is a goroutine of its own: a reload may wait for a disk,
// and a SIGTERM is not to wait for a reload.
func (s *service) hearHangups(hangups <-chan os.Signal) {
	for range hangups {
		if s.logs.reopen() && s.path == "" {
			continue
		}
		if s.path == "" {
			s.log.Warn("SIGHUP: there is no policy file to read again; start with --config to have one")
			continue
		}
		s.reload() // has said in the log what is to be said
	}
}

// behind are the servers of the upstreams, in the order of the configuration.
func (s *service) behind() []metrics.Server {
	var all []metrics.Server
	stats := s.proxy.Upstreams()
	for _, u := range s.proxy.Config().Upstreams {
		for _, st := range stats[u.Name] {
			all = append(all, serverOf(u.Name, st))
		}
	}
	return all
}

func serverOf(name string, st upstream.ServerStats) metrics.Server {
	return metrics.Server{
		Upstream: name, Server: st.Server, Well: st.Well, Why: st.Why, Since: st.Since, Share: st.Share,
		InFlight: st.InFlight, Limit: st.Limit, Requests: st.Requests, Elsewhere: st.Elsewhere,
		Failures: st.Failures, Ejections: st.Ejections, Checks: st.Checks, Sick: st.Sick,
	}
}

// lasting is what lasts in each class.
func (s *service) lasting() []metrics.Traffic {
	var all []metrics.Traffic
	for _, t := range s.proxy.Traffic() {
		all = append(all, trafficOf(t))
	}
	return all
}

func trafficOf(t proxy.Traffic) metrics.Traffic {
	return metrics.Traffic{
		Class: t.Class, Mode: t.Mode.String(), Requests: t.Requests, Tunnels: t.Tunnels, TunnelsTotal: t.TunnelsTotal,
		UpgradesRefused: t.UpgradesRefused, CutIdle: t.CutIdle, CutTotal: t.CutTotal, Streamed: &t.Streamed, Tunnelled: &t.Tunnelled,
	}
}

// listened are the numbers of the listeners, in the order of the configuration.
func (s *service) listened() []metrics.Listener {
	all := make([]metrics.Listener, len(s.open))
	for i, l := range s.open {
		all[i] = listenerOf(l.Stats())
	}
	return all
}

func listenerOf(st listen.Stats) metrics.Listener {
	return metrics.Listener{
		Address: st.Address, Open: st.Open, Limit: st.MaxConnections, Accepted: st.Accepted, Errors: st.Errors,
		Full: st.Full, FullFor: st.FullFor, Paused: st.Paused, Queue: st.Queue, QueueLimit: st.QueueLimit, QueueKnown: st.QueueKnown,
	}
}

func short(sum string) string { return sum[:min(len(sum), 12)] }

func (s *service) reloaded() metrics.Reloads {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reloads
}

// close lets the log have its last word. The listeners end with the process.
func (s *service) close() {
	s.stopWatch()
	<-s.watched
	s.logs.close(s.log)
}

// addr is where clients connect.
func (s *service) addr() string {
	all := make([]string, len(s.open))
	for i, l := range s.open {
		all[i] = l.Addr().String()
	}
	return strings.Join(all, " ")
}

func (s *service) adminAddr() string {
	if s.adminOn == nil {
		return string(flags.Off)
	}
	return s.adminOn.Addr().String()
}
