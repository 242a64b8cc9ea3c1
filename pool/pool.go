package pool

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/goodput/goodput"
)

// Size says who sets the limit of the limiter that feeds a pool.
type Size uint8

const (
	// GOMAXPROCS keeps the limit at runtime.GOMAXPROCS(0): one unit of cost is one thread
	// that computes. The runtime changes the number while the process runs when the CPU
	// quota of its cgroup changes (unless the environment or the program has set it, and if
	// the go line of its go.mod is 1.25 or later), and the limit follows at the next task
	// that comes or ends. The quota is rounded up and is never below 2 where there are two
	// CPUs: a container of 500m runs 2. It is not runtime.NumCPU, which knows nothing of
	// quotas.
	//
	// A task that costs more than GOMAXPROCS costs all of it. One that waits while it falls
	// below its cost is refused as too_costly; handed in again it runs.
	//
	// The law that the limiter was made with is replaced, so which one does not matter:
	// limit.Fixed(1) will do. What Limiter.SetLimit or Reconfigure say later holds until
	// GOMAXPROCS changes, so a Config for Reconfigure needs limit.Fixed(runtime.GOMAXPROCS(0)).
	GOMAXPROCS Size = iota

	// Unchanged leaves the limit as the limiter has it: a number of its own, a law that
	// adapts, or what a goodput.Group grants.
	Unchanged
)

// A Pool runs tasks in the slots of a limiter, each in a goroutine of its own. It is made
// by New, is safe for concurrent use and needs no Close: while no task waits or runs it
// has no goroutine.
type Pool struct {
	lim  *goodput.Limiter
	size Size

	procs atomic.Int64 // what the limit was set to, under GOMAXPROCS

	mu      sync.Mutex
	live    int           // tasks that have no outcome yet
	look    int           // how many there may be before Submit looks who they are
	running tasks         // those of them that hold a slot
	idle    chan struct{} // closed when live is 0; nil while nobody drains

	ran, panics, exits, nested atomic.Uint64
}

// New returns a pool over lim. Size GOMAXPROCS sets the limit of lim at once; New panics
// if that is granted by a group, as is the limit of a member.
//
// The limiter may have other users: what they run and what the pool runs is together never
// more than the limit.
func New(lim *goodput.Limiter, size Size) *Pool {
	if lim == nil {
		panic("pool: the limiter is nil")
	}
	if size > Unchanged {
		panic(fmt.Sprintf("pool: size %d is none of GOMAXPROCS, Unchanged", size))
	}
	p := &Pool{lim: lim, size: size}
	if err := p.follow(); err != nil {
		panic("pool: " + err.Error())
	}
	return p
}

// Limiter returns the limiter that feeds the pool: its statistics are the pool's.
func (p *Pool) Limiter() *goodput.Limiter { return p.lim }

// follow sets the limit to GOMAXPROCS if that has changed. It is the only place in which
// the lock of the limiter is taken under that of the pool, so that of two changes the
// later one stays; nothing takes them in the other order.
func (p *Pool) follow() error {
	if p.size != GOMAXPROCS {
		return nil
	}
	if int64(runtime.GOMAXPROCS(0)) == p.procs.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := runtime.GOMAXPROCS(0)
	if int64(n) == p.procs.Load() {
		return nil
	}
	err := p.lim.SetLimit(n)
	if err == nil {
		p.procs.Store(int64(n))
	}
	return err
}

// admit returns w as it is offered, and its cost. A task that starts more threads than
// there are runs on those that there are: under GOMAXPROCS a higher cost counts as all
// of them, and what was written for a machine of 16 runs on one of 2. It is as much work
// as it was.
func (p *Pool) admit(w goodput.Work) (goodput.Work, int) {
	// A limit that could not be set is a limiter that has become a member of a group,
	// which there is no way to.
	_ = p.follow()
	cost := max(w.Cost, 1)
	if p.size != GOMAXPROCS {
		return w, cost
	}
	if n := int(p.procs.Load()); cost > n {
		if w.Size <= 0 {
			w.Size = cost
		}
		w.Cost, cost = n, n
	}
	return w, cost
}

// slack is how many tasks may have been refused while they waited and not have had their
// turn yet to hear it, beyond those that hold a slot or a place: 1000 goroutines are 4 MB.
// Fewer would cost producers more turns, which take 10 ms each while tasks compute on every
// CPU: with 1000 a producer whose tasks all replace one another hands in about 10,000 a
// second beside four of them on two CPUs, and without a bound 15,000 to 30,000.
const slack = 1000

// accept counts a task that will have an outcome.
func (p *Pool) accept() {
	p.mu.Lock()
	p.live++
	p.mu.Unlock()
}

// makeWay lets the others run if there are many goroutines of tasks that hold nothing. A
// newcomer that takes the place of one that waits leaves its goroutine to end by itself,
// and a producer that hands in a million is not interrupted for 10 ms at a time: there
// would be ten thousand of them.
func (p *Pool) makeWay() {
	p.mu.Lock()
	looks := p.live > p.look
	p.mu.Unlock()
	if !looks {
		return
	}
	s := p.lim.Stats()
	most := s.Running + s.Waiting + slack
	for range 10 { // each lets run whoever could; they need two turns at most
		p.mu.Lock()
		p.look = most
		many := p.live > most
		p.mu.Unlock()
		if !many {
			return
		}
		runtime.Gosched()
	}
}

// settle counts a task that has its outcome.
func (p *Pool) settle() {
	p.mu.Lock()
	p.live--
	p.look = min(p.look, p.live+slack)
	idle := p.idle
	if p.live > 0 {
		idle = nil
	}
	if idle != nil {
		p.idle = nil
	}
	p.mu.Unlock()
	if idle != nil {
		close(idle)
	}
}

// Drain ends the service of the pool: newcomers are refused as draining, who waits is
// served, who runs ends. It returns nil when every task has its outcome. If ctx is over
// first, who still waits is refused, and the error says how many tasks run; it wraps
// the error of ctx. They go on, and Drain may be called again to wait for them.
//
// It is the limiter that is drained, whoever else uses it. In observe mode nobody is
// refused, and Drain only waits.
func (p *Pool) Drain(ctx context.Context) error {
	err := p.lim.Drain(ctx)
	if err == nil {
		err = p.settled(ctx) // those that have no slot any more but their last lines to go
	}
	if err != nil {
		p.mu.Lock()
		n := p.running.n
		p.mu.Unlock()
		still := fmt.Sprintf("%d tasks still run", n)
		if n == 1 {
			still = "1 task still runs"
		}
		return fmt.Errorf("pool: %s is not drained, %s: %w", p.lim.Name(), still, err)
	}
	return nil
}

// Stop is Drain, but who waits is refused as draining at once rather than served.
func (p *Pool) Stop(ctx context.Context) error {
	over, cancel := context.WithCancel(ctx)
	cancel()
	_ = p.lim.Drain(over) // that it is over is the point
	return p.Drain(ctx)
}

// settled returns when each task has its outcome.
func (p *Pool) settled(ctx context.Context) error {
	p.mu.Lock()
	if p.live == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
