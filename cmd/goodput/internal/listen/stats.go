package listen

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Stats is a snapshot of one listener.
type Stats struct {
	Address        string // where it listens
	Open           int64  // connections that are open, upgraded ones included
	MaxConnections int
	Accepted       uint64 // ever
	Errors         uint64 // tries to accept that failed: no descriptors, no memory

	Full    uint64        // times that nobody was accepted because MaxConnections were open
	FullFor time.Duration // how long in all
	Paused  time.Duration // how long accepts were held back: see Pause

	// Queue is how many connections are in the accept queue of the kernel now, and
	// QueueLimit how many it keeps: the backlog in force. Only where QueueKnown, which is
	// TCP on Linux.
	Queue, QueueLimit int
	QueueKnown        bool
}

type counts struct {
	open             atomic.Int64
	accepted, errors atomic.Uint64
	paused           atomic.Int64 // ns
	full             spell
}

// Stats returns the numbers of now.
func (l *Listener) Stats() Stats {
	s := Stats{
		Address:        l.Addr().String(),
		Open:           l.counts.open.Load(),
		MaxConnections: l.cfg.MaxConnections,
		Accepted:       l.counts.accepted.Load(),
		Errors:         l.counts.errors.Load(),
		Paused:         time.Duration(l.counts.paused.Load()),
	}
	s.Full, s.FullFor = l.counts.full.read(time.Now())
	s.Queue, s.QueueLimit, s.QueueKnown = acceptQueue(l.inner)
	return s
}

// A spell adds up times, of which one may be going on.
type spell struct {
	mu    sync.Mutex
	n     uint64
	total time.Duration
	since time.Time // zero while it is over
}

func (s *spell) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.since = now
}

func (s *spell) end(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += now.Sub(s.since)
	s.since = time.Time{}
}

func (s *spell) read(now time.Time) (n uint64, total time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total = s.total
	if !s.since.IsZero() {
		total += max(0, now.Sub(s.since)) // now was read before the lock was ours
	}
	return s.n, total
}

// trouble logs at most once a second that nothing can be accepted.
type trouble struct {
	mu     sync.Mutex
	told   time.Time
	untold int
}

func (t *trouble) tell(log *slog.Logger, addr string, err error) {
	now := time.Now()
	t.mu.Lock()
	t.untold++
	n := t.untold
	tell := now.Sub(t.told) >= time.Second
	if tell {
		t.told, t.untold = now, 0
	}
	t.mu.Unlock()
	if tell {
		log.Warn("cannot accept a connection", "component", "listener", "addr", addr, "err", err, "failures", n)
	}
}
