package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/goodputsql"
)

// What ends at MaxHold says so, whatever it was and whoever asks; what ends before does not.
func TestErrorsAtMaxHold(t *testing.T) {
	ctx := context.Background()
	calls := map[string]func(*goodputsql.DB) error{
		"Exec":  func(db *goodputsql.DB) error { _, err := db.ExecContext(ctx, "sleep 1m"); return err },
		"Query": func(db *goodputsql.DB) error { return read(db.QueryContext(ctx, "sleep 1m")) },
		"QueryRow": func(db *goodputsql.DB) error {
			return db.QueryRowContext(ctx, "sleep 1m").Scan(new(int))
		},
		"Rows": func(db *goodputsql.DB) error {
			rows, err := db.QueryContext(ctx, "rows 3")
			if err != nil {
				return err
			}
			defer rows.Close()
			time.Sleep(time.Minute)
			if rows.Next() {
				return errors.New("a row")
			}
			if err := rows.Scan(new(int)); !errors.Is(err, goodputsql.ErrHeldTooLong) {
				return err
			}
			return rows.Err()
		},
		"a row that is late": func(db *goodputsql.DB) error {
			row := db.QueryRowContext(ctx, "rows 1")
			time.Sleep(time.Minute)
			return row.Scan(new(int))
		},
		"Tx": func(db *goodputsql.DB) error {
			return db.Tx(ctx, nil, func(context.Context, *sql.Tx) error { time.Sleep(time.Minute); return nil })
		},
		"Tx that fails": func(db *goodputsql.DB) error {
			return db.Tx(ctx, nil, func(ctx context.Context, _ *sql.Tx) error { time.Sleep(time.Minute); return ctx.Err() })
		},
		"BeginTx": func(db *goodputsql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() //nolint:errcheck // it has ended
			time.Sleep(time.Minute)
			for _, call := range []func() error{
				func() error { _, err := tx.ExecContext(ctx, "ok"); return err },
				func() error { return read(tx.QueryContext(ctx, "rows 1")) },
				tx.Rollback,
			} {
				if err := call(); !errors.Is(err, goodputsql.ErrHeldTooLong) || !errors.Is(err, sql.ErrTxDone) {
					return err
				}
			}
			return tx.Commit()
		},
		"Conn": func(db *goodputsql.DB) error {
			conn, err := db.Conn(ctx)
			if err != nil {
				return err
			}
			defer conn.Close() //nolint:errcheck // that is tested in TestMaxHold
			time.Sleep(time.Minute)
			for _, call := range []func() error{
				func() error { _, err := conn.ExecContext(ctx, "ok"); return err },
				func() error { return read(conn.QueryContext(ctx, "rows 1")) },
				func() error { _, err := conn.BeginTx(ctx, nil); return err },
			} {
				if err := call(); !errors.Is(err, goodputsql.ErrHeldTooLong) || !errors.Is(err, sql.ErrConnDone) {
					return err
				}
			}
			return conn.PingContext(ctx)
		},
		"Do": func(db *goodputsql.DB) error {
			return db.Do(ctx, func(_ context.Context, conn *sql.Conn) error {
				time.Sleep(time.Minute)
				return conn.PingContext(context.Background())
			})
		},
		"a call in Do": func(db *goodputsql.DB) error {
			var inner error
			db.Do(ctx, func(ctx context.Context, _ *sql.Conn) error { //nolint:errcheck // the inner one is what counts
				_, inner = db.ExecContext(ctx, "sleep 1m")
				return nil
			})
			return inner
		},
	}
	for name, call := range calls {
		for _, maxHold := range []time.Duration{10 * time.Second, 2 * time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				db, _ := (&server{}).behind(t, fixed(1), goodputsql.Config{MaxHold: maxHold})
				if err := call(db); errors.Is(err, goodputsql.ErrHeldTooLong) != (maxHold < time.Minute) {
					t.Errorf("%s: with MaxHold %v: %v", name, maxHold, err)
				}
			})
		}
	}
}

// The driver's error of a commit is told also if the context ended meanwhile; the context's
// is told where that is all there is.
func TestErrorOfACommit(t *testing.T) {
	for _, c := range []struct {
		late, fails, tellsServer, tellsEnd bool
	}{
		{},
		{fails: true, tellsServer: true},
		{late: true},
		{late: true, fails: true, tellsServer: true, tellsEnd: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			if c.fails {
				s.commitErr = errServer
			}
			s.commitTakes = func() {
				if c.late {
					time.Sleep(time.Minute)
				}
			}
			db, _ := s.behind(t, fixed(1), goodputsql.Config{})
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err := db.Tx(ctx, nil, func(context.Context, *sql.Tx) error { return nil })
			if errors.Is(err, errServer) != c.tellsServer || errors.Is(err, context.DeadlineExceeded) != c.tellsEnd {
				t.Errorf("%+v: %v", c, err)
			}
		})
	}
	// The context was over before the commit was sent.
	s := &server{}
	db, _ := s.behind(t, fixed(1), goodputsql.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	err := db.Tx(ctx, nil, func(context.Context, *sql.Tx) error {
		cancel()
		until(t, func() bool { return s.txs.Load() == 0 })
		return nil
	})
	if err != context.Canceled { //nolint:errorlint // as it is
		t.Errorf("not sent: %v", err)
	}
}

// A transaction of which nobody knows that it has ended does not come back into the pool, also
// if it was that of a context inside of Do, unless the driver checks connections.
func TestOpenTransactionsDoNotComeBack(t *testing.T) {
	calls := map[string]func(context.Context, func(), *goodputsql.DB) error{
		"Tx": func(ctx context.Context, leave func(), db *goodputsql.DB) error {
			return db.Tx(ctx, nil, func(ctx context.Context, _ *sql.Tx) error { leave(); return ctx.Err() })
		},
		"BeginTx": func(ctx context.Context, leave func(), db *goodputsql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() //nolint:errcheck // as most do
			leave()
			return ctx.Err()
		},
		"Tx with a rollback that fails": func(ctx context.Context, _ func(), db *goodputsql.DB) error {
			return db.Tx(context.WithoutCancel(ctx), nil, func(context.Context, *sql.Tx) error { return errOwn })
		},
		"BeginTx with a rollback that fails": func(ctx context.Context, _ func(), db *goodputsql.DB) error {
			tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
			if err != nil {
				return err
			}
			return tx.Rollback()
		},
	}
	for name, call := range calls {
		for _, inDo := range []bool{false, true} {
			for _, bare := range []bool{true, false} {
				s, lim := &server{bare: bare, rollbackErr: errServer}, fixed(1)
				db, pool := s.behind(t, lim, goodputsql.Config{})
				ctx, cancel := context.WithCancel(context.Background())
				if inDo {
					db.Do(context.Background(), func(outer context.Context, _ *sql.Conn) error { //nolint:errcheck // it fails
						ctx, cancel := context.WithCancel(outer)
						defer cancel()
						return call(ctx, cancel, db)
					})
				} else {
					call(ctx, cancel, db) //nolint:errcheck // it fails
				}
				until(t, func() bool { return lim.Stats().InUse == 0 })
				cancel()
				if _, err := db.ExecContext(context.Background(), "ok"); err != nil {
					t.Error(err)
				}
				want := int64(1)
				if bare {
					want = 2
				}
				if s.dialled.Load() != want {
					t.Errorf("%s, in Do %v, bare %v: %d connections were dialled, want %d", name, inDo, bare, s.dialled.Load(), want)
				}
				empty(t, s, db, pool, lim)
			}
		}
	}
}

// Two that use the connection of one Do wait for each other, but not past their deadlines.
func TestRidingCallsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(1)
		db, pool := s.behind(t, lim, goodputsql.Config{})
		err := db.Do(context.Background(), func(ctx context.Context, _ *sql.Conn) error {
			first := make(chan error, 1)
			go func() { _, err := db.ExecContext(ctx, "sleep 2s"); first <- err }()
			synctest.Wait()
			soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			for name, call := range map[string]func() error{
				"Exec":    func() error { _, err := db.ExecContext(soon, "ok"); return err },
				"Query":   func() error { return read(db.QueryContext(soon, "rows 1")) },
				"BeginTx": func() error { _, err := db.BeginTx(soon, nil); return err },
				"Tx": func() error {
					return db.Tx(soon, nil, func(context.Context, *sql.Tx) error { return nil })
				},
			} {
				began := time.Now()
				if err := call(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 50*time.Millisecond {
					t.Errorf("%s: %v after %v", name, err, time.Since(began))
				}
			}
			if _, err := db.ExecContext(ctx, "ok"); err != nil { // it has the time
				t.Error(err)
			}
			return <-first
		})
		if err != nil {
			t.Error(err)
		}
		empty(t, s, db, pool, lim)
	})
}

// A Conn that nobody closes holds nothing once MaxHold has closed it.
func TestForgottenConnAtMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(1)
		db, pool := s.behind(t, lim, goodputsql.Config{MaxHold: 10 * time.Second})
		conn, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second)
		if st := db.Stats(); st.Overdue != 0 || st.Cut != 1 || s.open.Load() != 0 {
			t.Errorf("%+v, %d connections are open", st, s.open.Load())
		}
		empty(t, s, db, pool, lim)
		if err := conn.Close(); !errors.Is(err, sql.ErrConnDone) || !errors.Is(err, goodputsql.ErrHeldTooLong) {
			t.Error(err)
		}
	})
}
