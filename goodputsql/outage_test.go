package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

// A database that went away behind connections that are idle: whoever finds them stale dials,
// and that keeps nobody else past his deadline, and is counted.
func TestOutageBehindIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 20
		s, lim := &server{}, fixed(slots)
		var dead atomic.Bool
		s.hangs = dead.Load
		db, pool := s.behind(t, lim, goodputsql.Config{})
		fill(t, db, slots)
		dead.Store(true)
		s.unreset.Store(true)
		call := func(within time.Duration) time.Duration {
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			if _, err := db.ExecContext(ctx, "ok"); err == nil {
				t.Error("served by a database that is dead")
			}
			return time.Since(began)
		}
		call(100 * time.Millisecond)
		if st := db.Stats(); st.DialFailures != 1 {
			t.Errorf("a dial that hung counts as %d failures", st.DialFailures)
		}
		var all sync.WaitGroup
		all.Go(func() { call(5 * time.Second) }) // its dial hangs for long
		synctest.Wait()
		dialled := s.dialled.Load()
		for range 100 {
			if took := call(50 * time.Millisecond); took > 50*time.Millisecond {
				t.Errorf("who had 50 ms heard after %v", took)
			}
			db.Stats()
		}
		// Two stale connections and then a dial for each caller; and those between pauses, 8
		// until they are as long as they get, and then one in 2.5 s of the 5 s at most.
		if n := s.dialled.Load() - dialled; n > slots/2+8+2+6 {
			t.Errorf("%d dials in an outage", n)
		}
		all.Wait()
		empty(t, s, db, pool, lim)
	})
}

// Callers with deadlines below a first pause, whose dials hang: they add up to a failure.
func TestShortDeadlinesInAnOutage(t *testing.T) {
	for _, within := range []time.Duration{2 * time.Millisecond, 15 * time.Millisecond} {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			s, lim := &server{}, fixed(20)
			dead := true
			db, pool := s.behind(t, lim, goodputsql.Config{})
			s.hangs = func() bool { return dead }
			call := func(within time.Duration) error {
				ctx, cancel := context.WithTimeout(context.Background(), within)
				defer cancel()
				_, err := db.ExecContext(ctx, "ok")
				return err
			}
			var all sync.WaitGroup
			began := time.Now()
			for range 50 {
				first := time.Duration(rnd.Int64N(int64(20 * time.Millisecond)))
				all.Go(func() {
					for time.Sleep(first); time.Since(began) < 30*time.Second; time.Sleep(10 * time.Millisecond) {
						if call(within) == nil {
							t.Error("served by a database that is dead")
						}
					}
				})
			}
			all.Wait()
			// A failure takes 20 ms of dials: the first so many waves on 20 slots. After that it
			// is one at a time, with a pause after each, and who waited for one has half of his
			// time left. As in TestOutage the pauses are as long as they get after 8 failures,
			// and 30 s / 2.5 s = 12 more fit, with a deviation of 2.
			waves := int64(20*time.Millisecond/within) + 1
			if n := s.dialled.Load(); n > 20*waves+8*2*waves+12+3*2 {
				t.Errorf("%d dials in 30 s, for deadlines of %v (seed %d)", n, within, seed)
			}
			if st := db.Stats(); st.DialFailures < 5 {
				t.Errorf("deadlines of %v: %d failures for %d dials (seed %d)", within, st.DialFailures, s.dialled.Load(), seed)
			}
			dead = false
			time.Sleep(5 * time.Second)
			if err := call(time.Second); err != nil {
				t.Errorf("5 s after it is back: %v", err)
			}
			empty(t, s, db, pool, lim)
		})
	}
}

// A crowd that leaves together after a moment has tried for a moment; and a dial that
// succeeds in between, or a long time, begins the count anew.
func TestLeavingEarlyIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(31)
		hang := true
		s.hangs = func() bool { return hang }
		db, pool := s.behind(t, lim, goodputsql.Config{})
		crowd := func() {
			var all sync.WaitGroup
			for range 30 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 15*time.Millisecond)
					defer cancel()
					if _, err := db.ExecContext(ctx, "ok"); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if st := db.Stats(); st.DialFailures != 0 {
				t.Fatalf("%d failures", st.DialFailures)
			}
		}
		crowd()
		time.Sleep(6 * time.Second)
		crowd()
		hang = false
		hold, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		hang = true
		crowd()
		hold.Close() //nolint:errcheck // it is back
		empty(t, s, db, pool, lim)
	})
}

// A pool that is busy is not a database that is away: whose deadline ends in the queue of the
// pool, where the limiter lets that be, has not dialled.
func TestBusyIsNotAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(2), Observe: true})
		db, pool := s.behind(t, lim, goodputsql.Config{})
		pool.SetMaxOpenConns(2)
		began := time.Now()
		var all sync.WaitGroup
		for w := range 8 {
			within := 40 * time.Millisecond
			if w%2 == 0 {
				within = 5 * time.Second
			}
			all.Go(func() {
				for time.Since(began) < 5*time.Second {
					ctx, cancel := context.WithTimeout(context.Background(), within)
					_, err := db.ExecContext(ctx, "sleep 250ms")
					if err != nil && err != context.DeadlineExceeded { //nolint:errorlint // and nothing of dials
						t.Error(err)
					}
					cancel()
				}
			})
		}
		all.Wait()
		if st := db.Stats(); st.DialFailures != 0 || st.Queued == 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A failure is over when idle connections have served for as long as its pause: nobody needs
// the dial that would show it.
func TestTroubleEndsWithoutADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(2)
		s.dials = func(n int) error {
			if n > 1 {
				return errDial
			}
			return nil
		}
		db, pool := s.behind(t, lim, goodputsql.Config{})
		if err := db.Do(context.Background(), func(context.Context, *sql.Conn) error {
			db.ExecContext(context.Background(), "ok") //nolint:errcheck // it cannot be had
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		was := db.Stats()
		if was.DialFailures == 0 {
			t.Fatal("no failure, so this shows nothing")
		}
		dialled := s.dialled.Load()
		for began := time.Now(); time.Since(began) < 2*5*time.Second; time.Sleep(10 * time.Millisecond) {
			if _, err := db.ExecContext(context.Background(), "ok"); err != nil {
				t.Error(err)
			}
			if n := db.Stats().DialFailures; n == 0 && time.Since(was.NextDial) < time.Millisecond {
				t.Error("forgotten before it was time to dial again")
			}
		}
		if st := db.Stats(); st.DialFailures != 0 || s.dialled.Load() != dialled {
			t.Errorf("%+v after 10 s of good statements, %d dials", st, s.dialled.Load()-dialled)
		}
		empty(t, s, db, pool, lim)
	})
}

// With health checks and connections that are thrown away, of both, which take their time to
// close, the database sees one connection more than the limit, and no two. It is no test
// of a bubble: database/sql closes under a lock, and while somebody waits for a lock the
// clock of a bubble stands still. A run in which the machine was late by a fifth of what is
// waited for a close shows nothing and is not judged.
func TestOneMoreWithHealthChecks(t *testing.T) {
	for _, bare := range []bool{true, false} {
		seed := rand.Uint64()
		const slots = 3
		s, lim := &server{bare: bare}, fixed(slots)
		s.closes = func() { time.Sleep(2 * time.Millisecond) } // wall clock: see above
		db, pool := s.behind(t, lim, goodputsql.Config{})
		began := time.Now()
		over := func() bool { return time.Since(began) > 300*time.Millisecond }
		var all sync.WaitGroup
		var late atomic.Int64
		all.Go(func() {
			for !over() {
				before := time.Now()
				time.Sleep(time.Millisecond) // wall clock: how late the machine is
				late.Store(max(late.Load(), int64(time.Since(before)-time.Millisecond)))
			}
		})
		for w := range 15 {
			rnd := rand.New(rand.NewPCG(seed, uint64(w)))
			all.Go(func() {
				for !over() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rnd.IntN(2000))*time.Microsecond)
					switch {
					case w < 3:
						db.PingContext(ctx) //nolint:errcheck // this is about connections
					case w < 9:
						if tx, err := db.BeginTx(ctx, nil); err == nil {
							tx.ExecContext(ctx, "sleep 1ms") //nolint:errcheck // as above
							tx.Rollback()                    //nolint:errcheck // as above
						}
					default:
						db.ExecContext(ctx, [...]string{"bad", "sleep 1ms"}[rnd.IntN(2)]) //nolint:errcheck // as above
					}
					cancel()
				}
			})
		}
		all.Wait()
		until(t, func() bool { return pool.Stats().InUse == 0 && db.Stats().Held == 0 && lim.Stats().InUse == 0 })
		t.Logf("%d dials, %d connections at once, the machine %v late at most", s.dialled.Load(), s.most.Load(), time.Duration(late.Load()))
		if time.Duration(late.Load()) > 10*time.Millisecond {
			continue
		}
		if n := s.most.Load(); n > slots+1 {
			t.Errorf("%d connections at once, the limit is %d (seed %d)", n, slots, seed)
		}
		if s.dialled.Load() < 50 {
			t.Errorf("%d dials: this shows nothing", s.dialled.Load())
		}
		empty(t, s, db, pool, lim)
	}
}
