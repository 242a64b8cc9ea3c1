package goodputsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
)

// A Kind is what holds a connection.
type Kind uint8

// The kinds.
const (
	OfDo   Kind = iota
	OfTx        // Tx or BeginTx
	OfRows      // QueryContext or QueryRowContext
	OfExec
	OfConn
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"Do", "a transaction", "rows", "Exec", "a connection"}[k]
}

// A Hold is a connection that is held.
type Hold struct {
	Kind Kind
	Site string        // file:line of the call that took it; of "go db.Do(...)" no place is known, and it says so
	For  time.Duration // since it got its slot
}

// A hold is a slot and the connection that goes with it. Each begins once and ends
// once, whoever is first: its user, the end of its context, or MaxHold.
//
// In the order of its life: slot, in the list, connection; connection, out of the list,
// slot. So what is in the list is at most the limit, and what the pool has given to us at
// most what is in the list.
type hold struct {
	db    *DB
	ctx   context.Context // that of the call, or below it
	scope <-chan struct{} // Done of the context that the caller gave
	conn  *sql.Conn       // nil until there is one; written under the lock of holds if there is a MaxHold
	slot  goodput.Slot    // ended by who sets freed
	span  goodput.Span
	stop  func() bool             // takes back the hook on the end of ctx; nil if there is none
	abort context.CancelCauseFunc // ends ctx; nil without MaxHold
	since time.Duration           // when it got its slot
	at    site
	kind  Kind
	ride  ride        // for the context of Do and Tx
	over  atomic.Bool // its end has begun

	turns  chan struct{} // of Do: has room for the one call that rides
	state  atomic.Int32  // sound, suspect or broken
	unsure atomic.Int32  // transactions on it that nobody is known to have ended

	watched atomic.Bool // of rows: the end of ctx is the end of the hold; see ending

	// Those of holds, under its lock.
	prev, next *hold
	long, cut  bool // reported; told to end
	freed      bool // the slot has been given back, or is about to be
}

// holds is the list of all connections that are held, the oldest first, and the timer that
// looks for old ones. It runs only while there are some.
type holds struct {
	sync.Mutex
	first, last *hold
	n           int                       // in the list
	ended       atomic.Uint64             // have left the list
	at          [remembered]time.Duration // when each of the latest did, by its number
	answer      chan struct{}             // closed when the next one ends well; nil if nobody waits for that
	long        uint64                    // were held for LongHold
	cut         uint64                    // were held for MaxHold
	overdue     int                       // in the list, without a slot
	lost        uint64                    // connections that the pool will not have back
	timer       *time.Timer
	running     bool
	limit       int // the idle connections that the pool was told to keep
}

// A site is a call.
type site [1]uintptr

// mark sets the site to the call of the exported method that calls mark. It takes 150 ns,
// and is small enough to be inlined, without which it would take 180.
func (s *site) mark() { runtime.Callers(3, s[:]) } // over Callers, mark and the method

// of returns file:line of the call, which is of a kind; or that there is none: below the
// method that a go statement calls itself there is only the runtime. Of the methods of a
// kind it names the one whose result a go statement may drop.
func (s site) of(kind Kind) string {
	f, _ := runtime.CallersFrames(s[:]).Next()
	switch {
	case f.Function == "runtime.goexit":
		return "a goroutine started with db." + [...]string{"Do", "Tx", "QueryContext", "ExecContext", "Conn"}[kind]
	case f.File == "":
		return "an unknown place"
	}
	return f.File + ":" + strconv.Itoa(f.Line)
}

// begin takes a slot and then a connection. If it returns an error there is nothing to end.
func (h *hold) begin(ctx context.Context, db *DB, kind Kind, at site) error {
	h.db, h.kind, h.at, h.ctx, h.scope = db, kind, at, ctx, ctx.Done()
	h.span = goodput.Downstream(ctx)
	ended := db.holds.ended.Load()
	var err error
	if h.slot, err = db.lim.Acquire(ctx); err != nil {
		h.span.End()
		return db.refused(ctx, err, kind, at, ended)
	}
	if kind == OfDo || kind == OfTx {
		h.ctx = h.slot.Context(h.ctx)
	}
	if db.cfg.MaxHold > 0 {
		h.ctx, h.abort = context.WithCancelCause(h.ctx)
	}
	db.enlist(h)
	return h.connect()
}

// connect gets the connection, or ends the hold.
func (h *hold) connect() error {
	got := false
	defer func() {
		if !got { // a driver that panics
			h.over.Store(true)
			h.leave(errUnwound)
		}
	}()
	conn, err := h.db.connect(h.ctx, h.since)
	got = true
	if err != nil {
		h.over.Store(true)
		h.leave(err)
		return h.told(err)
	}
	h.has(conn)
	return nil
}

// has sets the connection. Only MaxHold looks at it from elsewhere.
func (h *hold) has(conn *sql.Conn) {
	if h.abort == nil {
		h.conn = conn
		return
	}
	h.db.holds.Lock()
	defer h.db.holds.Unlock()
	h.conn = conn
}

// again reports whether a statement that failed with err is to be sent on another
// connection, which the hold then has. left is what is left of the attempts, 0 at first. The error
// is what the caller is told if not.
//
// database/sql tries twice on what the pool has, and then on a new connection. Nobody
// else can ask the pool for a new one; but a bad connection leaves it, so after as many
// attempts as it had idle ones there is none but new ones.
func (h *hold) again(err error, left *int) (bool, error) {
	if !errors.Is(err, driver.ErrBadConn) {
		return false, err
	}
	if *left == 0 {
		*left = 3 + h.db.pool.Stats().Idle
	}
	if *left--; *left == 0 {
		return false, err
	}
	got := false
	defer func() {
		if !got { // a driver that panics
			h.has(nil)
			h.state.Store(broken)
		}
	}()
	h.db.out.Add(-1)
	h.conn.Close() //nolint:errcheck // database/sql has closed it
	conn, err := h.db.connect(h.ctx, h.db.now())
	got = true
	if err != nil {
		h.db.out.Add(1) // giving back takes it off
		return false, err
	}
	h.has(conn)
	return true, nil
}

// context returns the context for a function that works with the hold.
func (h *hold) context() context.Context {
	h.ride.on = h
	return h.ride.with(h.ctx)
}

// watch makes the end of the context the end of the hold. It is called before anything
// else may end it.
func (h *hold) watch() {
	if h.ctx.Done() != nil {
		h.stop = context.AfterFunc(h.ctx, h.onContextEnd)
	}
}

// onContextEnd waits for what database/sql does at the end of a context, closing rows or
// rolling back, and then gives everything back.
func (h *hold) onContextEnd() {
	if h.over.Swap(true) {
		return
	}
	h.giveBack(context.Cause(h.ctx))
}

// describe returns the hold as of now.
func (h *hold) describe(now time.Duration) Hold {
	return Hold{Kind: h.kind, Site: h.at.of(h.kind), For: now - h.since}
}
