package pool

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/goodput/goodput"
)

// tasks is the list of those that hold a slot.
type tasks struct {
	first *task
	n     int
}

// begin notes that t holds a slot.
func (p *Pool) begin(t *task) {
	p.mu.Lock()
	if t.next = p.running.first; t.next != nil {
		t.next.prev = t
	}
	p.running.first = t
	p.running.n++
	p.mu.Unlock()
}

// end notes that t holds none any more.
func (p *Pool) end(t *task) {
	p.ran.Add(1)
	p.mu.Lock()
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		p.running.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
	p.running.n--
	p.mu.Unlock()
}

// Stats is a snapshot of what a Pool counts itself, beside the statistics of its limiter,
// where a task that panics or calls runtime.Goexit is failed.
type Stats struct {
	Limiter goodput.Stats // other users of the limiter included

	Ran uint64 // tasks that had a slot of their own and have ended

	// Nested counts tasks that began within the slot of another: see Do. The limiter hears
	// nothing of those that Do hands in. One that was submitted is in its queue by the time
	// that Wait runs it, so there it counts as an arrival that was cancelled, with reason
	// parent, although it ran.
	Nested uint64

	Panics  uint64 // tasks that panicked, nested ones included
	Exits   uint64 // tasks that called runtime.Goexit, nested ones included
	Running int    // tasks that hold a slot now
	Left    int    // those of them whose context is over: nobody waits for them, and they still hold it

	GOMAXPROCS int // in force now
	CPUs       int // runtime.NumCPU, what the process may use apart from quotas
}

// Stats returns the numbers of now. It costs as much as goodput.Limiter.Stats.
func (p *Pool) Stats() Stats {
	_ = p.follow()
	s := Stats{
		Limiter:    p.lim.Stats(),
		Ran:        p.ran.Load(),
		Nested:     p.nested.Load(),
		Panics:     p.panics.Load(),
		Exits:      p.exits.Load(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		CPUs:       runtime.NumCPU(),
	}
	p.mu.Lock()
	running := make([]*task, 0, p.running.n)
	for t := p.running.first; t != nil; t = t.next {
		running = append(running, t)
	}
	p.mu.Unlock()
	s.Running = len(running)
	for _, t := range running {
		if t.ctx.Err() != nil { // a context may be anybody's code: not under the lock
			s.Left++
		}
	}
	return s
}

// Explain returns what the limiter does and why, as goodput.Limiter.Explain, and a line
// about the pool: what sets its size, and what became of its tasks.
func (p *Pool) Explain() string {
	s := p.Stats()
	var b strings.Builder
	b.WriteString(p.lim.Explain())
	if p.size == GOMAXPROCS {
		fmt.Fprintf(&b, "  pool     the limit follows GOMAXPROCS, now %d: %s\n", s.GOMAXPROCS, why(s.GOMAXPROCS, s.CPUs, os.Getenv("GOMAXPROCS")))
	} else {
		fmt.Fprintf(&b, "  pool     the limit is the limiter's own; GOMAXPROCS is %d\n", s.GOMAXPROCS)
	}
	fmt.Fprintf(&b, "           %d run, %d of them left by their callers; %d ended, %d ran within another, %d panicked, %d called Goexit\n",
		s.Running, s.Left, s.Ran, s.Nested, s.Panics, s.Exits)
	return b.String()
}

// why says where GOMAXPROCS comes from, as far as one can tell from outside the runtime.
func why(procs, cpus int, env string) string {
	switch {
	case env != "":
		return fmt.Sprintf("the environment says GOMAXPROCS=%s, so it does not follow the CPU quota", env)
	case procs == cpus:
		return "all CPUs that the process may use"
	case procs < cpus:
		return fmt.Sprintf("of %d CPUs, by the CPU quota of the cgroup (rounded up, at least 2) or by a call of runtime.GOMAXPROCS", cpus)
	}
	return fmt.Sprintf("a call of runtime.GOMAXPROCS, for %d CPUs", cpus)
}
