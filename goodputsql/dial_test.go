package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
)

var errDial = errors.New("connection refused")

// C150: dialling fails half of the time, for 500 callers at once. Nobody dials without
// pause, and as soon as there are connections all are served.
func TestC150HalfOfTheDialsFail(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		const callers, slots = 500, 20
		rnd := rand.New(rand.NewPCG(seed, 0))
		var mu sync.Mutex
		s, lim := &server{}, fixed(slots)
		s.dials = func(int) error {
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if rnd.IntN(2) == 0 {
				return errDial
			}
			return nil
		}
		db, pool := s.behind(t, lim, goodputsql.Config{})
		var served, failed atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				_, err := db.ExecContext(context.Background(), "sleep 10ms")
				switch {
				case err == nil:
					served.Add(1)
				case errors.Is(err, errDial):
					failed.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		t.Logf("%d served, %d failed, %d dials for %d connections", served.Load(), failed.Load(), s.dialled.Load(), s.open.Load())
		// Each slot may have dialled once before the first failure was known. After that it
		// is one at a time, and with an even chance 64 in a row for one connection do not
		// happen (2^-64).
		if n := s.dialled.Load(); n > slots+64 {
			t.Errorf("%d dials for %d callers and %d slots (seed %d)", n, callers, slots, seed)
		}
		// Who failed has dialled, unless there was no connection at all after failures in a
		// row, or others had what came back for 100 ms: with 5 connections and 15 who wait
		// that is 50 chances of 1 in 15, which 3 % miss.
		if s.open.Load() >= 5 && served.Load() < callers-s.dialled.Load()-callers/10 {
			t.Errorf("%d of %d were served, %d dialled (seed %d)", served.Load(), callers, s.dialled.Load(), seed)
		}
		empty(t, s, db, pool, lim)
	})
}

// C150 with a database that does not answer at all, as behind a firewall that drops packets:
// each dial ends with the deadline of its caller, and that is a failure as well.
func TestC150DialsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(20)
		var dead atomic.Bool
		dead.Store(true)
		s.dials = func(int) error {
			if dead.Load() {
				time.Sleep(100 * time.Millisecond)
				return context.DeadlineExceeded // as net.Dialer says it
			}
			return nil
		}
		db, pool := s.behind(t, lim, goodputsql.Config{})
		call := func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 99*time.Millisecond)
			defer cancel()
			_, err := db.ExecContext(ctx, "ok")
			return err
		}
		for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(10 * time.Millisecond) {
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if call() == nil {
						t.Error("served by a database that is dead")
					}
				})
			}
			all.Wait()
		}
		// As in TestOutage: 20 together, 8 until the pauses are as long as they get, 30 s /
		// 2.5 s = 12 more with a deviation of 2.
		if n := s.dialled.Load(); n > 20+8+12+3*2 {
			t.Errorf("%d dials in 30 s", n)
		}
		if st := db.Stats(); st.DialFailures < 5 {
			t.Errorf("%d dials have failed, by Stats %d", s.dialled.Load(), st.DialFailures)
		}
		dead.Store(false)
		time.Sleep(5 * time.Second)
		if err := call(); err != nil {
			t.Errorf("5 s after it is back: %v", err)
		}
		empty(t, s, db, pool, lim)
	})
}

// A database that is away for a minute is asked a few times, however many want it; they are
// told at once; and it is noticed soon when it is back.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		s, lim := &server{}, fixed(20)
		s.dials = func(int) error {
			if away.Load() {
				return errDial
			}
			return nil
		}
		db, pool := s.behind(t, lim, goodputsql.Config{})
		began := time.Now()
		call := func() error { _, err := db.ExecContext(context.Background(), "ok"); return err }
		for time.Since(began) < time.Minute {
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					asked := time.Now()
					err := call()
					// 50 callers have 20 slots in turn, three times, each for 100 ms at most.
					if !errors.Is(err, errDial) || time.Since(asked) > 300*time.Millisecond {
						t.Errorf("%v after %v", err, time.Since(asked))
					}
				})
			}
			all.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		// The pauses have means of 10, 20, 40 ms ... 2.5 s: 8 until they are as long as
		// they get, and 60 s / 2.5 s = 24 more, with a deviation of sqrt(24/3) = 3. The
		// first 20 dialled together.
		if n := s.dialled.Load(); n > 20+8+24+6*3 {
			t.Errorf("%d dials in a minute of outage", n)
		}
		var told *goodputsql.DialError
		until(t, func() bool { return errors.As(call(), &told) })
		if !told.Since.Equal(began) || told.Failures < 5 || !told.Next.After(time.Now()) || told.Next.After(time.Now().Add(5*time.Second)) {
			t.Errorf("told %+v", told)
		}
		for _, part := range []string{told.Since.Format(time.RFC3339), "attempt", "the next attempt is at", errDial.Error()} {
			if !strings.Contains(told.Error(), part) {
				t.Errorf("%q does not say %q", told, part)
			}
		}
		if st := db.Stats(); st.DialFailures != told.Failures || !errors.Is(st.DialError, errDial) || !st.NextDial.Equal(told.Next) || !st.DialsSince.Equal(told.Since) {
			t.Errorf("Stats say %+v, the error %+v", st, told)
		}
		away.Store(false)
		time.Sleep(5 * time.Second)
		if err := call(); err != nil {
			t.Errorf("5 s after it is back: %v", err)
		}
		if st := db.Stats(); st.DialFailures != 0 {
			t.Errorf("all is well, and Stats say %+v", st)
		}
		empty(t, s, db, pool, lim)
	})
}

// Connections that are there serve, whatever becomes of new ones.
func TestIdleConnectionsServeInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(3)
		s.dials = func(n int) error {
			if n > 2 {
				return errDial
			}
			return nil
		}
		db, pool := s.behind(t, lim, goodputsql.Config{})
		fill(t, db, 2)
		one, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		two, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := db.ExecContext(context.Background(), "ok"); !errors.Is(err, errDial) {
				t.Errorf("got %v, there is no third connection", err)
			}
		}
		two.Close() //nolint:errcheck // it is back
		for range 100 {
			if _, err := db.ExecContext(context.Background(), "ok"); err != nil {
				t.Error(err)
			}
		}
		one.Close() //nolint:errcheck // it is back
		empty(t, s, db, pool, lim)
	})
}

// Attempts that fail at the same time are one failure: they say the same.
func TestFailuresAtTheSameTimeAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(20)
		s.dials = func(int) error { time.Sleep(time.Millisecond); return errDial }
		db, pool := s.behind(t, lim, goodputsql.Config{})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := db.ExecContext(context.Background(), "ok"); !errors.Is(err, errDial) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if st := db.Stats(); st.DialFailures != 1 || s.dialled.Load() != 20 {
			t.Errorf("%d dials at the same time count as %d failures", s.dialled.Load(), st.DialFailures)
		}
		empty(t, s, db, pool, lim)
	})
}

// Where there are fewer connections than slots and no more to be had, who waits for one gets
// it before whoever comes later, however busy those are.
func TestWhoWaitsForAConnectionIsNext(t *testing.T) {
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
			db.ExecContext(context.Background(), "ok") //nolint:errcheck // it cannot be had: now that is known
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var busy, other atomic.Int64
		stop := make(chan struct{})
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := db.ExecContext(context.Background(), "sleep 10ms"); err != nil {
					t.Error(err)
				}
				busy.Add(1)
			}
		})
		for range 20 {
			time.Sleep(time.Millisecond)
			began := time.Now()
			if _, err := db.ExecContext(context.Background(), "ok"); err != nil {
				t.Errorf("after %v: %v", time.Since(began), err)
				continue
			}
			other.Add(1)
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("it waited %v for a statement of 10 ms to end", took)
			}
		}
		close(stop)
		all.Wait()
		t.Logf("%d and %d", busy.Load(), other.Load())
		empty(t, s, db, pool, lim)
	})
}

// A caller that leaves while it dials is no failure of the database.
func TestACancelledDialIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(1)
		s.dials = func(int) error { time.Sleep(time.Second); return nil }
		db, pool := s.behind(t, lim, goodputsql.Config{})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(10*time.Millisecond, cancel)
		if _, err := db.ExecContext(ctx, "ok"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if st := db.Stats(); st.DialFailures != 0 || lim.Stats().Outcomes[goodput.Abandoned] != 1 {
			t.Errorf("%+v, counted %v", st, lim.Stats().Outcomes)
		}
		empty(t, s, db, pool, lim)
	})
}
