package goodputsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

// An odd server fails where server does not: the rows of "rows 1" break before the first,
// those of "rows 2" at their Close, and to begin a transaction panics.
type oddServer struct{ *server }

func (s oddServer) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := s.server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return oddConn{c.(*conn)}, nil
}

type oddConn struct{ *conn }

func (c oddConn) QueryContext(ctx context.Context, q string, a []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.conn.QueryContext(ctx, q, a)
	if err != nil {
		return nil, err
	}
	return oddRows{rows.(*result), q}, nil
}

func (oddConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { panic("the driver") }

type oddRows struct {
	*result
	query string
}

func (r oddRows) Next(dest []driver.Value) error {
	if r.query == "rows 1" {
		return errServer
	}
	return r.result.Next(dest)
}

func (r oddRows) Close() error {
	err := r.result.Close()
	if r.query == "rows 2" {
		err = errServer
	}
	return err
}

// A query that breaks is not one without rows, one that cannot be closed has failed, and a
// driver that panics in the begin of a transaction loses its connection, not the slot.
func TestOddDrivers(t *testing.T) {
	s, lim := oddServer{&server{}}, fixed(1)
	pool := sql.OpenDB(s)
	defer pool.Close() //nolint:errcheck // nothing is stored in it
	db, err := goodputsql.Config{}.New(pool, lim)
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"rows 1", "rows 2"} {
		var n int
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); !errors.Is(err, errServer) {
			t.Errorf("%s: %v, want %v", query, err, errServer)
		}
	}
	empty(t, s.server, db, pool, lim)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not go on")
			}
		}()
		db.BeginTx(t.Context(), nil) //nolint:errcheck // it panics
	}()
	if st := lim.Stats(); st.InUse != 0 || db.Stats().Held != 0 || st.Outcomes[goodput.Failed] != 3 {
		t.Errorf("%d slots in use, %d connections held, counted %v; want 3 failures", st.InUse, db.Stats().Held, st.Outcomes)
	}
}

// Whose transaction could not be rolled back is told both: why, and that it may be open.
func TestTxTellsOfARollbackThatFailed(t *testing.T) {
	s, lim := &server{rollbackErr: errServer}, fixed(1)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	err := db.Tx(context.Background(), nil, func(context.Context, *sql.Tx) error { return errOwn })
	if !errors.Is(err, errOwn) || !errors.Is(err, errServer) {
		t.Errorf("%v, want both errors", err)
	}
	empty(t, s, db, pool, lim)
}

// Rows of which no result set is left have nothing more to hold, closed or not.
func TestTheLastResultSetGivesBack(t *testing.T) {
	s, lim := &server{sets: 1}, fixed(1)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	rows, err := db.QueryContext(context.Background(), "rows 3")
	if err != nil {
		t.Fatal(err)
	}
	if !rows.NextResultSet() || lim.Stats().InUse != 1 {
		t.Errorf("%d slots in use in the second of two result sets", lim.Stats().InUse)
	}
	if rows.NextResultSet() {
		t.Error("there are three")
	}
	empty(t, s, db, pool, lim)
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
}

// What the pool did before there was a limiter is not counted against it.
func TestQueuedCountsFromNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		pool := s.openPool(t)
		pool.SetMaxOpenConns(1)
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { conn.Close() }) //nolint:errcheck // it is open
		if _, err := pool.ExecContext(t.Context(), "ok"); err != nil {
			t.Fatal(err)
		}
		db, err := goodputsql.Config{}.New(pool, fixed(1))
		if err != nil {
			t.Fatal(err)
		}
		if n := db.Stats().Queued; n != 0 || pool.Stats().WaitCount != 1 {
			t.Errorf("%d waited in the queue of the pool since New, %d before", n, pool.Stats().WaitCount)
		}
	})
}

// Without LongHold of its own a connection is reported at half of MaxHold, if that is before
// 10 s. What is over MaxHold is not elsewhere any more: its slot is back.
func TestHalfOfMaxHoldIsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(1)
		db, pool := s.behind(t, lim, goodputsql.Config{MaxHold: 4 * time.Second})
		outer := goodput.New(goodput.Config{Limit: limit.Fixed(1), Objective: time.Hour})
		for i := range 20 {
			err := outer.Do(t.Context(), func(ctx context.Context) error {
				conn, err := db.Conn(ctx)
				if err != nil {
					return err
				}
				time.Sleep(2*time.Second - time.Millisecond)
				before := db.Stats().Long
				time.Sleep(2 * time.Millisecond)
				if after := db.Stats().Long; before != uint64(i) || after != uint64(i+1) {
					t.Errorf("hold %d: %d were long before half of MaxHold and %d after it", i, before, after)
				}
				time.Sleep(48*time.Second - time.Millisecond)
				_ = conn.Close()
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		empty(t, s, db, pool, lim)
		// 4 s and the second of grace, of 50 s.
		if got := outer.Stats().Elsewhere; got < 4.0/50 || got > 5.1/50 {
			t.Errorf("%.3f of the time is elsewhere, want %.3f", got, 5.0/50)
		}
	})
}

// Who leaves while waiting is told that, and not who was in the way.
func TestWhoLeftIsNotNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(1)
		db, pool := s.behind(t, lim, goodputsql.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		conn, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, cancel)
		_, err = db.ExecContext(ctx, "ok")
		var nested *goodputsql.NestedError
		if !errors.Is(err, context.Canceled) || errors.As(err, &nested) {
			t.Errorf("%v, want that it was cancelled", err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		empty(t, s, db, pool, lim)
	})
}

// Health checks wait for each other; their time is elsewhere, and one that fails has failed.
func TestHealthChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		s, lim := &server{ends: func() { time.Sleep(time.Second) }}, fixed(1)
		s.dials = func(int) error {
			if down {
				return errServer
			}
			return nil
		}
		db, pool := s.behind(t, lim, goodputsql.Config{})
		start := time.Now()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if err := db.PingContext(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took != 2*time.Second || s.most.Load() != 1 {
			t.Errorf("two checks took %v over %d connections, want 2s and 1", took, s.most.Load())
		}
		outer := goodput.New(goodput.Config{Limit: limit.Fixed(1), Objective: time.Hour})
		for range 20 {
			_ = outer.Do(t.Context(), func(ctx context.Context) error {
				time.Sleep(time.Second)
				return db.PingContext(ctx)
			})
		}
		if got := outer.Stats().Elsewhere; got < 0.5-1e-6 || got > 0.5+1e-6 {
			t.Errorf("%.3f of the time is elsewhere, want 0.5", got)
		}
		down = true
		pool.SetMaxIdleConns(-1)
		pool.SetMaxOpenConns(1) // so that it has a slot that counts
		if err := db.PingContext(t.Context()); !errors.Is(err, errServer) {
			t.Errorf("%v, want %v", err, errServer)
		}
		empty(t, s, db, pool, lim)
		if o := lim.Stats().Outcomes; o[goodput.Failed] != 1 {
			t.Errorf("counted %v, want one failure", o)
		}
	})
}

// A check without a connection of its own takes the next good answer of anybody; an error is
// none, and without any it fails after LongHold.
func TestHealthCheckWithoutAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want time.Duration
		well bool
	}{
		{"a good answer", nil, time.Second, true},
		{"an error", errOwn, 10 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, lim := &server{}, fixed(1)
			db, pool := s.behind(t, lim, goodputsql.Config{})
			pool.SetMaxOpenConns(1)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = db.Do(t.Context(), func(context.Context, *sql.Conn) error { time.Sleep(time.Second); return c.err })
				_ = db.Do(t.Context(), func(context.Context, *sql.Conn) error { time.Sleep(time.Hour); return nil })
			}()
			synctest.Wait()
			start := time.Now()
			err := db.PingContext(context.Background())
			if took := time.Since(start); took != c.want || (err == nil) != c.well {
				t.Errorf("%s: %v after %v, want an answer %v after %v", c.name, err, took, c.well, c.want)
			}
			<-done
			empty(t, s, db, pool, lim)
		})
	}
}
