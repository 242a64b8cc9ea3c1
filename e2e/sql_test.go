//go:build linux

package e2e

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

// openSQL returns the database behind a limiter of n slots.
func openSQL(t *testing.T, n int, cfg goodputsql.Config) (*goodputsql.DB, *sql.DB, *goodput.Limiter) {
	t.Helper()
	cluster := database(t)
	cluster.Disconnect(t)
	pgxConfig, err := pgx.ParseConfig(cluster.DSN())
	if err != nil {
		t.Fatal(err)
	}
	pool := stdlib.OpenDB(*pgxConfig)
	t.Cleanup(func() { pool.Close() }) //nolint:errcheck // the server notices
	lim := goodput.New(goodput.Config{Name: "database", Limit: limit.Fixed(n), Objective: 10 * time.Second, Depth: 1000})
	db, err := cfg.New(pool, lim)
	if err != nil {
		t.Fatal(err)
	}
	return db, pool, lim
}

// within waits for what goodputsql is about to do in another goroutine.
func within(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: %s", limit, what)
		}
	}
}

// A session, once for each way to end it, on the same connection of a real server: what one
// leaves the next does not see.
func TestSQLLeavesNothingBehind(t *testing.T) {
	db, pool, lim := openSQL(t, 1, goodputsql.Config{})
	background := context.Background()
	if _, err := db.ExecContext(background, "create temp table seen (n int)"); err != nil {
		t.Fatal(err)
	}
	clean := func(after string) {
		t.Helper()
		within(t, 10*time.Second, "the connection is not back", func() bool { return db.Stats().Held == 0 && lim.Stats().InUse == 0 })
		if n := database(t).InTransaction(t); n != 0 {
			t.Errorf("after %s: %d connections are in a transaction", after, n)
		}
	}
	own := errors.New("no")
	err := db.Tx(background, nil, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "insert into seen values (1)"); err != nil {
			t.Error(err)
		}
		if _, err := tx.QueryContext(ctx, "select generate_series(1, 100000)"); err != nil { // forgotten
			t.Error(err)
		}
		var nested *goodputsql.NestedError
		if _, err := db.ExecContext(ctx, "select 1"); !errors.As(err, &nested) {
			t.Errorf("beside the transaction: %v", err)
		}
		return own
	})
	if !errors.Is(err, own) {
		t.Error(err)
	}
	clean("an error in a transaction")

	err = db.Do(background, func(ctx context.Context, _ *sql.Conn) error { // all on one connection
		return db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "insert into seen values (2)")
			return err
		})
	})
	if err != nil {
		t.Error(err)
	}
	clean("a transaction in Do")
	var n int
	if err := db.QueryRowContext(background, "select sum(n) from seen").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d, %v: want what was committed", n, err)
	}

	ctx, cancel := context.WithCancel(background)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, "select 1"); err != nil {
		t.Error(err)
	}
	cancel()
	clean("a cancel in a transaction")

	ctx, cancel = context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	rows, err := db.QueryContext(ctx, "select generate_series(1, 10000000)")
	if err != nil {
		t.Fatal(err)
	}
	rows.Next() // and forgets them
	clean("forgotten rows")
	if n := pool.Stats().WaitCount; n != 0 {
		t.Errorf("%d waited in the queue of the pool", n)
	}
}

// C146 on a real server: cancels around the end of a statement, and the neighbour's on the
// same connection.
func TestSQLCancelAtCompletion(t *testing.T) {
	db, pool, lim := openSQL(t, 1, goodputsql.Config{})
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	var usual time.Duration
	const rounds = 2000
	cancelled := 0
	for i := range rounds {
		ctx, cancel := context.WithCancel(context.Background())
		began := time.Now()
		if i >= 100 { // it has an idea of how long it takes
			time.AfterFunc(usual*time.Duration(rnd.IntN(200))/100, cancel)
		}
		var n int
		err := db.QueryRowContext(ctx, "select 1").Scan(&n)
		if took := time.Since(began); i < 100 {
			usual += took / 100
		}
		if err != nil {
			cancelled++
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("round %d: %v (seed %d)", i, err, seed)
		}
		if err := db.QueryRowContext(context.Background(), "select 2").Scan(&n); err != nil || n != 2 {
			t.Fatalf("round %d: the neighbour got %d, %v (seed %d)", i, n, err, seed)
		}
		cancel()
	}
	within(t, 10*time.Second, "a connection is not back", func() bool { return db.Stats().Held == 0 && lim.Stats().InUse == 0 })
	figure(t, "cancels", "%d of %d hit, at up to twice the usual time (%v); 0 neighbours hit; %d waits in the pool",
		cancelled, rounds-100, usual, pool.Stats().WaitCount)
	if pool.Stats().WaitCount != 0 {
		t.Error("somebody waited in the queue of the pool")
	}
}

// The server ends every connection, as a restart does: no caller notices.
func TestSQLConnectionsAreEnded(t *testing.T) {
	db, _, _ := openSQL(t, 8, goodputsql.Config{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := db.ExecContext(context.Background(), "select pg_sleep(0.1)"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	database(t).Disconnect(t)
	for range 20 {
		var n int
		if err := db.QueryRowContext(context.Background(), "select 1").Scan(&n); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	}
}

// C148 on a real server: 5 of 10 backends stand still below jobs without a deadline.
func TestSQLFrozenBackends(t *testing.T) {
	const n, frozen = 10, 5
	db, _, lim := openSQL(t, n, goodputsql.Config{LongHold: 500 * time.Millisecond, MaxHold: time.Second})
	var jobs sync.WaitGroup
	for range frozen {
		jobs.Go(func() {
			_, err := db.ExecContext(context.Background(), "select pg_sleep(30)")
			if err == nil {
				t.Error("a statement of 30 s ended well")
			}
		})
	}
	within(t, 10*time.Second, "the jobs do not start", func() bool { return len(database(t).Backends(t)) == frozen })
	pids := database(t).Backends(t)
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it may be gone
		}
	}()
	within(t, 10*time.Second, "nothing was cut", func() bool { return db.Stats().Cut == frozen && lim.Stats().InUse == 0 })
	jobs.Wait()
	for range 3 * n {
		if _, err := db.ExecContext(context.Background(), "select 1"); err != nil {
			t.Error(err)
		}
	}
	st := db.Stats()
	figure(t, "frozen", "%d of %d reported, %d cut, %d overdue", st.Long, frozen, st.Cut, st.Overdue)
	if st.Long != frozen || st.Overdue != 0 || st.Held != 0 {
		t.Errorf("afterwards: %+v", st)
	}
}
