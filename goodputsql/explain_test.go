package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

// says fails the test unless text has all of what is wanted; of what begins with a "-" it
// must have nothing.
func says(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		not, absent := strings.CutPrefix(w, "-")
		if strings.Contains(text, not) == absent {
			t.Errorf("want %q (- means: not) in\n%s", w, text)
		}
	}
}

// Explain says what is held, by whom and for how long, and what was held for too long; and
// nothing of what there is nothing of.
func TestExplainHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{thaw: make(chan struct{})}, fixed(3)
		db, pool := s.behind(t, lim, goodputsql.Config{LongHold: time.Second, MaxHold: 10 * time.Second})
		says(t, db.Explain(), "db: idle\n", "  pool     no bound on connections (MaxOpenConns 0), and a limit of 3; 0 open, 0 of them idle\n",
			"  held     0 connections now\n", "-longest", "-LongHold", "-MaxHold", "-dials", "-waited in its queue", "-still out")

		done := make(chan error)
		go func() {
			_, err := db.ExecContext(context.Background(), "freeze")
			done <- err
		}()
		time.Sleep(500 * time.Millisecond)
		says(t, db.Explain(), "  held     1 connection now; the longest for 500ms, by Exec taken at ", "explain_test.go:", "1 open, 0 of them idle\n", "-LongHold")
		time.Sleep(time.Second)
		synctest.Wait()
		says(t, db.Explain(), "the longest for 1.5s", "1 since New were held for longer than 1s (LongHold)\n", "-MaxHold")
		time.Sleep(9 * time.Second)
		synctest.Wait()
		says(t, db.Explain(), "1 since New were held for longer than 1s (LongHold), 1 of them for 10s (MaxHold), and told to end\n", "-still out")
		time.Sleep(time.Second)
		synctest.Wait()
		says(t, db.Explain(), "1 connection still out 1s after the end, and their slots are given to others", "  limit    3 (fixed(3)); 0 in use")
		close(s.thaw)
		<-done
		synctest.Wait()
		says(t, db.Explain(), "  held     0 connections now\n", "-longest", "-still out", "(LongHold), 1 of them")
		empty(t, s, db, pool, lim)
	})
}

// Explain says that the pool queues, as New does: also of a limit that was raised later,
// and of waits whose cause has gone.
func TestExplainAPoolThatQueues(t *testing.T) {
	for _, observe := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			pool := (&server{}).openPool(t)
			pool.SetMaxOpenConns(2)
			lim := goodput.New(goodput.Config{Name: "db", Limit: limit.Fixed(2), Objective: time.Minute, Depth: 100, Observe: observe})
			db, err := goodputsql.New(pool, lim)
			if err != nil {
				t.Fatal(err)
			}
			const low = "MaxOpenConns 2 is below the limit 3 of db, so callers with a slot queue in the pool, out of order: raise one or lower the other\n"
			says(t, db.Explain(), "at most 2 connections (MaxOpenConns), and a limit of 2", "-is below", "-waited")
			if err := lim.SetLimit(3); err != nil {
				t.Fatal(err)
			}
			says(t, db.Explain(), low, "-waited")
			done := make(chan error)
			for range 3 {
				go func() { _, err := db.ExecContext(context.Background(), "sleep 1s"); done <- err }()
			}
			for range 3 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			says(t, db.Explain(), low, "1 have waited in its queue since New\n")
			pool.SetMaxOpenConns(3)
			why := "others use the pool past the limiter, or MaxOpenConns was below the limit for a time\n"
			if observe {
				why = "the limiter observes, and limits nothing\n"
			}
			says(t, db.Explain(), "-is below", "1 have waited in its queue since New: "+why)
		})
	}
}

// Explain says what a driver that panics has taken from the pool, and once that is more
// than it has to spare, that it queues.
func TestExplainLost(t *testing.T) {
	s, lim := &server{}, fixed(2)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	pool.SetMaxOpenConns(3)
	for _, want := range []string{
		"the driver panicked, and 1 connection lost: the pool counts them in MaxOpenConns for ever\n",
		"the driver panicked, and 2 connections lost: the pool has room for 1 and the limit of db is 2, so callers with a slot queue in the pool",
	} {
		says(t, db.Explain(), "-"+want)
		func() {
			defer func() { _ = recover() }()
			_, _ = db.QueryContext(t.Context(), "panic")
			t.Error("the driver did not panic")
		}()
		says(t, db.Explain(), want)
	}
}

// Explain says since when the database cannot be reached, why, and when that is tried again.
func TestExplainDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := true
		s, lim := &server{dials: func(int) error {
			if away {
				return errors.New("connection refused")
			}
			return nil
		}}, fixed(3)
		db, _ := s.behind(t, lim, goodputsql.Config{})
		began := time.Now()
		fails := func() { _, _ = db.ExecContext(context.Background(), "ok") }
		fails()
		says(t, db.Explain(), "  dials    1 attempt failed in a row since "+began.Format(time.RFC3339)+", 0s ago; the next is in ", ": connection refused\n", "*DialError")
		time.Sleep(10 * time.Second)
		says(t, db.Explain(), ", 10s ago; the next is due now: connection refused\n")
		fails()
		says(t, db.Explain(), "-1 attempt ", " attempts failed in a row")
		away = false
		time.Sleep(10 * time.Second)
		fails() // it does not
		says(t, db.Explain(), "-dials")
	})
}

// Below a method that a go statement calls itself there is no place: then it says which
// method that was. A function around it has one.
func TestSiteOfAGoStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(1)
		db, pool := s.behind(t, lim, goodputsql.Config{})
		ctx := context.Background()
		started := regexp.MustCompile(`^a goroutine started with db\.(\w+)$`)
		for method, start := range map[string]func(){
			"Do": func() { go db.Do(ctx, func(context.Context, *sql.Conn) error { time.Sleep(time.Second); return nil }) }, //nolint:errcheck // it is looked at
			"Tx": func() {
				go db.Tx(ctx, nil, func(context.Context, *sql.Tx) error { time.Sleep(time.Second); return nil })
			}, //nolint:errcheck // it is looked at
			"ExecContext": func() { go db.ExecContext(ctx, "sleep 1s") },              //nolint:errcheck // it is looked at
			"":            func() { go func() { db.ExecContext(ctx, "sleep 1s") }() }, //nolint:errcheck // it is looked at
		} {
			start()
			synctest.Wait()
			site := db.Stats().Longest.Site
			switch is := started.FindStringSubmatch(site); {
			case method == "" && !strings.Contains(site, "explain_test.go:"):
				t.Errorf("a function around it: %q", site)
			case method != "" && (is == nil || is[1] != method):
				t.Errorf("go db.%s: %q", method, site)
			}
			time.Sleep(2 * time.Second)
		}
		synctest.Wait()
		empty(t, s, db, pool, lim)
	})
}

// A copy of a Tx or a Conn holds the same, which is given back once.
func TestCopiesHoldTheSame(t *testing.T) {
	s, lim := &server{}, fixed(1)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	same := *tx
	if err := same.Commit(); err != nil || lim.Stats().InUse != 0 {
		t.Errorf("%v, %d slots in use after the commit of a copy", err, lim.Stats().InUse)
	}
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("a rollback after the commit of a copy: %v", err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	copied := *conn
	if err := errors.Join(conn.Close(), copied.Close()); !errors.Is(err, sql.ErrConnDone) {
		t.Errorf("two closes: %v", err)
	}
	empty(t, s, db, pool, lim)
}
