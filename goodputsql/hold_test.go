package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
)

// Settings out of their range, at both ends.
func TestConfigRanges(t *testing.T) {
	for _, c := range []struct {
		cfg  goodputsql.Config
		want string // "": it is valid
	}{
		{goodputsql.Config{}, ""},
		{goodputsql.Config{LongHold: time.Millisecond}, ""},
		{goodputsql.Config{LongHold: 24 * time.Hour}, ""},
		{goodputsql.Config{LongHold: time.Millisecond - 1}, "LongHold is 999.999µs, it must be 1ms to 24h0m0s"},
		{goodputsql.Config{LongHold: -1}, "LongHold is -1ns, it must be 1ms to 24h0m0s"},
		{goodputsql.Config{LongHold: 24*time.Hour + 1}, "LongHold is 24h0m0.000000001s, it must be 1ms to 24h0m0s"},
		{goodputsql.Config{MaxHold: 2 * time.Millisecond}, ""},
		{goodputsql.Config{MaxHold: 24 * time.Hour}, ""},
		{goodputsql.Config{MaxHold: 2*time.Millisecond - 1}, "MaxHold is 1.999999ms, it must be 2ms to 24h0m0s"},
		{goodputsql.Config{MaxHold: -1}, "MaxHold is -1ns, it must be 2ms to 24h0m0s"},
		{goodputsql.Config{MaxHold: 24*time.Hour + 1}, "MaxHold is 24h0m0.000000001s, it must be 2ms to 24h0m0s"},
		{goodputsql.Config{LongHold: time.Second, MaxHold: time.Second}, ""},
		{goodputsql.Config{LongHold: time.Second + 1, MaxHold: time.Second}, "LongHold 1.000000001s is more than MaxHold 1s"},
	} {
		_, err := c.cfg.New((&server{}).openPool(t), fixed(1))
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
	for _, c := range []struct {
		pool *sql.DB
		lim  *goodput.Limiter
	}{{nil, fixed(1)}, {(&server{}).openPool(t), nil}} {
		if _, err := goodputsql.New(c.pool, c.lim); err == nil || !strings.Contains(err.Error(), "is nil") {
			t.Errorf("nil: %v", err)
		}
	}
}

// A pool that would queue is refused: one connection less than the limit is too few.
func TestPoolThatWouldQueue(t *testing.T) {
	for most, ok := range map[int]bool{0: true, 19: false, 20: true, 21: true} {
		pool := (&server{}).openPool(t)
		pool.SetMaxOpenConns(most)
		_, err := goodputsql.New(pool, fixed(20))
		if (err == nil) != ok {
			t.Errorf("MaxOpenConns %d below a limit of 20: %v", most, err)
		}
	}
}

// The pool keeps as many connections as the limit allows, also when the limit moves: a
// burst does not dial again what the one before has dialled.
func TestIdleConnectionsFollowTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(10)
		db, pool := s.behind(t, lim, goodputsql.Config{LongHold: time.Second})
		for range 3 {
			fill(t, db, 10)
		}
		if s.dialled.Load() != 10 || pool.Stats().Idle != 10 {
			t.Errorf("3 bursts of 10 dialled %d times, %d are idle", s.dialled.Load(), pool.Stats().Idle)
		}
		if err := lim.SetLimit(4); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(context.Background(), "sleep 3s"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := pool.Stats().OpenConnections; n != 4 {
			t.Errorf("%d connections are open after the limit has fallen to 4", n)
		}
	})
}

// Each long holder is reported once, while it holds, and a short one never.
func TestLongHoldsAreReportedOnce(t *testing.T) {
	for _, longHold := range []time.Duration{time.Second, 0} { // 0: 10 s
		synctest.Test(t, func(t *testing.T) {
			want := longHold
			if want == 0 {
				want = 10 * time.Second
			}
			var mu sync.Mutex
			var seen []goodputsql.Hold
			s, lim := &server{}, fixed(8)
			db, pool := s.behind(t, lim, goodputsql.Config{LongHold: longHold, OnLongHold: func(h goodputsql.Hold) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, h)
			}})
			var all sync.WaitGroup
			kinds := map[goodputsql.Kind]func(context.Context) error{
				goodputsql.OfDo: func(ctx context.Context) error {
					return db.Do(ctx, func(context.Context, *sql.Conn) error { time.Sleep(5 * want); return nil })
				},
				goodputsql.OfTx: func(ctx context.Context) error {
					return db.Tx(ctx, nil, func(context.Context, *sql.Tx) error { time.Sleep(5 * want); return nil })
				},
				goodputsql.OfExec: func(ctx context.Context) error {
					_, err := db.ExecContext(ctx, "sleep "+(5*want).String())
					return err
				},
				goodputsql.OfRows: func(ctx context.Context) error {
					return db.QueryRowContext(ctx, "sleep "+(5*want).String()).Scan(new(int))
				},
				goodputsql.OfConn: func(ctx context.Context) error {
					conn, err := db.Conn(ctx)
					if err != nil {
						return err
					}
					time.Sleep(5 * want)
					return conn.Close()
				},
			}
			for _, hold := range kinds {
				time.Sleep(want / 10)
				all.Go(func() {
					if err := hold(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
			for range 100 { // and many that are short
				if _, err := db.ExecContext(context.Background(), "sleep "+(want/50).String()); err != nil {
					t.Error(err)
				}
			}
			all.Wait()
			synctest.Wait()
			empty(t, s, db, pool, lim)
			found := map[goodputsql.Kind]int{}
			for _, h := range seen {
				found[h.Kind]++
				if h.For < want || h.For > want+time.Millisecond || !strings.Contains(h.Site, "hold_test.go:") {
					t.Errorf("reported %+v, LongHold is %v", h, want)
				}
			}
			if len(found) != len(kinds) || len(seen) != len(kinds) || db.Stats().Long != uint64(len(kinds)) {
				t.Errorf("reports %v, counted %d: want one of each kind", found, db.Stats().Long)
			}
		})
	}
}

// MaxHold ends whoever holds, whatever it holds with, and a connection that runs nothing is
// closed.
func TestMaxHold(t *testing.T) {
	const most = 10 * time.Second
	held := func(ctx context.Context, for_ time.Duration) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(for_):
			return nil
		}
	}
	kinds := map[string]func(db *goodputsql.DB, for_ time.Duration) error{
		"Exec": func(db *goodputsql.DB, for_ time.Duration) error {
			_, err := db.ExecContext(context.Background(), "sleep "+for_.String())
			return err
		},
		"Query": func(db *goodputsql.DB, for_ time.Duration) error {
			rows, err := db.QueryContext(context.Background(), "rows 2")
			if err != nil {
				return err
			}
			rows.Next()
			time.Sleep(for_)
			rows.Next()
			return errors.Join(rows.Err(), rows.Close())
		},
		"Do": func(db *goodputsql.DB, for_ time.Duration) error {
			return db.Do(context.Background(), func(ctx context.Context, _ *sql.Conn) error { return held(ctx, for_) })
		},
		"Do that ignores its context": func(db *goodputsql.DB, for_ time.Duration) error {
			return db.Do(context.Background(), func(_ context.Context, conn *sql.Conn) error {
				time.Sleep(for_)
				return conn.PingContext(context.Background())
			})
		},
		"Tx": func(db *goodputsql.DB, for_ time.Duration) error {
			return db.Tx(context.Background(), nil, func(ctx context.Context, _ *sql.Tx) error { return held(ctx, for_) })
		},
		"BeginTx": func(db *goodputsql.DB, for_ time.Duration) error {
			tx, err := db.BeginTx(context.Background(), nil)
			if err != nil {
				return err
			}
			time.Sleep(for_)
			return tx.Commit()
		},
		"Conn": func(db *goodputsql.DB, for_ time.Duration) error {
			conn, err := db.Conn(context.Background())
			if err != nil {
				return err
			}
			time.Sleep(for_)
			return errors.Join(conn.PingContext(context.Background()), conn.Close())
		},
	}
	for name, call := range kinds {
		for _, maxHold := range []time.Duration{0, most} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, lim := &server{}, fixed(1)
					db, pool := s.behind(t, lim, goodputsql.Config{MaxHold: maxHold})
					if err := call(db, most-time.Second); err != nil {
						t.Errorf("below MaxHold: %v", err)
					}
					var late error
					done := make(chan struct{})
					go func() { defer close(done); late = call(db, 4*most) }()
					time.Sleep(most + 1100*time.Millisecond)
					synctest.Wait()
					if inUse := lim.Stats().InUse; (inUse == 0) != (maxHold > 0) {
						t.Errorf("%d slots in use with MaxHold %v", inUse, maxHold)
					}
					<-done
					if (late != nil) != (maxHold > 0) {
						t.Errorf("with MaxHold %v it ended with %v", maxHold, late)
					}
					synctest.Wait()
					empty(t, s, db, pool, lim)
					if cut := db.Stats().Cut; cut > 1 || (cut == 1) != (maxHold > 0) || db.Stats().Overdue != 0 {
						t.Errorf("with MaxHold %v: %+v", maxHold, db.Stats())
					}
				})
			})
		}
	}
}

// MaxHold comes while somebody dials: there is nothing to close yet.
func TestMaxHoldWhileDialling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(1)
		s.dials = func(n int) error {
			if n == 1 {
				time.Sleep(time.Minute) // and does not look at its context
			}
			return nil
		}
		db, pool := s.behind(t, lim, goodputsql.Config{MaxHold: 10 * time.Second})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := db.Conn(context.Background()); !errors.Is(err, context.Canceled) {
				t.Errorf("dialled for a minute: %v", err)
			}
		}()
		time.Sleep(12 * time.Second)
		if st := db.Stats(); st.Overdue != 1 || lim.Stats().InUse != 0 {
			t.Errorf("%+v, %d slots in use", st, lim.Stats().InUse)
		}
		if _, err := db.ExecContext(context.Background(), "ok"); err != nil {
			t.Error(err)
		}
		<-done
		empty(t, s, db, pool, lim)
	})
}
