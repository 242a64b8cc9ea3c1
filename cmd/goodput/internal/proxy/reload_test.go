package proxy

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// long returns how long a test under load takes: short, or what GOODPUT_STRESS says, as
// make soak has it.
func long(t *testing.T, short time.Duration) time.Duration {
	t.Helper()
	s := os.Getenv("GOODPUT_STRESS")
	if s == "" {
		return short
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A shop is a service that counts what it has in flight, by the first segment of the path.
type shop struct {
	takes     func(path string) time.Duration
	mu        sync.Mutex
	now, most map[string]int
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // whatever came
	_, rest, _ := strings.Cut(r.URL.Path, "/")
	name, _, _ := strings.Cut(rest, "/")
	s.enter(name, 1)
	defer s.enter(name, -1)
	time.Sleep(s.takes(name))
	fmt.Fprint(w, "from the shop")
}

// enter also counts under "" all of them together.
func (s *shop) enter(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range []string{name, ""} {
		s.now[key] += n
		s.most[key] = max(s.most[key], s.now[key])
	}
}

func (s *shop) peak(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most[name]
}

func newShop(takes func(string) time.Duration) *shop {
	return &shop{takes: takes, now: map[string]int{}, most: map[string]int{}}
}

// A lane is how a class is described in these tests.
type lane struct {
	name         string // of the class, and the first segment of the path
	law          limit.Law
	depth        int
	objective    time.Duration
	upstream     string
	takesTheRest bool
}

func (l lane) class() config.Class {
	c := config.Class{
		Name: l.name, Upstream: l.upstream,
		Limiter: goodput.Config{Name: l.name, Limit: l.law, Depth: l.depth, Objective: l.objective},
	}
	if !l.takesTheRest {
		c.Match.Paths = []string{"/" + l.name}
	}
	return c
}

// lanes returns a configuration of classes whose upstreams are all on one server.
func lanes(t *testing.T, addr string, all ...lane) *config.Config {
	t.Helper()
	u := mustURL(t, "http://"+addr)
	cfg := &config.Config{Listeners: []config.Listener{config.DefaultListener()}}
	known := map[string]bool{}
	for _, l := range all {
		if !known[l.upstream] {
			known[l.upstream] = true
			up := config.DefaultUpstream(u)
			up.Name = l.upstream
			cfg.Upstreams = append(cfg.Upstreams, up)
		}
		cfg.Classes = append(cfg.Classes, l.class())
	}
	return cfg
}

// A crowd is a proxy under load, and every limiter that it ever had.
type crowd struct {
	*testing.T
	proxy   *Proxy
	server  *http.Server
	addr    string
	clients []*http.Client

	mu       sync.Mutex
	limiters []*goodput.Limiter

	sent, served, refused atomic.Int64
}

func newCrowd(t *testing.T, cfg *config.Config) *crowd {
	t.Helper()
	c := &crowd{T: t, clients: []*http.Client{client(t, false), client(t, true)}}
	var err error
	c.proxy, err = New(cfg, Options{
		Logger: slog.New(slog.DiscardHandler),
		NewLimiter: func(cfg goodput.Config) *goodput.Limiter {
			lim := goodput.New(cfg)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.limiters = append(c.limiters, lim)
			return lim
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.server = c.proxy.Server(cfg.Listeners[0])
	go c.server.Serve(l) // ends with Close
	t.Cleanup(func() { c.server.Close() })
	c.addr = l.Addr().String()
	return c
}

func (c *crowd) all() []*goodput.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*goodput.Limiter(nil), c.limiters...)
}

// fire sends requests for all paths, in turn, at an average rate of each, until end is closed
// and every answer is there. Each must be the shop's, or a refusal of ours. There are at most
// manyPending at once, so that a machine which cannot keep up is late and not drowned.
func (c *crowd) fire(seed uint64, perSecond float64, end <-chan struct{}, paths ...string) {
	rng := rand.New(rand.NewPCG(seed, 1))
	body := strings.Repeat("b", 2000)
	var pending sync.WaitGroup
	places := make(chan struct{}, manyPending)
	due := time.Now()
	for i := 0; ; i++ {
		due = due.Add(time.Duration(rng.ExpFloat64() / (perSecond * float64(len(paths))) * float64(time.Second)))
		select {
		case <-end:
			pending.Wait()
			return
		case <-time.After(time.Until(due)):
		}
		method := []string{"GET", "POST"}[rng.IntN(2)]
		use, path := c.clients[rng.IntN(2)], paths[i%len(paths)]
		places <- struct{}{}
		pending.Go(func() {
			c.one(use, method, path, body)
			<-places
		})
	}
}

// manyPending is several times what may run and wait in these tests.
const manyPending = 256

func (c *crowd) one(use *http.Client, method, path, body string) {
	req, err := http.NewRequest(method, "http://"+c.addr+path, nil)
	if method == "POST" {
		req, err = http.NewRequest(method, "http://"+c.addr+path, strings.NewReader(body))
	}
	if err != nil {
		c.Error(err)
		return
	}
	c.sent.Add(1)
	res, err := use.Do(req)
	if err != nil {
		c.Errorf("%s %s: lost: %v", method, path, err)
		return
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	reason := res.Header.Get("Goodput-Rejected")
	switch {
	case err != nil:
		c.Errorf("%s %s: half an answer: %v", method, path, err)
	case res.StatusCode == 200 && string(text) == "from the shop":
		c.served.Add(1)
	case res.StatusCode == 503 && reason != "":
		c.refused.Add(1)
	default:
		c.Errorf("%s %s: %s %q %q", method, path, res.Status, reason, text)
	}
}

// atRest waits until nothing is left of any request, and checks that each was counted once.
func (c *crowd) atRest() {
	c.Helper()
	var arrivals, ended uint64
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		busy := c.proxy.Door().Buffered
		arrivals, ended = 0, 0
		for _, lim := range c.all() {
			s := lim.Stats()
			busy += int64(s.InUse + s.Running + s.Waiting)
			busy += s.WaitingBytes
			arrivals += s.Arrivals
			for _, n := range s.Outcomes {
				ended += n
			}
		}
		if busy == 0 {
			break
		}
		if time.Now().After(end) {
			c.Fatalf("something is left: %d bytes or requests, %+v", busy, c.proxy.Door())
		}
	}
	if n := uint64(c.sent.Load()); arrivals != n || ended != n {
		c.Errorf("%d requests were sent, %d arrived, %d ended", n, arrivals, ended)
	}
}

// steady checks that what only counts up never falls.
type steady map[string]uint64

func (s steady) check(t *testing.T, p *Proxy, names ...string) {
	t.Helper()
	grows := func(name string, now uint64) {
		if was := s[name]; now < was {
			t.Errorf("%s fell from %d to %d", name, was, now)
		}
		s[name] = now
	}
	for _, lim := range p.Limiters() {
		for _, name := range names {
			if lim.Name() != name {
				continue
			}
			st := lim.Stats()
			grows(name+" arrivals", st.Arrivals)
			grows(name+" immediate", st.Immediate)
			grows(name+" dequeued", st.Dequeued)
			for o, n := range st.Outcomes {
				grows(fmt.Sprint(name, " outcome ", goodput.Outcome(o)), n)
			}
			for r, n := range st.Refusals {
				grows(fmt.Sprint(name, " refused ", goodput.Reason(r)), n)
			}
		}
	}
	door := p.Door()
	grows("door left", door.Left)
	grows("door bad bodies", door.BadBodies)
	grows("door upgraded", door.UpgradedTotal)
	for source, n := range p.Deadlines() {
		grows("deadlines by "+source, n)
	}
}

// A thousand reloads (300 without GOODPUT_STRESS), each another configuration: limits and
// depths change, a class and an upstream come and go. Under three times the load no request
// is lost, nothing is left behind, and no class has ever more in flight than the larger of
// its limits.
func TestReloadsUnderLoadLoseNothing(t *testing.T) {
	const service = 25 * time.Millisecond
	reloads, every := 300, 10*time.Millisecond
	if os.Getenv("GOODPUT_STRESS") != "" {
		reloads = 1000
	}
	before, _ := working()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newShop(func(string) time.Duration { return service })
	addr := backend(t, s)
	a := lanes(t, addr,
		lane{"stays", limit.Fixed(4), 20, time.Second, "app", false},
		lane{"rest", limit.Fixed(6), 10, 500 * time.Millisecond, "app", true})
	b := lanes(t, addr,
		lane{"comes", limit.Fixed(3), 8, time.Second, "other", false},
		lane{"stays", limit.Fixed(8), 5, 300 * time.Millisecond, "app", false},
		lane{"rest", limit.Fixed(2), 0, time.Second, "other", true})
	c := newCrowd(t, a)
	end, fired := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(fired)
		// The three have 10 or 13 slots between them, 520/s at the most: three times that.
		c.fire(seed, 520, end, "/stays/x", "/comes/x", "/rest/x")
	}()
	seen := steady{}
	for i := range reloads {
		cfg := a
		if i%2 == 0 {
			cfg = b
		}
		if err := c.proxy.Reconfigure(cfg); err != nil {
			t.Fatal(err)
		}
		seen.check(t, c.proxy, "stays", "rest")
		time.Sleep(every)
	}
	close(end)
	<-fired
	c.atRest()
	t.Logf("%d sent, %d served, %d refused; most in flight %v, %d limiters", c.sent.Load(), c.served.Load(), c.refused.Load(), s.most, len(c.all()))
	if c.served.Load() == 0 || c.refused.Load() < c.sent.Load()/3 {
		t.Errorf("no overload: %d of %d were refused", c.refused.Load(), c.sent.Load())
	}
	// What asks for comes is of the rest while there is no such class.
	if n := s.peak("stays"); n > 8 {
		t.Errorf("stays had %d in flight, its larger limit is 8", n)
	}
	if n := s.peak("rest"); n > 6 {
		t.Errorf("rest had %d in flight, its larger limit is 6", n)
	}
	if n := s.peak("comes"); n > 6+3 {
		t.Errorf("comes had %d in flight, its limit is 3, and 6 as a part of the rest", n)
	}
	if n := s.peak(""); n > 8+6+3 {
		t.Errorf("%d were in flight, and all of the larger limits are 17", n)
	}
	c.nothingRuns(before)
}

// working counts the goroutines that run our code or carry a request of a client of net/http.
// Those of servers and of connections that idle are none of ours.
func working() (n int, stacks []string) {
	all := make([]byte, 8<<20)
	all = all[:runtime.Stack(all, true)]
	for g := range strings.SplitSeq(string(all), "\n\n") {
		if strings.Contains(g, "(*persistConn)") || strings.Contains(g, "http2ClientConn") || strings.Contains(g, "http2.(*ClientConn)") || ours(g) {
			stacks = append(stacks, g)
		}
	}
	return len(stacks), stacks
}

// ours reports whether one of the files of a stack is of this project and no test.
func ours(stack string) bool {
	for line := range strings.Lines(stack) {
		if strings.Contains(line, ".go:") && !strings.Contains(line, "_test.go:") && project.MatchString(line) {
			return true
		}
	}
	return false
}

// project matches the line of a file in a stack, which has the path of a package before
// the name of the function in the line above, and the directory here.
var project = regexp.MustCompile(`/(goodputhttp|admission|limit|internal/(proxy|upstream|listen))/[a-z0-9_]+\.go:`)

// nothingRuns closes the proxy and waits until no more goroutines work than before it was
// there.
func (c *crowd) nothingRuns(before int) {
	c.Helper()
	c.server.Close() // nothing is in flight
	c.proxy.Close()
	for _, use := range c.clients {
		use.CloseIdleConnections()
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		n, stacks := working()
		if n <= before {
			return
		}
		if time.Now().After(end) {
			c.Fatalf("%d goroutines work, %d before:\n%s", n, before, strings.Join(stacks, "\n\n"))
		}
	}
}
