package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A crowd is the clients.
type crowd struct {
	addr   string // of the proxy
	begin  time.Time
	tally  *tally
	h1, h2 *http.Transport
	paused atomic.Bool

	mu      sync.Mutex
	flight  int                // requests and wild clients that have not ended
	lasting context.Context    // of what lasts
	cut     context.CancelFunc // ends what lasts
}

func newCrowd(addr string, begin time.Time, t *tally) *crowd {
	clear := new(http.Protocols)
	clear.SetUnencryptedHTTP2(true)
	c := &crowd{
		addr: addr, begin: begin, tally: t,
		h1: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, DisableCompression: true},
		h2: &http.Transport{Protocols: clear, IdleConnTimeout: 30 * time.Second, DisableCompression: true},
	}
	c.resume()
	return c
}

// pause stops the load and cuts what lasts.
func (c *crowd) pause() {
	c.paused.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut()
}

func (c *crowd) resume() {
	c.mu.Lock()
	c.lasting, c.cut = context.WithCancel(context.Background())
	c.mu.Unlock()
	c.paused.Store(false)
}

// leave ends the load for good and waits until every client has ended: none of them lasts longer than
// its deadline and its patience.
func (c *crowd) leave() {
	c.pause()
	for end := time.Now().Add(deadlineCap + patience + time.Second); c.inFlight() > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
}

// inFlight returns how many requests and wild clients have not ended.
func (c *crowd) inFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flight
}

// run does f in a goroutine of its own, counted.
func (c *crowd) run(f func()) {
	c.mu.Lock()
	c.flight++
	c.mu.Unlock()
	go func() {
		defer func() {
			c.mu.Lock()
			c.flight--
			c.mu.Unlock()
		}()
		f()
	}()
}

// offer calls send at the instants of a Poisson process of so many a second, until ctx ends.
// While the load is paused instants pass without it.
func (c *crowd) offer(ctx context.Context, rng *rand.Rand, perSecond float64, send func(due time.Duration, rng *rand.Rand)) {
	for at := time.Since(c.begin); ; {
		at += time.Duration(rng.ExpFloat64() / perSecond * float64(time.Second))
		one := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())) // so that a request does not depend on the ends of others
		if !sleep(ctx, at-time.Since(c.begin)) {
			return
		}
		if c.paused.Load() {
			continue
		}
		c.tally.sent(at, time.Since(c.begin)-at)
		c.run(func() { send(at, one) })
	}
}

// An ask is one request.
type ask struct {
	path     string
	body     int
	h2       bool
	deadline time.Duration
	leaves   time.Duration // after which the client does; 0: never
	work     time.Duration
	header   http.Header
}

// draw makes up a request for a class that queues.
func draw(rng *rand.Rand, class int) ask {
	a := ask{
		path: pathPlain, h2: rng.IntN(2) == 0, deadline: deadlineCap,
		work: time.Duration(rng.ExpFloat64() * float64(meanService)),
	}
	switch {
	case class == 1:
		a.path = pathAuto
	case rng.IntN(20) == 0:
		a.path = pathExtra
	}
	size := 1 << 10
	switch n := rng.IntN(20); {
	case n == 0:
		size = 128 << 10
	case n < 4:
		size = 16 << 10
	}
	tenant := "t" + strconv.Itoa(1+int(20*rng.Float64()*rng.Float64())) // t1 asks most
	if rng.IntN(50) == 0 {
		tenant = "once-" + strconv.FormatUint(rng.Uint64(), 36) // one that never comes again
	}
	a.header = http.Header{
		workHeader: {strconv.FormatInt(a.work.Microseconds(), 10)}, sizeHeader: {strconv.Itoa(size)},
		"X-Tenant": {tenant}, "User-Agent": {"soak"},
	}
	switch n := rng.IntN(10); {
	case n < 6:
		a.deadline = shortDeadline
		a.header.Set("X-Envoy-Expected-Rq-Timeout-Ms", strconv.FormatInt(shortDeadline.Milliseconds(), 10))
	case class == 1:
		a.deadline = shortDeadline
		a.header.Set("Expect-Within", fmt.Sprint(shortDeadline.Seconds()))
	case n < 9:
		a.deadline = longDeadline
		a.header.Set("Expect-Within", fmt.Sprint(longDeadline.Seconds()))
	}
	if rng.IntN(10) == 0 {
		a.header.Set("X-Priority", "sheddable")
	}
	if rng.IntN(10) == 0 {
		a.body = 1 + rng.IntN(64<<10)
	}
	if rng.IntN(50) == 0 {
		a.leaves = time.Duration(1 + rng.Int64N(int64(200*time.Millisecond)))
	}
	return a
}

// request sends one that was due then and tells what became of it.
func (c *crowd) request(due time.Duration, rng *rand.Rand, class int) {
	a := draw(rng, class)
	until := a.deadline + patience
	if a.leaves > 0 {
		until = a.leaves
	}
	ctx, cancel := context.WithDeadline(context.Background(), c.begin.Add(due+until))
	defer cancel()
	s := seen{class: class, due: due, deadline: a.deadline, work: a.work, leaves: a.leaves > 0}
	s.end, s.held = c.send(ctx, a)
	s.took = time.Since(c.begin) - due
	if s.end == lost && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.end = hung
		if a.leaves > 0 {
			s.end = left
		}
	}
	c.tally.add(s)
}

// send performs a and reads its answer to the end.
func (c *crowd) send(ctx context.Context, a ask) (e end, held time.Duration) {
	method, body := http.MethodGet, io.Reader(nil)
	if a.body > 0 {
		method, body = http.MethodPost, strings.NewReader(strings.Repeat("b", a.body))
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.addr+a.path, body)
	if err != nil {
		return lost, 0
	}
	r.Header = a.header
	transport := c.h1
	if a.h2 {
		transport = c.h2
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return lost, 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return lost, 0
	}
	switch {
	case res.Header.Get("Goodput-Rejected") != "":
		return refused, 0
	case res.StatusCode != http.StatusOK:
		return failed, 0
	}
	us, _ := strconv.ParseInt(res.Header.Get(heldHeader), 10, 64) // of what lasts there is none
	return ok, time.Duration(us) * time.Microsecond
}
