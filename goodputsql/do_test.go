package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

var errOwn = errors.New("the function says no")

// However a function ends, everything is back, the transaction is what it should be, and
// the limiter has counted it as what it was.
func TestHowAFunctionEnds(t *testing.T) {
	type end struct {
		fn       func(ctx context.Context, cancel func()) error
		want     error
		outcome  goodput.Outcome
		commits  int64
		panicked bool
	}
	ends := map[string]end{
		"well":      {func(context.Context, func()) error { return nil }, nil, goodput.Completed, 1, false},
		"an error":  {func(context.Context, func()) error { return errOwn }, errOwn, goodput.Failed, 0, false},
		"no rows":   {func(context.Context, func()) error { return sql.ErrNoRows }, sql.ErrNoRows, goodput.Completed, 0, false},
		"a panic":   {func(context.Context, func()) error { panic(errOwn) }, nil, goodput.Failed, 0, true},
		"no return": {func(context.Context, func()) error { runtime.Goexit(); return nil }, nil, goodput.Failed, 0, true},
		"a cancel": {func(ctx context.Context, cancel func()) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, context.Canceled, goodput.Abandoned, 0, false},
		"a cancel that it ignores": {func(ctx context.Context, cancel func()) error {
			cancel()
			synctest.Wait()
			return nil
		}, context.Canceled, goodput.Abandoned, 0, false},
	}
	run := func(t *testing.T, c end, bare, tx bool) {
		s, lim := &server{bare: bare}, fixed(1)
		db, pool := s.behind(t, lim, goodputsql.Config{})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() {
				if r := recover(); r != nil && (r != errOwn || !c.panicked) {
					t.Errorf("panic %v", r)
				}
			}()
			var err error
			if tx {
				err = db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
					if _, err := tx.QueryContext(ctx, "rows 1"); err != nil { // and forgets them
						t.Error(err)
					}
					return c.fn(ctx, cancel)
				})
			} else {
				err = db.Do(ctx, func(ctx context.Context, conn *sql.Conn) error {
					if _, err := conn.QueryContext(ctx, "rows 1"); err != nil {
						t.Error(err)
					}
					return c.fn(ctx, cancel)
				})
			}
			if !tx && c.outcome == goodput.Abandoned && err == nil {
				return // without a transaction nothing says that the work is void
			}
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("returned %v, want %v", err, c.want)
			}
		}()
		<-done
		empty(t, s, db, pool, lim)
		ignored := !tx && c.outcome == goodput.Abandoned && lim.Stats().Outcomes[goodput.Completed] == 1
		if n := lim.Stats().Outcomes[c.outcome]; n != 1 && !ignored {
			t.Errorf("counted %v, want one %v", lim.Stats().Outcomes, c.outcome)
		}
		if tx && (s.commits.Load() != c.commits || s.rollbacks.Load() != 1-c.commits) {
			t.Errorf("%d commits and %d rollbacks, want %d and %d", s.commits.Load(), s.rollbacks.Load(), c.commits, 1-c.commits)
		}
	}
	for name, c := range ends {
		for _, bare := range []bool{false, true} {
			for _, tx := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { run(t, c, bare, tx) })
				})
			}
		}
	}
}

// lingers lets everybody else go first, as often as matters. It does not sleep: database/sql
// closes under a lock, and while somebody waits for that the clock of a bubble stands still.
func lingers() {
	for range 100 {
		runtime.Gosched()
	}
}

// A transaction that is rolled back because its context ended goes back into the pool only
// if the driver can tell that it is well, whoever notices the end first; and its slot only
// when it is closed.
func TestContextEndsATransaction(t *testing.T) {
	ends := map[string]func(ctx context.Context, cancel func(), db *goodputsql.DB) error{
		"forgotten": func(ctx context.Context, cancel func(), db *goodputsql.DB) error {
			_, err := db.BeginTx(ctx, nil)
			cancel()
			synctest.Wait()
			return errors.Join(err, ctx.Err())
		},
		"committed too late": func(ctx context.Context, cancel func(), db *goodputsql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			cancel()
			synctest.Wait()
			if err := tx.Commit(); !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, context.Canceled) {
				return err
			}
			if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
				return err
			}
			return ctx.Err()
		},
		"committed at that moment": func(ctx context.Context, cancel func(), db *goodputsql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			cancel()
			if err := tx.Commit(); !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, context.Canceled) {
				return err
			}
			return ctx.Err()
		},
		"Tx": func(ctx context.Context, cancel func(), db *goodputsql.DB) error {
			return db.Tx(ctx, nil, func(context.Context, *sql.Tx) error {
				cancel()
				return nil
			})
		},
		"Do": func(ctx context.Context, cancel func(), db *goodputsql.DB) error {
			return db.Do(ctx, func(ctx context.Context, conn *sql.Conn) error {
				_, err := conn.BeginTx(ctx, nil)
				cancel()
				return errors.Join(err, ctx.Err())
			})
		},
		"Tx, noticed before": func(ctx context.Context, cancel func(), db *goodputsql.DB) error {
			return db.Tx(ctx, nil, func(context.Context, *sql.Tx) error {
				cancel()
				synctest.Wait()
				return nil
			})
		},
	}
	for name, end := range ends {
		for _, bare := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, lim := &server{bare: bare, rollbackErr: errServer, closes: lingers}, fixed(1)
					db, pool := s.behind(t, lim, goodputsql.Config{})
					for i := range 20 {
						ctx, cancel := context.WithCancel(context.Background())
						if err := end(ctx, cancel, db); !errors.Is(err, context.Canceled) {
							t.Errorf("it returned %v", err)
						}
						if err := read(db.QueryContext(context.Background(), "rows 1")); err != nil {
							t.Error(err)
						}
						if n := int(s.dialled.Load()); bare && n != i+2 || !bare && n != 1 {
							t.Errorf("round %d: %d dials, bare %v", i, n, bare)
						}
					}
					synctest.Wait()
					empty(t, s, db, pool, lim)
					if s.most.Load() > 1 {
						t.Errorf("the database saw %d connections, the limit is 1", s.most.Load())
					}
					if s.rollbacks.Load() != 20 || lim.Stats().Outcomes[goodput.Abandoned] != 20 {
						t.Errorf("%d rollbacks, counted %v", s.rollbacks.Load(), lim.Stats().Outcomes)
					}
				})
			})
		}
	}
}

// A transaction of BeginTx holds until it ends, by whichever call.
func TestBeginTx(t *testing.T) {
	ends := map[string]func(*goodputsql.Tx) error{
		"commit": (*goodputsql.Tx).Commit, "rollback": (*goodputsql.Tx).Rollback,
		"both": func(tx *goodputsql.Tx) error {
			err := tx.Commit()
			if again := tx.Rollback(); !errors.Is(again, sql.ErrTxDone) {
				return again
			}
			return err
		},
	}
	for name, end := range ends {
		s, lim := &server{}, fixed(1)
		db, pool := s.behind(t, lim, goodputsql.Config{})
		ctx, cancel := context.WithCancel(context.Background())
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.QueryContext(ctx, "rows 1"); err != nil { // left open
			t.Fatal(err)
		}
		if lim.Stats().InUse != 1 || db.Stats().Held != 1 {
			t.Error("it holds nothing")
		}
		if err := end(tx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		empty(t, s, db, pool, lim)
		cancel()
	}
}

// A driver that panics loses its connection, not the slot.
func TestDriverPanics(t *testing.T) {
	s, lim := &server{}, fixed(1)
	db, _ := s.behind(t, lim, goodputsql.Config{})
	calls := []func(){
		func() { db.ExecContext(context.Background(), "panic") },  //nolint:errcheck // it panics
		func() { db.QueryContext(context.Background(), "panic") }, //nolint:errcheck,sqlclosecheck // it panics
	}
	for i, call := range calls {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not go on")
				}
			}()
			call()
		}()
		if st := lim.Stats(); st.InUse != 0 || st.Outcomes[goodput.Failed] != uint64(i+1) {
			t.Errorf("%d in use, counted %v", st.InUse, st.Outcomes)
		}
		if db.Stats().Held != 0 {
			t.Errorf("held %+v", db.Stats().Longest)
		}
	}
}

// The time from asking for a slot to giving it back is not the front door's.
func TestTimeIsElsewhere(t *testing.T) {
	calls := map[string]func(context.Context, *goodputsql.DB) error{
		"Exec": func(ctx context.Context, db *goodputsql.DB) error {
			_, err := db.ExecContext(ctx, "sleep 1s")
			return err
		},
		"Query": func(ctx context.Context, db *goodputsql.DB) error {
			return db.QueryRowContext(ctx, "sleep 1s").Scan(new(int))
		},
		"Do": func(ctx context.Context, db *goodputsql.DB) error {
			return db.Do(ctx, func(context.Context, *sql.Conn) error { time.Sleep(time.Second); return nil })
		},
		"Tx": func(ctx context.Context, db *goodputsql.DB) error {
			return db.Tx(ctx, nil, func(context.Context, *sql.Tx) error { time.Sleep(time.Second); return nil })
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, door := &server{}, fixed(4)
				db, _ := s.behind(t, fixed(1), goodputsql.Config{})
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // so that the slot is timed
				defer cancel()
				time.Sleep(time.Second)
				err := door.Do(ctx, func(ctx context.Context) error {
					time.Sleep(time.Second)
					return call(ctx, db)
				})
				if err != nil {
					t.Fatal(err)
				}
				if st := door.Stats(); st.Elsewhere < 0.45 || st.Elsewhere > 0.55 {
					t.Errorf("%.2f of the time of the front door was elsewhere, want half", st.Elsewhere)
				}
			})
		})
	}
}

// A context that outlives its Do, as that of a job that a request leaves behind, rides on
// nothing: what uses it waits for a connection of its own.
func TestContextOutlivesItsDo(t *testing.T) {
	s, lim := &server{}, fixed(2)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	var left context.Context
	err := db.Tx(context.Background(), nil, func(ctx context.Context, _ *sql.Tx) error {
		left = context.WithoutCancel(ctx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Do(left, func(ctx context.Context, conn *sql.Conn) error {
		return conn.PingContext(ctx)
	})
	if err != nil {
		t.Error(err)
	}
	if n := lim.Stats().Outcomes[goodput.Completed]; n != 2 {
		t.Errorf("%d slots were taken, want one for each call", n)
	}
	empty(t, s, db, pool, lim)
}

// Everything inside of Do is on the one connection; everything inside of Tx fails at once.
func TestNestedUse(t *testing.T) {
	calls := map[string]func(context.Context, *goodputsql.DB) error{
		"Do": func(ctx context.Context, db *goodputsql.DB) error {
			return db.Do(ctx, func(ctx context.Context, conn *sql.Conn) error { return conn.PingContext(ctx) })
		},
		"Tx": func(ctx context.Context, db *goodputsql.DB) error {
			return db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
				if _, err := db.ExecContext(ctx, "ok"); err == nil {
					return errors.New("a statement beside a transaction in Do went through")
				}
				return nil
			})
		},
		"Exec":  func(ctx context.Context, db *goodputsql.DB) error { _, err := db.ExecContext(ctx, "ok"); return err },
		"Query": func(ctx context.Context, db *goodputsql.DB) error { return read(db.QueryContext(ctx, "rows 1")) },
		"QueryRow": func(ctx context.Context, db *goodputsql.DB) error {
			return db.QueryRowContext(ctx, "rows 1").Scan(new(int))
		},
		"BeginTx": func(ctx context.Context, db *goodputsql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			return tx.Commit()
		},
		"Conn": func(ctx context.Context, db *goodputsql.DB) error {
			conn, err := db.Conn(ctx)
			if err != nil {
				return err
			}
			return errors.Join(conn.PingContext(ctx), conn.Close())
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: goodput.NoQueue})
			s := &server{}
			db, pool := s.behind(t, lim, goodputsql.Config{})
			err := db.Do(context.Background(), func(ctx context.Context, conn *sql.Conn) error {
				if err := call(ctx, db); err != nil {
					return err
				}
				return conn.PingContext(ctx) // it is still ours
			})
			if err != nil {
				t.Errorf("inside of Do: %v", err)
			}
			err = db.Tx(context.Background(), nil, func(ctx context.Context, _ *sql.Tx) error { return call(ctx, db) })
			named(t, err, goodputsql.OfTx, "do_test.go:")
			if errors.Is(err, goodput.ErrRejected) {
				t.Errorf("it asked for a slot: %v", err)
			}
			// Another database is another matter.
			other, _ := (&server{}).behind(t, fixed(1), goodputsql.Config{})
			err = other.Tx(context.Background(), nil, func(ctx context.Context, _ *sql.Tx) error { return call(ctx, db) })
			if err != nil {
				t.Errorf("inside of a transaction of another database: %v", err)
			}
			empty(t, s, db, pool, lim)
			if lim.Stats().Outcomes[goodput.Rejected] != 0 {
				t.Errorf("counted %v", lim.Stats().Outcomes)
			}
		})
	}
}

// Time that the function of Do spends elsewhere is not the database's.
func TestElsewhereInDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := fixed(1)
		db, _ := (&server{}).behind(t, lim, goodputsql.Config{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // so that the slot is timed
		defer cancel()
		time.Sleep(time.Second)
		err := db.Do(ctx, func(ctx context.Context, _ *sql.Conn) error {
			time.Sleep(time.Second)
			span := goodput.Downstream(ctx)
			defer span.End()
			time.Sleep(time.Second)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if st := lim.Stats(); st.Elsewhere < 0.45 || st.Elsewhere > 0.55 {
			t.Errorf("%.2f of the time of the database was elsewhere, want half", st.Elsewhere)
		}
	})
}

// Who gets an error of the server because he has left has abandoned it.
func TestErrorOfWhoLeft(t *testing.T) {
	s, lim := &server{}, fixed(1)
	db, _ := s.behind(t, lim, goodputsql.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	s.ends = cancel
	if _, err := db.ExecContext(ctx, "fail"); !errors.Is(err, errServer) {
		t.Error(err)
	}
	if o := lim.Stats().Outcomes; o[goodput.Abandoned] != 1 {
		t.Errorf("counted %v", o)
	}
}
