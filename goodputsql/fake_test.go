package goodputsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

// A server is a database that exists in this process: it counts what it sees. A statement
// is a word and perhaps an argument:
//
//	ok             does nothing
//	rows 3         three rows of one number, and then as many more result sets as sets
//	sleep 50ms     takes so long, or until its context ends
//	freeze         takes until thaw is closed, whatever its context says
//	fail, bad      an error, driver.ErrBadConn
//	panic          panics
type server struct {
	queries func(ctx context.Context) // called with that of a query, before its rows are returned
	thaw    chan struct{}
	dials   func(n int) error // what the n-th dial says, from 1; nil: all is well
	ends    func()            // called when a statement has ended, or its rows are closed
	closes  func()            // called when a connection is closed, before it is
	bare    bool              // connections cannot be reset or validated
	sets    int               // result sets after the first
	stale   atomic.Int64      // connections dialled before that number are bad

	dialled, open, most, busy, mostBusy atomic.Int64
	rows, txs                           atomic.Int64 // open now
	commits, rollbacks, foreign         atomic.Int64
	rollbackErr, commitErr              error

	panics             atomic.Value // string: the call of the driver that panics, but for statements
	unreset            atomic.Bool  // connections that were idle are bad
	hangs              func() bool  // whether dials take until their context ends
	pings, commitTakes func()       // called in those
}

// may panics if that is the call to panic in.
func (s *server) may(call string) {
	if at, _ := s.panics.Load().(string); at == call {
		panic("the driver in " + call)
	}
}

var errServer = errors.New("the server says no")

// openPool returns a pool of connections to s.
func (s *server) openPool(tb testing.TB) *sql.DB {
	tb.Helper()
	pool := sql.OpenDB(s)
	tb.Cleanup(func() { pool.Close() }) //nolint:errcheck // nothing is stored in it
	return pool
}

// behind returns s behind a limiter.
func (s *server) behind(tb testing.TB, lim *goodput.Limiter, cfg goodputsql.Config) (*goodputsql.DB, *sql.DB) {
	tb.Helper()
	pool := s.openPool(tb)
	db, err := cfg.New(pool, lim)
	if err != nil {
		tb.Fatal(err)
	}
	return db, pool
}

func fixed(n int) *goodput.Limiter {
	return goodput.New(goodput.Config{Name: "db", Limit: limit.Fixed(n), Objective: time.Minute, Depth: 1000})
}

func raise(most *atomic.Int64, n int64) {
	for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
	}
}

func (s *server) Driver() driver.Driver { return nil }

func (s *server) Connect(ctx context.Context) (driver.Conn, error) {
	n := s.dialled.Add(1)
	if s.dials != nil {
		if err := s.dials(int(n)); err != nil {
			return nil, err
		}
	}
	if s.hangs != nil && s.hangs() {
		<-ctx.Done()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	raise(&s.most, s.open.Add(1))
	c := &conn{s: s, id: n}
	if s.bare {
		return bareConn{c}, nil
	}
	return c, nil
}

type conn struct {
	s       *server
	id      int64
	using   atomic.Bool // a statement runs or rows are open
	bad     atomic.Bool
	closing sync.Once
}

// bareConn hides that conn can be reset and validated.
type bareConn struct{ c *conn }

func (b bareConn) Prepare(q string) (driver.Stmt, error) { return b.c.Prepare(q) }
func (b bareConn) Close() error                          { return b.c.Close() }
func (b bareConn) Begin() (driver.Tx, error)             { return b.c.Begin() }
func (b bareConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return b.c.BeginTx(ctx, o)
}

func (b bareConn) ExecContext(ctx context.Context, q string, a []driver.NamedValue) (driver.Result, error) {
	return b.c.ExecContext(ctx, q, a)
}

func (b bareConn) QueryContext(ctx context.Context, q string, a []driver.NamedValue) (driver.Rows, error) {
	return b.c.QueryContext(ctx, q, a)
}

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not here") }

func (c *conn) Close() error {
	c.closing.Do(func() {
		defer c.s.may("Close")
		if c.s.closes != nil {
			c.s.closes()
		}
		c.s.open.Add(-1)
	})
	return nil
}
func (c *conn) Begin() (driver.Tx, error) { return nil, errors.New("not here") }
func (c *conn) IsValid() bool             { return !c.bad.Load() }

func (c *conn) ResetSession(context.Context) error {
	c.s.may("ResetSession")
	if c.s.unreset.Load() {
		return driver.ErrBadConn
	}
	return nil
}

func (c *conn) Ping(ctx context.Context) error {
	defer c.done()
	_, err := c.run(ctx, "ok")
	c.s.may("Ping")
	if c.s.pings != nil {
		c.s.pings()
	}
	return err
}

func (c *conn) done() {
	c.using.Store(false)
	if c.s.ends != nil {
		c.s.ends()
	}
}

// run executes a statement, and leaves the connection in use.
func (c *conn) run(ctx context.Context, query string) (rows int, err error) {
	if !c.using.CompareAndSwap(false, true) {
		c.s.foreign.Add(1)
		return 0, errors.New("the connection is busy")
	}
	raise(&c.s.mostBusy, c.s.busy.Add(1))
	defer c.s.busy.Add(-1)
	if c.id < c.s.stale.Load() {
		return 0, driver.ErrBadConn
	}
	word, arg, _ := strings.Cut(query, " ")
	switch word {
	case "ok":
		return 0, nil
	case "rows":
		return strconv.Atoi(arg)
	case "sleep":
		d, err := time.ParseDuration(arg)
		if err != nil {
			return 0, err
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return 1, nil
		case <-ctx.Done():
			c.bad.Store(true) // as pgx: the connection is not in a known state
			return 0, ctx.Err()
		}
	case "freeze":
		<-c.s.thaw
		return 1, nil
	case "fail":
		return 0, errServer
	case "bad":
		return 0, driver.ErrBadConn
	case "panic":
		panic("the driver")
	}
	return 0, fmt.Errorf("no statement %q", query)
}

func (c *conn) ExecContext(ctx context.Context, q string, _ []driver.NamedValue) (driver.Result, error) {
	defer c.done()
	if _, err := c.run(ctx, q); err != nil {
		return nil, err
	}
	return driver.RowsAffected(1), nil
}

func (c *conn) QueryContext(ctx context.Context, q string, _ []driver.NamedValue) (driver.Rows, error) {
	n, err := c.run(ctx, q)
	if err != nil {
		c.done()
		return nil, err
	}
	if c.s.queries != nil {
		c.s.queries(ctx)
	}
	c.s.rows.Add(1)
	return &result{c: c, n: n, left: n, sets: c.s.sets}, nil
}

func (c *conn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	defer c.done()
	if _, err := c.run(ctx, "ok"); err != nil {
		return nil, err
	}
	c.s.may("Begin")
	c.s.txs.Add(1)
	return &transaction{c: c}, nil
}

type transaction struct{ c *conn }

func (t *transaction) Commit() error {
	t.c.s.txs.Add(-1)
	t.c.s.commits.Add(1)
	t.c.s.may("Commit")
	if t.c.s.commitTakes != nil {
		t.c.s.commitTakes()
	}
	return t.c.s.commitErr
}

func (t *transaction) Rollback() error {
	t.c.s.txs.Add(-1)
	t.c.s.rollbacks.Add(1)
	t.c.s.may("Rollback")
	return t.c.s.rollbackErr
}

type result struct {
	c             *conn
	n, left, sets int
	closed        bool
}

func (r *result) Columns() []string { return []string{"n"} }

func (r *result) Close() error {
	if !r.closed {
		r.closed = true
		r.c.done()
		r.c.s.rows.Add(-1)
		r.c.s.may("Rows.Close")
	}
	return nil
}

func (r *result) Next(dest []driver.Value) error {
	r.c.s.may("Next")
	if r.left == 0 {
		return io.EOF
	}
	dest[0] = int64(r.n - r.left)
	r.left--
	return nil
}

func (r *result) HasNextResultSet() bool { return r.sets > 0 }

func (r *result) NextResultSet() error {
	if r.sets == 0 {
		return io.EOF
	}
	r.sets--
	r.left = r.n
	return nil
}

// until waits for what another goroutine is about to do.
func until(tb testing.TB, done func() bool) {
	tb.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			tb.Fatal("it does not come to an end")
		}
	}
}

// empty fails the test if anything is held. Call it when all is done.
func empty(tb testing.TB, s *server, db *goodputsql.DB, pool *sql.DB, lim *goodput.Limiter) {
	tb.Helper()
	st, is := lim.Stats(), pool.Stats()
	switch {
	case st.InUse != 0 || st.Waiting != 0:
		tb.Errorf("%d slots in use, %d wait, after all has ended", st.InUse, st.Waiting)
	case db.Stats().Held != 0:
		tb.Errorf("%d connections are held, after all has ended: %+v", db.Stats().Held, db.Stats().Longest)
	case is.InUse != 0 || s.rows.Load() != 0 || s.txs.Load() != 0:
		tb.Errorf("%d connections in use, %d rows and %d transactions open, after all has ended", is.InUse, s.rows.Load(), s.txs.Load())
	case is.WaitCount != 0 || db.Stats().Queued != 0:
		tb.Errorf("%d waited in the queue of the pool", is.WaitCount)
	case s.foreign.Load() != 0:
		tb.Errorf("a connection was used by two at once, %d times", s.foreign.Load())
	}
}
