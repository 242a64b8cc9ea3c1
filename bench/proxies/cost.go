package proxies

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// What a pass or a refusal costs is measured in a closed loop, so that every processor is
// busy: a proxy that idles between two requests pays for each time it falls asleep, which
// says more about the load than about the proxy.

// maxLost is the part of the requests of a pass of the benchmark that may be lost, or be
// answered otherwise than expected: more would be another measurement.
const maxLost = 0.01

// Cost is what one contestant's requests cost in one protocol.
type Cost struct {
	Contestant string    `json:"contestant"`
	Protocol   string    `json:"protocol"`
	What       string    `json:"what"`               // pass or refusal
	PerCPU     []float64 `json:"requests_per_cpu_s"` // of each pass
	Rate       []float64 `json:"requests_per_s"`     // of each pass, with client and service on the same processors
}

// What a Cost is of.
const (
	Pass    = "pass"
	Refusal = "refusal"
)

// A Clock says how often and how long contestants are measured.
type Clock struct {
	Passes int
	Length time.Duration // of one contestant in one pass
	Say    func(format string, args ...any)
}

// Costs measures what a pass costs each of cs and what a refusal costs goodput, with the
// cheapest refusal that net/http knows beside it.
func (ps Programs) Costs(ctx context.Context, cs []Contestant, clock Clock) ([]*Cost, error) {
	upstream, stop, err := ps.service(1)
	if err != nil {
		return nil, err
	}
	defer stop()
	var all []*stand
	defer func() {
		for _, s := range all {
			s.Stop()
		}
	}()
	for _, c := range cs {
		p, err := ps.Start(c, upstream, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, &stand{Proxy: p, what: Pass, path: pathFast})
	}
	refuses, err := ps.refusing(upstream)
	all = append(all, refuses...)
	if err != nil {
		return nil, err
	}
	for pass := range clock.Passes {
		for _, protocol := range []string{HTTP1, H2C} {
			for i := range all {
				s := all[i]
				if pass%2 == 1 { // A B, then B A: a drift hits both alike
					s = all[len(all)-1-i]
				}
				clock.Say("pass %d of %d: %s, %s of %s", pass+1, clock.Passes, protocol, s.what, s.Contestant.Name)
				if err := s.measure(ctx, ps, protocol, clock.Length); err != nil {
					return nil, err
				}
			}
		}
	}
	var costs []*Cost
	for _, protocol := range []string{HTTP1, H2C} {
		for _, s := range all {
			costs = append(costs, s.costs[protocol])
		}
	}
	return costs, nil
}

// A stand is a proxy that is measured, and what came of it.
type stand struct {
	*Proxy
	what  string
	path  string
	hold  func() // ends what keeps it refusing
	costs map[string]*Cost
}

func (s *stand) Stop() {
	if s.hold != nil {
		s.hold()
	}
	s.Proxy.Stop()
}

// refusing starts what refuses everything: goodput whose only slot is taken, and the floor.
func (ps Programs) refusing(upstream string) ([]*stand, error) {
	f, err := ps.Start(floor(), upstream, 0)
	if err != nil {
		return nil, err
	}
	all := []*stand{{Proxy: f, what: Refusal, path: pathFast}}
	// One place to wait, which is taken as well: an objective of a day has nobody leave it.
	g, err := ps.Start(goodput(Goodput, "", "--limit", "1", "--max-waiting", "1", "--objective", "24h"), upstream, 0)
	if err != nil {
		return all, err
	}
	held := &stand{Proxy: g, what: Refusal, path: pathFast}
	all = append(all, held)
	held.hold, err = ps.hold(upstream, g.H1)
	return all, err
}

// hold sends addr two requests that are answered when the result is called: one runs and
// one waits.
func (ps Programs) hold(upstream, addr string) (release func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	for range 2 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+pathHold, nil)
		if err != nil {
			cancel()
			return nil, err
		}
		go func() {
			if res, err := http.DefaultClient.Do(r); err == nil { // ends with cancel
				res.Body.Close()
			}
		}()
	}
	// Both are there once a third is refused.
	for deadline := time.Now().Add(startTime); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if told, err := ask(upstream); err != nil || told.Held != 1 {
			continue
		}
		ctx, done := context.WithTimeout(ctx, time.Second)
		status, err := get(ctx, "http://"+addr+pathFast, io.Discard)
		done()
		if err == nil && status == http.StatusServiceUnavailable {
			return cancel, nil
		}
	}
	cancel()
	return nil, fmt.Errorf("goodput whose slot is taken does not refuse after %v", startTime)
}

// measure adds a pass to the cost of s.
func (s *stand) measure(ctx context.Context, ps Programs, protocol string, length time.Duration) error {
	addr := s.H1
	if protocol == H2C {
		addr = s.H2
	}
	before, err := s.process.cpu()
	if err != nil {
		return err
	}
	begin := time.Now()
	got, err := ps.load(ctx, protocol, addr, s.path, length)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := s.process.cpu()
	if err != nil {
		return err
	}
	wanted := got.fine
	if s.what == Refusal {
		wanted = got.answers - got.fine
	}
	if other := got.answers - wanted + got.lost; float64(other) > maxLost*float64(got.answers) {
		return fmt.Errorf("%s over %s: %d of %d requests were lost or answered otherwise than by a %s", s.Contestant.Name, protocol, other, got.answers, s.what)
	}
	if after == before {
		return fmt.Errorf("%s used no processor time for %d requests", s.Contestant.Name, got.answers)
	}
	if s.costs == nil {
		s.costs = map[string]*Cost{}
	}
	c := s.costs[protocol]
	if c == nil {
		c = &Cost{Contestant: s.Contestant.Name, Protocol: protocol, What: s.what}
		s.costs[protocol] = c
	}
	c.PerCPU = append(c.PerCPU, float64(wanted)/(after-before).Seconds())
	c.Rate = append(c.Rate, float64(wanted)/took.Seconds())
	return nil
}
