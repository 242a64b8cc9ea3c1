package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

// patient returns a limiter of n slots for which nobody waits longer than a second.
func patient(n int) *goodput.Limiter {
	return goodput.New(goodput.Config{Limit: limit.Fixed(n), Objective: time.Minute, Depth: 1000, MaxWait: time.Second})
}

// C139: each request has a transaction and queries outside of it. All do so at once, and
// there are as many connections as requests.
func TestC139QueriesBesideATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10
		s, lim := &server{}, patient(n)
		db, pool := s.behind(t, lim, goodputsql.Config{})
		pool.SetMaxOpenConns(n)
		var begun, ended sync.WaitGroup
		var gaveUp atomic.Int64
		began := time.Now()
		begun.Add(n)
		for range n {
			ended.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Error(err)
				}
				defer tx.Rollback() //nolint:errcheck // it never commits
				begun.Done()
				begun.Wait()
				_, err = db.ExecContext(ctx, "ok")
				if err == nil { // others gave up before, and gave back what they had
					return
				}
				gaveUp.Add(1)
				named(t, err, goodputsql.OfTx, "cases_test.go:")
				if e := (*goodputsql.NestedError)(nil); errors.As(err, &e) && e.Oldest {
					t.Errorf("it is the same context: %v", err)
				}
				if !errors.Is(err, goodput.ErrRejected) {
					t.Errorf("the refusal is not in %v", err)
				}
			})
		}
		ended.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v, the bound is 1 s", took)
		}
		if gaveUp.Load() == 0 {
			t.Error("nobody gave up, so they were not all in each other's way")
		}
		synctest.Wait()
		empty(t, s, db, pool, lim)

		// In the function of Tx it is told at once, and in that of Do it rides.
		began = time.Now()
		err := db.Tx(context.Background(), nil, func(ctx context.Context, _ *sql.Tx) error {
			_, err := db.ExecContext(ctx, "ok")
			return err
		})
		named(t, err, goodputsql.OfTx, "cases_test.go:")
		err = db.Do(context.Background(), func(ctx context.Context, _ *sql.Conn) error {
			_, err := db.ExecContext(ctx, "ok")
			return err
		})
		if err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// named checks that err names both calls.
func named(t *testing.T, err error, kind goodputsql.Kind, file string) {
	t.Helper()
	var nested *goodputsql.NestedError
	if !errors.As(err, &nested) {
		t.Errorf("got %v, want a NestedError", err)
		return
	}
	if nested.Holder.Kind != kind || !strings.Contains(nested.Holder.Site, file) || !strings.Contains(nested.Site, file) || nested.Site == nested.Holder.Site {
		t.Errorf("holder %v at %s, nested at %s", nested.Holder.Kind, nested.Holder.Site, nested.Site)
	}
	if !strings.Contains(err.Error(), nested.Site) || !strings.Contains(err.Error(), nested.Holder.Site) {
		t.Errorf("%q does not have both places", err)
	}
}

// C141: two transactions in each of two requests need 2 x (2-1) + 1 connections.
func TestC141TwoTransactionsInEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parallel, each = 2, 2
		for _, slots := range []int{parallel * (each - 1), parallel*(each-1) + 1} {
			s, lim := &server{}, patient(slots)
			db, pool := s.behind(t, lim, goodputsql.Config{})
			var served atomic.Int64
			var begun, ended sync.WaitGroup
			begun.Add(parallel)
			for range parallel {
				ended.Go(func() {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					first, err := db.BeginTx(ctx, nil)
					if err != nil {
						t.Error(err)
					}
					defer first.Rollback() //nolint:errcheck // there is nothing to keep
					begun.Done()
					begun.Wait()
					second, err := db.BeginTx(ctx, nil)
					if err != nil {
						named(t, err, goodputsql.OfTx, "cases_test.go:")
						return
					}
					served.Add(1)
					second.Rollback() //nolint:errcheck // there is nothing to keep
				})
			}
			ended.Wait()
			if all := served.Load() == parallel; all != (slots == parallel*(each-1)+1) {
				t.Errorf("%d slots: %d of %d requests had their second transaction", slots, served.Load(), parallel)
			}
			synctest.Wait()
			empty(t, s, db, pool, lim)
		}
	})
}

// With one slot nested use shows at once, whatever its contexts are: this is how the tests
// of a service find it.
func TestOneSlotFindsNestedUse(t *testing.T) {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: goodput.NoQueue})
	s := &server{}
	db, pool := s.behind(t, lim, goodputsql.Config{})
	rows, err := db.QueryContext(context.Background(), "rows 3")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		_, err := db.ExecContext(t.Context(), "ok")
		named(t, err, goodputsql.OfRows, "cases_test.go:")
		var nested *goodputsql.NestedError
		if errors.As(err, &nested) && !nested.Oldest {
			t.Error("the contexts have nothing in common, and it says they do")
		}
	}
	empty(t, s, db, pool, lim)
}

// C139 with contexts that have nothing in common, as of calls that are given a timeout of
// their own: all ten hold a transaction and want a query. Each ends within its bound with
// the place of one that holds. A wait in which connections come back says no such thing.
func TestC139ContextsOfTheirOwn(t *testing.T) {
	for _, moves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const slots = 10
			s, lim := &server{}, goodput.New(goodput.Config{Limit: limit.Fixed(slots), Depth: 2 * slots, MaxWait: 200 * time.Millisecond, Service: time.Millisecond})
			db, pool := s.behind(t, lim, goodputsql.Config{})
			var begun, ended sync.WaitGroup
			begun.Add(slots)
			for i := range slots {
				ended.Go(func() {
					outer, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					tx, err := db.BeginTx(outer, nil)
					if err != nil {
						t.Error(err)
						return
					}
					defer tx.Rollback() //nolint:errcheck // there is nothing to keep
					begun.Done()
					begun.Wait()
					if moves && i == 0 {
						time.Sleep(50 * time.Millisecond)
						return // the others take turns on what it gives back
					}
					inner, stop := context.WithTimeout(outer, 500*time.Millisecond)
					defer stop()
					_, err = db.ExecContext(inner, "sleep 150ms")
					var nested *goodputsql.NestedError
					switch {
					case err == nil:
					case moves && errors.As(err, &nested):
						t.Errorf("connections came back while it waited: %v", err)
					case !moves && (!errors.As(err, &nested) || !nested.Oldest || nested.Holder.Kind != goodputsql.OfTx):
						t.Errorf("the error does not name a holder: %v", err)
					}
				})
			}
			ended.Wait()
			synctest.Wait()
			empty(t, s, db, pool, lim)
		})
	}
}

// A statement that runs is in nobody's way but as load is: a refusal beside it is just that.
func TestStatementsAreNoHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: goodput.NoQueue})
		s := &server{}
		db, pool := s.behind(t, lim, goodputsql.Config{})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := db.ExecContext(ctx, "sleep 1s"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		_, err := db.ExecContext(ctx, "ok")
		var nested *goodputsql.NestedError
		if !errors.Is(err, goodput.ErrRejected) || errors.As(err, &nested) {
			t.Errorf("beside a statement of the same request: %v", err)
		}
		all.Wait()
		empty(t, s, db, pool, lim)
	})
}

// C142: handlers that read a row and forget the rest. They end with their requests, and are
// reported while they hold.
func TestC142ForgottenRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(2)
		var reported []goodputsql.Hold
		var mu sync.Mutex
		db, pool := s.behind(t, lim, goodputsql.Config{LongHold: 300 * time.Millisecond, OnLongHold: func(h goodputsql.Hold) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, h)
		}})
		for range 20 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			rows, err := db.QueryContext(ctx, "rows 3")
			if err != nil {
				t.Fatal(err)
			}
			rows.Next()
			<-ctx.Done() // and never closes them
			cancel()
		}
		synctest.Wait()
		empty(t, s, db, pool, lim)
		if len(reported) != 20 || db.Stats().Long != 20 {
			t.Fatalf("%d reports of 20 forgotten rows, %d counted", len(reported), db.Stats().Long)
		}
		for _, h := range reported {
			if h.Kind != goodputsql.OfRows || !strings.Contains(h.Site, "cases_test.go:") || h.For < 300*time.Millisecond || h.For > time.Second {
				t.Errorf("reported %+v", h)
			}
		}
	})
}

// C144: one connection is busy for 10 s. Whoever gives up after 50 ms has waited 50 ms, was
// not executed, and costs the next nothing.
func TestC144WaitingHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		lim := goodput.New(goodput.Config{
			Limit: limit.Fixed(1), Objective: time.Minute, Depth: 1000,
			Service: time.Microsecond, // or all would be refused at the door, without waiting
		})
		db, pool := s.behind(t, lim, goodputsql.Config{})
		pool.SetMaxOpenConns(1)
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := db.ExecContext(context.Background(), "sleep 10s"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		began := time.Now()
		for range 100 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				defer cancel()
				_, err := db.ExecContext(ctx, "fail")
				var r *goodput.Rejection
				if !errors.As(err, &r) || r.Outcome != goodput.Expired {
					t.Errorf("got %v, want a refusal: it was not executed", err)
				}
				// A little earlier it is doomed: a query could not end in time.
				if waited := time.Since(began); waited > 50*time.Millisecond || waited < 49*time.Millisecond {
					t.Errorf("it was told after %v", waited)
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if lim.Stats().Waiting != 0 {
			t.Errorf("%d still wait after their deadline", lim.Stats().Waiting)
		}
		all.Wait()
		if _, err := db.ExecContext(context.Background(), "ok"); err != nil {
			t.Errorf("the next query: %v", err)
		}
		st := lim.Stats()
		if st.Outcomes[goodput.Expired] != 100 || st.Outcomes[goodput.Failed] != 0 {
			t.Errorf("counted %v", st.Outcomes)
		}
		empty(t, s, db, pool, lim)
	})
}

// C148: the server side of 5 of 10 connections stands still for ever, below jobs that have no
// deadline. The rest goes on, it shows, and MaxHold gets the slots back.
func TestC148FrozenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, frozen = 10, 5
		s, lim := &server{thaw: make(chan struct{})}, fixed(slots)
		db, pool := s.behind(t, lim, goodputsql.Config{LongHold: time.Second, MaxHold: 10 * time.Second})
		var jobs sync.WaitGroup
		for range frozen {
			jobs.Go(func() { db.ExecContext(context.Background(), "freeze") }) //nolint:errcheck // it never ends
		}
		time.Sleep(5 * time.Second)
		work := func() {
			t.Helper()
			for range 100 {
				if _, err := db.ExecContext(context.Background(), "sleep 1ms"); err != nil {
					t.Error(err)
				}
			}
		}
		work()
		st := db.Stats()
		if st.Held != frozen || st.Longest.For < 5*time.Second || st.Long != frozen || st.Cut != 0 {
			t.Errorf("before MaxHold: %+v", st)
		}
		time.Sleep(6 * time.Second) // MaxHold, and a second for the driver
		synctest.Wait()
		if st = db.Stats(); st.Cut != frozen || st.Overdue != frozen || lim.Stats().InUse != 0 {
			t.Errorf("after MaxHold: %+v, %d slots in use", st, lim.Stats().InUse)
		}
		work()
		close(s.thaw)
		jobs.Wait()
		synctest.Wait()
		if st = db.Stats(); st.Overdue != 0 || st.Held != 0 {
			t.Errorf("after all: %+v", st)
		}
		empty(t, s, db, pool, lim)
	})
}

// C149: a pool that is busy for 30 s is not dead.
func TestC149HealthCheckOfABusyPool(t *testing.T) {
	for _, room := range []int{0, 3, 2} { // MaxOpenConns: none, one for the check, none for it
		synctest.Test(t, func(t *testing.T) {
			s, lim := &server{}, fixed(2)
			db, pool := s.behind(t, lim, goodputsql.Config{})
			pool.SetMaxOpenConns(room)
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					for range 60 {
						if _, err := db.ExecContext(context.Background(), "sleep 500ms"); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Microsecond)
					}
				})
			}
			for range 28 {
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				began := time.Now()
				if err := db.PingContext(ctx); err != nil {
					t.Errorf("MaxOpenConns %d: the check says %v", room, err)
				}
				if took := time.Since(began); room != 2 && took != 0 {
					t.Errorf("MaxOpenConns %d: the check took %v", room, took)
				}
				cancel()
			}
			all.Wait()
			if s.most.Load() > 3 {
				t.Errorf("the database saw %d connections, the limit is 2 and one is for checks", s.most.Load())
			}
			empty(t, s, db, pool, lim)
		})
	}
}
