package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// A run is one in progress. Only its own goroutine touches it; loads have theirs.
type run struct {
	cfg      Config
	send     load.Send
	show     *progress
	report   *Report
	like     func(load.Answer) bool
	inFlight int // at most, of each load

	// sent is every request so far, those beyond MaxRequests too, which are not sent. fits
	// counts means, so that a run seldom comes to that.
	sent atomic.Int64
	pace *pace // of the loads
}

// Run measures the target and judges it. It returns when nothing is under way any more; if
// ctx is done before, the report says that it was interrupted, and has what came before.
func Run(ctx context.Context, cfg Config) *Report {
	defer tune()()
	r := &run{cfg: cfg, report: newReport(cfg), show: newProgress(cfg)}
	began := time.Now()
	r.network(ctx)
	if ctx.Err() != nil {
		r.report.Void = "interrupted before its end"
	}
	Judge(r.report)
	r.show.end()
	r.report.Took = time.Since(began)
	return r.report
}

func newReport(cfg Config) *Report {
	r := &Report{
		Target: Shown(cfg.Target.URL), Program: cfg.Program, Command: cfg.Command, Began: time.Now(), Settings: cfg.Settings,
		Local: cfg.Target.Local,
	}
	if cfg.Capacity > 0 {
		r.Capacity = Capacity{PerSecond: cfg.Capacity, Given: true, Why: "given with --capacity"}
	}
	return r
}

// network connects, measures and closes what it has opened.
func (r *run) network(ctx context.Context) {
	if r.cfg.Capacity > 0 { // what cannot be asked in full is not begun
		if r.report.Void = r.cfg.fits(r.cfg.Capacity, idleRequests); r.report.Void != "" {
			return
		}
	}
	client, protocol, err := r.connect(ctx)
	if err != nil {
		r.report.Void = err.Error()
		return
	}
	defer client.Close()
	r.send, r.report.Settings.Protocol = client.Send, protocol
	r.inFlight = atOnce(protocol, descriptors())
	r.measure(ctx)
}

func (r *run) connect(ctx context.Context) (*load.Client, string, error) {
	if err := r.cfg.Target.Pin(ctx); err != nil {
		return nil, "", err
	}
	if r.cfg.HTTP == "auto" && r.cfg.Target.URL.Scheme == "http" {
		r.sent.Add(1) // the preface of HTTP/2, a bad request for whoever does not speak it
	}
	return r.cfg.dial(ctx, r.again)
}

// atOnce returns how many requests of a load may be in flight: with a connection for each as many
// as there are file descriptors, less 256 for everything else, and 0, the default of a load, with
// HTTP/2 or where descriptors are so few, or not known.
func atOnce(protocol string, descriptors uint64) int {
	if protocol == "HTTP/2" || descriptors <= 512 {
		return 0
	}
	return int(min(descriptors-256, load.DefaultMaxInFlight))
}

// descriptors returns how many files this process may have open; 0 if it cannot be known. The Go
// runtime has raised it as far as it may.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) // which may be signed
}

// Answers to requests that were not sent.
var (
	errFull = errors.New("more requests than --max-requests")
	errFast = errors.New("more requests in a second than --max-rate")
)

// again counts a request that is sent once more since its connection had ended, and reports
// whether the caps have room for it.
func (r *run) again() bool { return r.sent.Add(1) <= r.cfg.MaxRequests && r.pace.admit() }

// paced sends none beyond MaxRate.
func (r *run) paced(send load.Send) load.Send {
	return func(ctx context.Context) load.Answer {
		if !r.pace.admit() {
			return load.Answer{Err: errFast}
		}
		return send(ctx)
	}
}

// capped counts requests, and sends none beyond MaxRequests.
func (r *run) capped(send load.Send) load.Send {
	return func(ctx context.Context) load.Answer {
		if r.sent.Add(1) > r.cfg.MaxRequests {
			return load.Answer{Err: errFull}
		}
		return send(ctx)
	}
}

// measure is a run from its first request on.
func (r *run) measure(ctx context.Context) {
	r.send, r.pace = r.capped(r.send), newPace(r.cfg.MaxRate, r.cfg.Attempts)
	r.parts(ctx)
	if n := r.pace.heldBack(); n > 0 && r.report.Void == "" {
		r.report.Void = fmt.Sprintf("%s requests were not sent, since a second would have had more than --max-rate %s allows: the arrivals come in bursts, or the generator was late and made up for it. Raise it, or lower the highest of --steps",
			grouped(float64(n)), grouped(r.cfg.MaxRate))
	}
	if r.sent.Load() > r.cfg.MaxRequests && r.report.Void == "" {
		r.report.Void = fmt.Sprintf("--max-requests %s were sent before the run was over: raise it", grouped(float64(r.cfg.MaxRequests)))
	}
}

// parts are those of a run, one after another.
func (r *run) parts(ctx context.Context) {
	r.show.say("the idle service: %d requests, one after another", idleRequests)
	idle := r.ask(ctx)
	r.report.Idle = idle.Idle
	if ctx.Err() != nil {
		return
	}
	if r.report.Void = idle.void(r.cfg.Expect); r.report.Void != "" {
		return
	}
	r.report.Notes = append(r.report.Notes, idle.notes(r.cfg.Deadline)...)
	r.like = idle.like(r.cfg.Expect, r.cfg.AnyBody)
	if len(idle.answers) > 0 {
		r.show.say("%v for half of its answers: %s", idle.P50.Round(10*time.Microsecond), idle.Content)
	}

	c := &r.report.Capacity
	switch {
	case c.Given:
	case len(idle.answers) == 0:
		c.Why = fmt.Sprintf("each of %d requests to the idle service, one after another, was refused", idle.Requests)
		r.refusing(ctx)
	default:
		r.search(ctx)
	}
	if r.report.Void != "" || ctx.Err() != nil || c.PerSecond == 0 {
		return
	}
	if r.report.Void = r.cfg.fits(c.PerSecond, r.sent.Load()); r.report.Void == "" {
		r.show.say("capacity %s: %s", aSecond(c.PerSecond), c.Why)
		if need, short := tooShort(c.PerSecond, r.cfg.Length); short {
			r.show.say("that is about %s in a load of %s, and a p99 takes %d: a service that serves no more is judged with --duration %v only",
				grouped(c.PerSecond*r.cfg.Length.Seconds()), span(r.cfg.Length), minSlots, need)
		}
		r.steps(ctx)
	}
}

// refusingRate is what a service is offered that refuses each of 20 requests per second: no
// more than that, since it is there to say that a second caller changes nothing.
const refusingRate = 20

// refusing offers a small load to a service that refuses whoever asks, for the report to have.
func (r *run) refusing(ctx context.Context) {
	s := &search{run: r}
	s.read(ctx, min(refusingRate, r.cfg.MaxRate), shortest)
}

// steps offers the loads that are judged, each to a service that is calm.
func (r *run) steps(ctx context.Context) {
	for i, times := range r.cfg.Loads {
		r.settle(ctx, r.report.Capacity.PerSecond)
		if ctx.Err() != nil {
			return
		}
		s := r.twice(ctx, times, func() Step { return r.step(ctx, uint64(i), times) })
		r.report.Steps = append(r.report.Steps, s)
		if s.Result.Errors > 0 && s.Result.Errors == s.Result.Sent {
			return // nobody is there: the next would say the same
		}
	}
}

// twice offers a load again if the generator was late and there is room for it within the caps.
func (r *run) twice(ctx context.Context, times float64, offer func() Step) Step {
	s := offer()
	late, yes := s.late()
	if !yes || ctx.Err() != nil || r.cfg.fits(r.report.Capacity.PerSecond, r.sent.Load()) != "" {
		return s
	}
	r.note("%gx was offered twice: the first time the generator was %v late at p99.", times, late.Round(100*time.Microsecond))
	r.settle(ctx, r.report.Capacity.PerSecond)
	return offer()
}

// lateCalm is how late the generator may be in the load after a step: of that the recovery is
// read, in bins of that length, and no latency.
const lateCalm = load.BinLength

// step offers one load, and half of the capacity after it if it was above.
func (r *run) step(ctx context.Context, i uint64, times float64) Step {
	c := r.report.Capacity.PerSecond
	s := Step{Load: times, Rate: times * c}
	// Each load has arrivals of its own, and the same in each run of this seed.
	g := r.generator(r.plan(s.Rate, r.cfg.Length, r.cfg.Seed+2*i))
	start := time.Now()
	var calm sync.WaitGroup
	if times > 1 {
		plan := r.plan(0.5*c, r.cfg.Calm, r.cfg.Seed+2*i+1)
		plan.Tolerance = max(plan.Tolerance, lateCalm)
		half := r.generator(plan)
		calm.Go(func() { s.Calm = half.RunAt(ctx, start.Add(r.cfg.Length)) })
	}
	s.Result = r.watch(ctx, fmt.Sprintf("%gx", times), g, start)
	calm.Wait()
	if s.Calm != nil {
		s.Recovery = recovery(s.Calm.Bins)
	}
	return s
}

// late reports that the generator was, so that the load says nothing: once more it may be on time.
// What it could not send at all it cannot send again.
func (s Step) late() (p99 time.Duration, yes bool) {
	for _, l := range []*load.Result{s.Result, s.Calm} {
		if l == nil || l.Dropped > 0 {
			continue
		}
		if p99, _ = l.Late.Quantile(0.99); p99 > l.Plan.Tolerance {
			return p99, true
		}
	}
	return 0, false
}

// recoveredArrivals is how many a second must have to say that 95 % of them are in time: one
// in 20. A service with fewer is looked at for longer.
const recoveredArrivals = 20

// recovery returns from when on 95 % of the arrivals of the next second are in time, and of all
// to the end: who is well for a second and then falls back has not recovered. -1 if there is no
// such instant.
func recovery(bins []load.Bin) time.Duration {
	const second = int(time.Second / load.BinLength)
	var left load.Bin // of the bins from the present one on
	for _, b := range bins {
		left.Offered, left.InTime = left.Offered+b.Offered, left.InTime+b.InTime
	}
	for from, b := range bins {
		stays := 100*left.InTime >= 95*left.Offered
		left.Offered, left.InTime = left.Offered-b.Offered, left.InTime-b.InTime
		if !stays {
			continue
		}
		offered, inTime := int64(0), int64(0)
		for i := from; i < len(bins); i++ {
			offered, inTime = offered+bins[i].Offered, inTime+bins[i].InTime
			if i-from+1 < second || offered < recoveredArrivals {
				continue
			}
			if 100*inTime >= 95*offered {
				return time.Duration(from) * load.BinLength
			}
			break
		}
	}
	return -1
}

// plan returns what a load has, as the settings say.
func (r *run) plan(rate float64, length time.Duration, seed uint64) load.Plan {
	p := load.Plan{
		Rate: rate, Duration: length, Seed: seed, Constant: r.cfg.Arrivals == "constant", Trace: r.cfg.Trace,
		Deadline: r.cfg.Deadline, Tolerance: load.ToleranceFor(r.cfg.Objective), MaxInFlight: r.inFlight,
		Like: r.like, Attempts: r.cfg.Attempts,
		Follow: r.cfg.Deadline, // as long again: who serves late does so within that, or has a queue that grows
	}
	if p.Attempts > 1 {
		p.Backoff, p.Least = r.backoff, r.report.Idle.Max
	}
	return p
}

// firstBackoff doubles with each attempt: what clients do that know nothing of budgets. Jitter
// is half of it to half more.
const firstBackoff = 50 * time.Millisecond

// backoff is how long a caller waits before attempt n.
func (r *run) backoff(n int, before load.Answer) time.Duration {
	d := firstBackoff << (n - 2)
	d = d/2 + rand.N(d)
	if wait, ok := before.Wait(); ok && r.cfg.Obey {
		return wait + d
	}
	return d
}

// generator returns one for a plan that the settings allow, so that it has no fault.
func (r *run) generator(p load.Plan) *load.Generator {
	g, err := load.New(p, r.paced(r.send))
	if err != nil {
		panic("verify: " + err.Error())
	}
	return g
}

// watch runs g and shows how far it is.
func (r *run) watch(ctx context.Context, name string, g *load.Generator, start time.Time) *load.Result {
	stop := r.show.watch(name, g, r.report)
	res := g.RunAt(ctx, start)
	stop(res)
	return res
}

func (r *run) note(format string, args ...any) {
	r.report.Notes = append(r.report.Notes, fmt.Sprintf(format, args...))
}
