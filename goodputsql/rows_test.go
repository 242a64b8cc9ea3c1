package goodputsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
)

// Rows hold their slot and connection until the end that they come to first.
func TestRowsGiveBack(t *testing.T) {
	ends := map[string]struct {
		sets int
		end  func(t *testing.T, rows *goodputsql.Rows, cancel func())
		want goodput.Outcome
	}{
		"read to the end": {end: func(t *testing.T, rows *goodputsql.Rows, _ func()) {
			for rows.Next() {
			}
		}, want: goodput.Completed},
		"the last of several result sets": {sets: 2, end: func(t *testing.T, rows *goodputsql.Rows, _ func()) {
			for range 3 {
				for rows.Next() {
				}
				rows.NextResultSet()
			}
		}, want: goodput.Completed},
		"closed half-read": {end: func(t *testing.T, rows *goodputsql.Rows, _ func()) {
			rows.Next()
			for range 3 {
				if err := rows.Close(); err != nil {
					t.Error(err)
				}
			}
		}, want: goodput.Completed},
		"closed after an error of Scan": {end: func(t *testing.T, rows *goodputsql.Rows, _ func()) {
			rows.Next()
			var when time.Time
			if err := rows.Scan(&when); err == nil {
				t.Error("a number is a time")
			}
			rows.Close() //nolint:errcheck // this is about the slot
		}, want: goodput.Completed},
		"forgotten, context over": {end: func(t *testing.T, rows *goodputsql.Rows, cancel func()) {
			rows.Next()
			cancel()
		}, want: goodput.Abandoned},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, lim := &server{sets: c.sets}, fixed(1)
				db, pool := s.behind(t, lim, goodputsql.Config{})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				time.Sleep(time.Second)
				rows, err := db.QueryContext(ctx, "rows 2")
				if err != nil {
					t.Fatal(err)
				}
				rows.Next()
				synctest.Wait()
				if st := db.Stats(); st.Held != 1 || lim.Stats().InUse != 1 {
					t.Errorf("open rows hold %d connections and %d slots, want 1", st.Held, lim.Stats().InUse)
				}
				if cols, err := rows.Columns(); err != nil || len(cols) != 1 {
					t.Errorf("columns %v, %v", cols, err)
				}
				c.end(t, rows, cancel)
				synctest.Wait()
				empty(t, s, db, pool, lim)
				if n := lim.Stats().Outcomes[c.want]; n != 1 {
					t.Errorf("counted %v, want one %v", lim.Stats().Outcomes, c.want)
				}
			})
		})
	}
}

// Between two result sets nothing is given back: there is more to come.
func TestRowsBetweenResultSets(t *testing.T) {
	s, lim := &server{sets: 1}, fixed(1)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	rows, err := db.QueryContext(context.Background(), "rows 1")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
	}
	if db.Stats().Held != 1 {
		t.Error("the connection was given back between two result sets")
	}
	if !rows.NextResultSet() || !rows.Next() {
		t.Error("there is no second result set")
	}
	if rows.Next() || rows.NextResultSet() || rows.Err() != nil {
		t.Errorf("there is a third result set, or an error: %v", rows.Err())
	}
	empty(t, s, db, pool, lim)
}

// The memory of a RawBytes stays as it is until the next call, whoever cancels: the
// connection waits for that.
func TestRawBytesOutliveACancel(t *testing.T) {
	s, lim := &server{}, fixed(1)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	rows, err := db.QueryContext(ctx, "rows 2")
	if err != nil {
		t.Fatal(err)
	}
	rows.Next()
	var raw sql.RawBytes
	if err := rows.Scan(&raw); err != nil {
		t.Fatal(err)
	}
	cancel()
	for range 100 { // let whoever wants to give it back
		runtime.Gosched()
	}
	if string(raw) != "0" || db.Stats().Held != 1 {
		t.Errorf("%q, %d held", raw, db.Stats().Held)
	}
	rows.Close() //nolint:errcheck // this is about the slot
	until(t, func() bool { return db.Stats().Held == 0 && lim.Stats().InUse == 0 })
	empty(t, s, db, pool, lim)
}

// A Row gives back what it holds in Scan, whatever that says.
func TestRow(t *testing.T) {
	s, lim := &server{}, fixed(1)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	var n int
	var when time.Time
	var raw sql.RawBytes
	for _, c := range []struct {
		query string
		dest  any
		want  error
	}{
		{"rows 1", &n, nil},
		{"rows 2", &n, nil},
		{"rows 0", &n, sql.ErrNoRows},
		{"fail", &n, errServer},
		{"rows 1", &when, errAny},
		{"rows 1", &raw, errAny},
	} {
		row := db.QueryRowContext(context.Background(), c.query)
		err := row.Scan(c.dest)
		if !errors.Is(err, c.want) && (c.want != errAny || err == nil) {
			t.Errorf("%s into %T: %v, want %v", c.query, c.dest, err, c.want)
		}
		if (row.Err() != nil) != (c.query == "fail") {
			t.Errorf("%s: Err %v", c.query, row.Err())
		}
	}
	empty(t, s, db, pool, lim)
	if o := lim.Stats().Outcomes; o[goodput.Failed] != 1 || o[goodput.Completed] != 5 {
		t.Errorf("counted %v, want one failure and no rows is none", o)
	}
}

var errAny = errors.New("any error")

// A connection that turns out to be bad is no error of the caller, as with database/sql: after
// a restart of the database all that were idle are bad.
func TestBadConnectionsAreReplaced(t *testing.T) {
	const slots = 8
	calls := map[string]func(*goodputsql.DB) error{
		"Exec": func(db *goodputsql.DB) error { _, err := db.ExecContext(context.Background(), "ok"); return err },
		"Query": func(db *goodputsql.DB) error {
			return db.QueryRowContext(context.Background(), "rows 1").Scan(new(int))
		},
		"Tx": func(db *goodputsql.DB) error {
			return db.Tx(context.Background(), nil, func(context.Context, *sql.Tx) error { return nil })
		},
		"BeginTx": func(db *goodputsql.DB) error {
			tx, err := db.BeginTx(context.Background(), nil)
			if err != nil {
				return err
			}
			return tx.Commit()
		},
	}
	for name, call := range calls {
		s, lim := &server{}, fixed(slots)
		db, pool := s.behind(t, lim, goodputsql.Config{})
		fill(t, db, slots)
		s.stale.Store(slots + 1)
		if err := call(db); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if open := s.open.Load(); open != 1 {
			t.Errorf("%s: %d connections are open, the %d bad ones were tried first", name, open, slots)
		}
		empty(t, s, db, pool, lim)
		if s.most.Load() > slots {
			t.Errorf("%s: the database saw %d", name, s.most.Load())
		}
	}
	s, lim := &server{}, fixed(slots)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	fill(t, db, slots)
	if _, err := db.ExecContext(context.Background(), "bad"); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("a statement that is bad on every connection: %v", err)
	}
	if n := s.dialled.Load(); n > 2*slots {
		t.Errorf("it took %d dials to give up", n)
	}
	empty(t, s, db, pool, lim)
}

// A driver that says ErrBadConn because the context is over (pgx does) is not what the
// caller is to hear.
func TestBadConnectionOfWhoLeft(t *testing.T) {
	s, lim := &server{}, fixed(1)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		s.ends = cancel
		if _, err := db.ExecContext(ctx, "bad"); !errors.Is(err, context.Canceled) {
			t.Errorf("Exec: %v", err)
		}
		ctx, cancel = context.WithCancel(context.Background())
		s.ends = cancel
		if _, err := db.QueryContext(ctx, "bad"); !errors.Is(err, context.Canceled) {
			t.Errorf("Query: %v", err)
		}
	}
	empty(t, s, db, pool, lim)
	if o := lim.Stats().Outcomes; o[goodput.Abandoned] != 6 {
		t.Errorf("counted %v", o)
	}
}

// fill opens n connections and leaves them idle.
func fill(t testing.TB, db *goodputsql.DB, n int) {
	t.Helper()
	var conns []*goodputsql.Conn
	for range n {
		c, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for _, c := range conns {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); !errors.Is(err, sql.ErrConnDone) {
			t.Errorf("a second Close: %v", err)
		}
	}
}
