package proxies

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput/bench/live"
)

// conns is how many connections the load comes over. Caddy and haproxy allow 250 and 100
// streams on one unless told otherwise, and Caddy 2.6 cannot be told: 32 of 250 are 8,000
// requests in flight, which is what 4,000 a second are that are given up after 2 s.
const conns = 32

// An Overload is what became of a load behind one contestant.
type Overload struct {
	*live.Result
	Round   int     `json:"round"`
	Admits  string  `json:"admits"`
	CPU     float64 `json:"proxy_cpu_s"` // of the proxy alone
	Offered int     `json:"offered"`
}

// A Load is an overload to play.
type Load struct {
	Slots    int
	Service  time.Duration // mean, exponential
	Multiple []float64     // of what the slots can do
	Length   time.Duration // of each
	Warm     time.Duration // of a load that fits before it, which is not counted
	Rounds   int           // of all contestants, each with other requests
	Tries    int           // of a run that is void
	Seed     uint64        // of the first round
	Say      func(format string, args ...any)
}

// warmLoad is what a proxy is warmed with, of what the slots can do: most of it, so that
// limits that find themselves are where they would be before an overload.
const warmLoad = 0.8

// Overloads plays l against each of cs.
func (ps Programs) Overloads(ctx context.Context, cs []Contestant, l Load) ([]*Overload, error) {
	// The garbage of the client is most of what it costs, and none of it is a proxy's.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var all []*Overload
	for round := range l.Rounds {
		for _, multiple := range l.Multiple {
			for i := range cs {
				c := cs[i]
				if round%2 == 1 { // A B, then B A: a drift hits both alike
					c = cs[len(cs)-1-i]
				}
				o, err := ps.tries(ctx, c, multiple, round, l)
				if err != nil {
					return nil, fmt.Errorf("%gx, %s: %w", multiple, c.Name, err)
				}
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// tries plays one load until it is not void.
func (ps Programs) tries(ctx context.Context, c Contestant, multiple float64, round int, l Load) (o *Overload, err error) {
	l.Seed += uint64(round)
	for try := 0; try < l.Tries && (try == 0 || o.Void != ""); try++ {
		l.Say("round %d of %d: %gx, %s, for %v", round+1, l.Rounds, multiple, c.Name, l.Warm+l.Length)
		if o, err = ps.overload(ctx, c, multiple, l); err != nil {
			return nil, err
		}
		o.Round = round
		debug.FreeOSMemory() // what one left is not the next one's to collect
	}
	return o, nil
}

func (ps Programs) overload(ctx context.Context, c Contestant, multiple float64, l Load) (*Overload, error) {
	upstream, stop, err := ps.service(l.Slots)
	if err != nil {
		return nil, err
	}
	defer stop()
	p, err := ps.Start(c, upstream, l.Slots)
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	w, err := dial(p.H2)
	if err != nil {
		return nil, err
	}
	defer w.close()
	speed := func() (float64, error) {
		b, err := ask(upstream)
		return b.Speed, err
	}
	if _, err := live.Against(ctx, c.Name, live.Cold(warmLoad, l.Slots, l.Service, l.Warm, ^l.Seed), w.send, speed); err != nil {
		return nil, err
	}
	before, err := p.process.cpu()
	if err != nil {
		return nil, err
	}
	r, err := live.Against(ctx, c.Name, live.Cold(multiple, l.Slots, l.Service, l.Length, l.Seed), w.send, speed)
	if err != nil {
		return nil, err
	}
	after, err := p.process.cpu()
	if err != nil {
		return nil, err
	}
	o := &Overload{Result: r, Admits: c.words(l.Slots), CPU: (after - before).Seconds()}
	for _, b := range r.Series {
		o.Offered += b.Arrived
	}
	return o, ctx.Err()
}

// A wire is a client over HTTP/2 without TLS.
type wire struct {
	transport *http.Transport
	conns     []*http.ClientConn
	base      *http.Request
	turn      atomic.Uint32
}

func dial(addr string) (*wire, error) {
	clear := new(http.Protocols)
	clear.SetUnencryptedHTTP2(true)
	w := &wire{transport: &http.Transport{Protocols: clear, DisableCompression: true, DialContext: (&net.Dialer{Timeout: startTime}).DialContext}}
	var err error
	if w.base, err = http.NewRequest(http.MethodGet, "http://"+addr+pathWork, nil); err != nil {
		return nil, err
	}
	for range conns {
		c, err := w.transport.NewClientConn(context.Background(), "http", addr)
		if err != nil {
			w.close()
			return nil, err
		}
		w.conns = append(w.conns, c)
		// The first answer comes behind what the proxy says of how many streams it allows;
		// before it, the client keeps what is above 100 to itself.
		if a, err := w.try(context.Background(), c, 0); err != nil {
			w.close()
			return nil, fmt.Errorf("the first request, which was answered %d: %w", a, err)
		}
	}
	return w, nil
}

// send performs one request of so much work.
func (w *wire) send(ctx context.Context, work time.Duration) (status int, err error) {
	return w.try(ctx, w.conns[w.turn.Add(1)%conns], work)
}

var (
	budget = []string{strconv.FormatInt(live.Deadline.Milliseconds(), 10)}
	agent  = []string{"proxies"}
)

func (w *wire) try(ctx context.Context, c *http.ClientConn, work time.Duration) (status int, err error) {
	r := w.base.WithContext(ctx)
	r.Header = http.Header{
		"User-Agent": agent, budgetHeader: budget,
		workHeader: {strconv.FormatInt(work.Microseconds(), 10)},
	}
	res, err := c.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	return res.StatusCode, nil
}

func (w *wire) close() {
	for _, c := range w.conns {
		_ = c.Close()
	}
}
