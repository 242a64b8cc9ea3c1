package record

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
)

// A Trace is what a replay needs of each request that a limiter was asked about, in a line of
// about 30 bytes: see append. Exempt requests, and those that were turned away before a
// limiter was asked, are not in it: no policy of a limiter changes what becomes of them.
//
// Names of tenants stay here. A line has a number for one, of a hash whose key is chosen at
// the start of the process and written nowhere: the lines of one tenant have the same
// number until the next start, and nobody can tell whose they are.
type Trace struct {
	worker
	seed    maphash.Seed
	stripes []stripe
	out     *rotated
	buf     []byte
	lines   int    // in buf
	said    uint64 // of dropped, what the files say
}

const (
	// maxStripes locks are enough: one is held for about 10 ns.
	maxStripes = 8

	// lineBuffer is how many requests a stripe keeps, of 72 bytes. Two buffers of two stripes
	// are 4.5 MiB and take 160,000 requests a second until the next flush, on two cores; of
	// eight they are 18 MiB and take 650,000.
	lineBuffer = 1 << 14

	// chunk is how much is written at once.
	chunk = 64 << 10
)

// A stripe is a part of the buffer, chosen at random.
type stripe struct {
	mu    sync.Mutex
	lines []entry // up to its capacity
	spare []entry // of the writer
	_     [64]byte
}

// An entry is a line to be.
type entry struct {
	arrival      int64  // microseconds since 1970
	held, budget int64  // microseconds; -1: none
	tenant       uint64 // 0: none
	class        string // name of the limiter, which is kept as long as that
	cost, size   int32  // 0: not said
	priority     goodput.Priority
	outcome      goodput.Outcome

	observed, would bool // as in goodputhttp.Ended
}

// OpenTrace begins a trace. size is how many bytes it may have at most, in Files files: path,
// which is written to, and path.1 and so on, the older ones. What is at path is older. Close
// ends it. The error is one sentence about path.
func OpenTrace(path string, size int64, log *slog.Logger) (*Trace, error) {
	t := newTrace(path, size, log, create)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: a trace is kept in several, and the oldest is deleted", path)
	}
	if err := t.out.next(); err != nil {
		if why := (*fs.PathError)(nil); errors.As(err, &why) {
			err = why.Err
		}
		return nil, fmt.Errorf("cannot write %s: %w", path, err)
	}
	go t.run(t.flush)
	return t, nil
}

func newTrace(path string, size int64, log *slog.Logger, create func(string) (handle, error)) *Trace {
	n := 1 << bits.Len(uint(min(runtime.GOMAXPROCS(0), maxStripes)-1))
	t := &Trace{
		worker: newWorker(), seed: maphash.MakeSeed(), stripes: make([]stripe, n),
		out: &rotated{
			most: size / Files, create: create,
			state: state{log: log.With("component", "record"), what: "record", path: path},
		},
	}
	for i := range t.stripes {
		t.stripes[i].lines = make([]entry, 0, lineBuffer)
		t.stripes[i].spare = make([]entry, 0, lineBuffer)
	}
	return t
}

// Add notes a request. It takes no longer than to copy it, and never waits for the disk.
func (t *Trace) Add(e *goodputhttp.Ended) {
	if !e.Offered || e.Exempt {
		return
	}
	n := entry{
		arrival: e.Arrival.UnixMicro(), held: -1, budget: -1, class: e.Limiter.Name(),
		cost: int32(min(max(e.Work.Cost, 0), maxCount)), size: int32(min(max(e.Work.Size, 0), maxCount)),
		priority: e.Work.Priority, outcome: e.Outcome, observed: e.Observed, would: e.WouldRefuse,
	}
	if e.Held > 0 { // a slot, and one that was taken: see goodput.Rejection.Declined
		n.held = e.Held.Microseconds()
	}
	if !e.Deadline.IsZero() {
		n.budget = max(e.Deadline.Sub(e.Arrival).Microseconds(), 0)
	}
	if e.Work.Tenant != "" {
		n.tenant = maphash.String(t.seed, e.Work.Tenant)>>16 | 1 // 0 is none
	}
	s := &t.stripes[rand.Uint32()&uint32(len(t.stripes)-1)]
	s.mu.Lock()
	have := len(s.lines)
	if have < cap(s.lines) {
		s.lines = append(s.lines, n)
	}
	s.mu.Unlock()
	switch have {
	case lineBuffer / 2:
		t.hurry()
	case lineBuffer:
		t.dropped.Add(1)
	}
}

// maxCount is what a reader takes for a count.
const maxCount = 1<<31 - 1

// flush writes what is in the stripes.
func (t *Trace) flush(last bool) {
	ok := t.out.ready() == nil
	for i := range t.stripes {
		s := &t.stripes[i]
		s.mu.Lock()
		s.lines, s.spare = s.spare[:0], s.lines
		s.mu.Unlock()
		for j := range s.spare {
			if ok && !t.out.fits(len(t.buf)+maxLine) {
				t.write()
				ok = t.out.turn() == nil
			}
			if !ok {
				t.dropped.Add(1)
				continue
			}
			t.buf = s.spare[j].append(t.buf, t.out.base)
			if t.lines++; len(t.buf) >= chunk {
				t.write()
			}
		}
	}
	t.write()
	t.out.lost(t.dropped.Load())
	if last && ok {
		_ = t.out.end() // the log has it
	}
}

// write takes the lines in buf to the file, and how many are missing since it last said so.
// Lines that the file does not take are missing.
func (t *Trace) write() {
	dropped := t.dropped.Load()
	if dropped > t.said {
		t.buf = appendLost(t.buf, dropped-t.said)
	}
	if len(t.buf) == 0 {
		return
	}
	err := t.out.write(t.buf)
	if err == nil {
		t.said = dropped
		t.written.Add(uint64(t.lines))
	} else {
		t.dropped.Add(uint64(t.lines))
	}
	t.buf, t.lines = t.buf[:0], 0
}

// Close writes what is left, and that this is the end. What is added after that is lost.
func (t *Trace) Close() error { return t.end("record " + t.out.path) }
