package goodputsql_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/goodput/goodput/goodputsql"
)

// A driver that panics, in whichever call: the panic goes on, the slot is given back, nothing hangs, and a
// connection that database/sql has locked for ever is closed past it. Limit 1, so that a slot
// that is lost is seen at once.
func TestDriverPanicsAnywhere(t *testing.T) {
	ctx := context.Background()
	begin := func(db *goodputsql.DB) *goodputsql.Tx {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Error(err)
		}
		return tx
	}
	query := func(db *goodputsql.DB, ctx context.Context) *goodputsql.Rows {
		rows, err := db.QueryContext(ctx, "rows 2")
		if err != nil {
			t.Error(err)
		}
		return rows
	}
	inTx := func(err error) func(*goodputsql.DB) {
		return func(db *goodputsql.DB) {
			db.Tx(ctx, nil, func(context.Context, *sql.Tx) error { return err }) //nolint:errcheck // it panics
		}
	}
	inDo := func(fn func(*goodputsql.DB, context.Context)) func(*goodputsql.DB) {
		return func(db *goodputsql.DB) {
			db.Do(ctx, func(ctx context.Context, _ *sql.Conn) error { fn(db, ctx); return nil }) //nolint:errcheck // it panics
		}
	}
	for _, c := range []struct {
		name, at string
		call     func(db *goodputsql.DB)
		lost     uint64 // of the connections that the pool had
	}{
		{"Tx", "Begin", inTx(nil), 1},
		{"Tx", "Commit", inTx(nil), 1},
		{"Tx", "Rollback", inTx(errOwn), 1},
		{"BeginTx", "Begin", func(db *goodputsql.DB) { begin(db) }, 1},
		{"BeginTx", "Commit", func(db *goodputsql.DB) { begin(db).Commit() }, 1},
		{"BeginTx", "Rollback", func(db *goodputsql.DB) { begin(db).Rollback() }, 1},
		{"BeginTx and a deferred rollback", "Commit", func(db *goodputsql.DB) {
			tx := begin(db)
			defer tx.Rollback()
			tx.Commit() //nolint:errcheck // it panics
		}, 1},
		{"a query in BeginTx and a deferred rollback", "", func(db *goodputsql.DB) {
			tx := begin(db)
			defer tx.Rollback()
			tx.QueryContext(ctx, "panic") //nolint:errcheck,sqlclosecheck,rowserrcheck // it panics
		}, 1},
		{"a row in BeginTx and a deferred rollback", "", func(db *goodputsql.DB) {
			tx := begin(db)
			defer tx.Rollback()
			tx.QueryRowContext(ctx, "panic")
		}, 1},
		{"a statement in BeginTx and a deferred rollback", "", func(db *goodputsql.DB) {
			tx := begin(db)
			defer tx.Rollback()
			tx.ExecContext(ctx, "panic") //nolint:errcheck // it panics
		}, 0},
		{"a query of a Conn and a deferred close", "", func(db *goodputsql.DB) {
			conn, _ := db.Conn(ctx)
			defer conn.Close()              //nolint:errcheck // it is lost
			conn.QueryContext(ctx, "panic") //nolint:errcheck,sqlclosecheck,rowserrcheck // it panics
		}, 1},
		{"a ping of a Conn and a deferred close", "Ping", func(db *goodputsql.DB) {
			conn, _ := db.Conn(ctx)
			defer conn.Close()    //nolint:errcheck // it is lost
			conn.PingContext(ctx) //nolint:errcheck // it panics
		}, 1},
		{"Query", "", func(db *goodputsql.DB) { db.QueryContext(ctx, "panic") }, 1},
		{"Exec", "", func(db *goodputsql.DB) { db.ExecContext(ctx, "panic") }, 0},
		{"Rows.Close", "Rows.Close", func(db *goodputsql.DB) { query(db, ctx).Close() }, 1},
		{"Rows at their end", "Rows.Close", func(db *goodputsql.DB) {
			rows := query(db, ctx)
			defer rows.Close()
			for rows.Next() {
			}
		}, 1},
		{"Rows", "Next", func(db *goodputsql.DB) { query(db, ctx).Next() }, 0},
		{"Row", "Next", func(db *goodputsql.DB) { db.QueryRowContext(ctx, "rows 1").Scan(new(int)) }, 0},
		{"Row", "Rows.Close", func(db *goodputsql.DB) { db.QueryRowContext(ctx, "rows 1").Scan(new(int)) }, 1},
		{"Scan", "", func(db *goodputsql.DB) {
			rows := query(db, ctx)
			defer rows.Close()
			rows.Next()
			rows.Scan(angry{}) //nolint:errcheck // it panics
		}, 1},
		{"Row.Scan", "", func(db *goodputsql.DB) { db.QueryRowContext(ctx, "rows 1").Scan(angry{}) }, 1},
		{"a statement on an idle connection", "ResetSession", func(db *goodputsql.DB) { db.ExecContext(ctx, "ok") }, 1},
		{"a bad connection that is closed", "Close", func(db *goodputsql.DB) { db.ExecContext(ctx, "bad") }, 1},
		{"a health check", "Ping", func(db *goodputsql.DB) { db.PingContext(ctx) }, 1},
		{"Tx in Do", "Begin", inDo(func(db *goodputsql.DB, ctx context.Context) {
			db.Tx(ctx, nil, func(context.Context, *sql.Tx) error { return nil }) //nolint:errcheck // it panics
		}), 1},
		{"Tx in Do", "Commit", inDo(func(db *goodputsql.DB, ctx context.Context) {
			db.Tx(ctx, nil, func(context.Context, *sql.Tx) error { return nil }) //nolint:errcheck // it panics
		}), 1},
		{"rows in Do", "Rows.Close", inDo(func(db *goodputsql.DB, ctx context.Context) { query(db, ctx).Close() }), 1},
		{"a query in Do", "", inDo(func(db *goodputsql.DB, ctx context.Context) { db.QueryContext(ctx, "panic") }), 1},
		{"a statement in Do", "", inDo(func(db *goodputsql.DB, ctx context.Context) { db.ExecContext(ctx, "panic") }), 0},
	} {
		t.Run(c.name+" "+c.at, func(t *testing.T) {
			t.Parallel()
			s, lim := &server{}, fixed(1)
			pool := sql.OpenDB(s) // and no Close: it waits for what is lost
			db, err := goodputsql.New(pool, lim)
			if err != nil {
				t.Fatal(err)
			}
			fill(t, db, 1)
			s.panics.Store(c.at)
			came := make(chan any, 1)
			go func() {
				defer func() { came <- recover() }()
				c.call(db)
			}()
			select {
			case r := <-came:
				if r == nil {
					t.Error("the panic is gone")
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it hangs")
			}
			s.panics.Store("")
			if _, err := db.ExecContext(ctx, "ok"); err != nil {
				t.Error(err)
			}
			if st := db.Stats(); lim.Stats().InUse != 0 || st.Held != 0 || st.Lost != c.lost || pool.Stats().InUse != int(c.lost) {
				t.Errorf("%d slots in use; %+v, want %d lost; in the pool %d", lim.Stats().InUse, st, c.lost, pool.Stats().InUse)
			}
			if c.at != "Close" && c.at != "ResetSession" && s.open.Load() > 1 {
				t.Errorf("the database sees %d connections, the limit is 1", s.open.Load())
			}
		})
	}
}

// angry is a destination of Scan that panics, with which database/sql keeps a lock of the rows.
type angry struct{}

func (angry) Scan(any) error { panic("a destination") }

// What a panic has locked where we did not see it, on the bare connection or transaction: the
// caller waits for it no longer than a second, and it counts as overdue.
func TestPanicsOutOfSight(t *testing.T) {
	ctx := context.Background()
	for name, call := range map[string]func(*goodputsql.DB){
		"Do": func(db *goodputsql.DB) {
			db.Do(ctx, func(ctx context.Context, conn *sql.Conn) error { //nolint:errcheck // it panics
				_, err := conn.QueryContext(ctx, "panic") //nolint:sqlclosecheck,rowserrcheck // it panics
				return err
			})
		},
		"Tx": func(db *goodputsql.DB) {
			db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error { //nolint:errcheck // it panics
				_, err := tx.QueryContext(ctx, "panic") //nolint:sqlclosecheck,rowserrcheck // it panics
				return err
			})
		},
		"Tx in Do": func(db *goodputsql.DB) {
			db.Do(ctx, func(ctx context.Context, _ *sql.Conn) error { //nolint:errcheck // it panics
				return db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
					_, err := tx.QueryContext(ctx, "panic") //nolint:sqlclosecheck,rowserrcheck // it panics
					return err
				})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, lim := &server{}, fixed(1)
			db, err := goodputsql.New(sql.OpenDB(s), lim)
			if err != nil {
				t.Fatal(err)
			}
			came := make(chan any, 1)
			go func() {
				defer func() { came <- recover() }()
				call(db)
			}()
			select {
			case r := <-came:
				if r == nil {
					t.Error("the panic is gone")
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it hangs")
			}
			if _, err := db.ExecContext(ctx, "ok"); err != nil {
				t.Error(err)
			}
			if st := db.Stats(); st.Overdue != 1 || st.Held != 1 || lim.Stats().InUse != 0 {
				t.Errorf("%+v, %d slots in use", st, lim.Stats().InUse)
			}
		})
	}
}

// A function that panics by itself loses nothing.
func TestPanicsOfTheFunctionLoseNothing(t *testing.T) {
	s, lim := &server{}, fixed(1)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	for range 10 {
		unwound(t, func() {
			db.Do(context.Background(), func(context.Context, *sql.Conn) error { panic(errOwn) }) //nolint:errcheck // it panics
		})
		unwound(t, func() {
			db.Tx(context.Background(), nil, func(context.Context, *sql.Tx) error { panic(errOwn) }) //nolint:errcheck // it panics
		})
	}
	if st := db.Stats(); st.Lost != 0 || st.Overdue != 0 || s.dialled.Load() != 1 || s.rollbacks.Load() != 10 {
		t.Errorf("%+v, %d dials, %d rollbacks", st, s.dialled.Load(), s.rollbacks.Load())
	}
	empty(t, s, db, pool, lim)
}
