package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

// many is n, or a million with GOODPUT_MILLION=1.
func many(n int) int {
	if os.Getenv("GOODPUT_MILLION") != "" {
		return 1_000_000
	}
	return n
}

// Cancels, panics, early closes, half-read and forgotten rows, bad connections, all at once:
// the database never sees more than the limit, the pool never queues, and nothing is left.
func TestNothingIsLeft(t *testing.T) {
	const slots, workers = 8, 32
	for name, bare := range map[string]bool{"resets": false, "bare": true} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			before := runtime.NumGoroutine()
			s := &server{bare: bare, sets: 1}
			lim := goodput.New(goodput.Config{Limit: limit.Fixed(slots), Depth: 1000, Objective: time.Second})
			pool := sql.OpenDB(s)
			db, err := goodputsql.New(pool, lim)
			if err != nil {
				t.Fatal(err)
			}
			var calls atomic.Int64
			var all sync.WaitGroup
			calls.Store(int64(many(20_000) / 2))
			for w := range workers {
				all.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, uint64(w)))
					for calls.Add(-1) >= 0 {
						mistreat(t, db, rnd)
					}
				})
			}
			all.Wait()
			until(t, func() bool { return db.Stats().Held == 0 && lim.Stats().InUse == 0 })
			empty(t, s, db, pool, lim)
			if s.most.Load() > slots || s.mostBusy.Load() > slots || s.open.Load() > slots {
				t.Errorf("the database saw %d connections and %d statements at once, and has %d now, the limit is %d (seed %d)",
					s.most.Load(), s.mostBusy.Load(), s.open.Load(), slots, seed)
			}
			st := lim.Stats()
			var ended uint64
			for _, n := range st.Outcomes {
				ended += n
			}
			if ended != st.Arrivals {
				t.Errorf("%d arrivals and %d ends: %v", st.Arrivals, ended, st.Outcomes)
			}
			for _, o := range []goodput.Outcome{goodput.Completed, goodput.Failed, goodput.Abandoned, goodput.Cancelled} {
				if st.Outcomes[o] == 0 {
					t.Errorf("none of %d calls was %v: this stresses less than it says", st.Arrivals, o)
				}
			}
			pool.Close() //nolint:errcheck // its connections are counted
			until(t, func() bool { return s.open.Load() == 0 && runtime.NumGoroutine() <= before })
			t.Logf("%d calls, %d dials, ended %v", st.Arrivals, s.dialled.Load(), st.Outcomes)
		})
	}
}

// mistreat makes a call and ends it badly.
func mistreat(t *testing.T, db *goodputsql.DB, rnd *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch rnd.IntN(4) {
	case 0: // somebody leaves, at any time
		go func() {
			for range rand.IntN(50) {
				runtime.Gosched()
			}
			cancel()
		}()
	case 1:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.IntN(200))*time.Microsecond)
		defer cancel()
	case 2:
		if rnd.IntN(100) == 0 {
			cancel()
		}
	}
	query := [...]string{"ok", "rows 0", "rows 3", "rows 3", "sleep 20us", "fail", "bad"}[rnd.IntN(7)]
	switch rnd.IntN(7) {
	case 0:
		db.ExecContext(ctx, query) //nolint:errcheck // this is about what is left
	case 1:
		db.QueryRowContext(ctx, query).Scan(new(int)) //nolint:errcheck // as above
	case 2, 3:
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			return
		}
		for range rnd.IntN(4) {
			rows.Next()
			rows.Scan(new(int)) //nolint:errcheck // as above
		}
		if rnd.IntN(2) == 0 {
			rows.Close() //nolint:errcheck // else the end of the context does
		}
	case 4:
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return
		}
		tx.QueryContext(ctx, query) //nolint:errcheck,sqlclosecheck,rowserrcheck // and forgets them
		switch rnd.IntN(3) {
		case 0:
			tx.Commit() //nolint:errcheck // as above
		case 1:
			tx.Rollback() //nolint:errcheck // as above
		}
	default:
		unwound(t, func() { within(ctx, db, query, rnd) })
	}
}

// within does it in the function of Do or Tx.
func within(ctx context.Context, db *goodputsql.DB, query string, rnd *rand.Rand) {
	end := func() error {
		switch rnd.IntN(3) {
		case 0:
			panic(errOwn)
		case 1:
			return errOwn
		}
		return nil
	}
	if rnd.IntN(2) == 0 {
		db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error { //nolint:errcheck // as above
			tx.QueryContext(ctx, query) //nolint:errcheck,sqlclosecheck,rowserrcheck // and forgets them
			return end()
		})
		return
	}
	db.Do(ctx, func(ctx context.Context, _ *sql.Conn) error { //nolint:errcheck // as above
		db.QueryContext(ctx, query) //nolint:errcheck,sqlclosecheck,rowserrcheck // rides, and forgets them
		return end()
	})
}

// unwound calls fn, which may panic with errOwn.
func unwound(t *testing.T, fn func()) {
	defer func() {
		if r := recover(); r != nil && r != errOwn {
			t.Errorf("panic %v", r)
			panic(r)
		}
	}()
	fn()
}

// C146: a cancel that comes when the work is done hits neither the next statement on the
// connection nor anything else.
func TestC146CancelAtCompletion(t *testing.T) {
	rounds := 50_000 // twice
	if underRace && os.Getenv("GOODPUT_MILLION") == "" {
		rounds = 5_000
	}
	for _, racing := range []bool{false, true} { // in the last call of the driver; from elsewhere at that moment
		s, lim := &server{}, fixed(1)
		db, pool := s.behind(t, lim, goodputsql.Config{})
		var cancelNow atomic.Pointer[context.CancelFunc]
		cancels := make(chan context.CancelFunc, 1)
		s.ends = func() {
			if c := cancelNow.Swap(nil); c != nil && racing {
				cancels <- *c
			} else if c != nil {
				(*c)()
			}
		}
		go func() {
			for c := range cancels {
				c()
			}
		}()
		for i := range rounds {
			ctx, cancel := context.WithCancel(context.Background())
			cancelNow.Store(&cancel)
			var err error
			switch i % 3 {
			case 0:
				_, err = db.ExecContext(ctx, "ok")
			case 1:
				err = read(db.QueryContext(ctx, "rows 1"))
			case 2:
				err = db.Do(ctx, func(ctx context.Context, conn *sql.Conn) error {
					_, err := conn.ExecContext(ctx, "ok")
					return err
				})
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			var n int
			if err := db.QueryRowContext(context.Background(), "rows 1").Scan(&n); err != nil {
				t.Fatalf("round %d: the neighbour: %v", i, err)
			}
		}
		close(cancels)
		until(t, func() bool { return db.Stats().Held == 0 && lim.Stats().InUse == 0 })
		empty(t, s, db, pool, lim)
		if s.mostBusy.Load() > 1 || s.most.Load() > 1 {
			t.Errorf("%d statements and %d connections at once, the limit is 1", s.mostBusy.Load(), s.most.Load())
		}
	}
}

// What was given back leaves nothing in a context that goes on. In one that is not of the
// standard library a hook has a goroutine, so that what is left can be counted.
func TestHooksAreTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 50
		s, lim := &server{}, fixed(1)
		db, pool := s.behind(t, lim, goodputsql.Config{})
		ctx := &endless{Context: context.Background(), done: make(chan struct{})}
		work := func() {
			if err := read(db.QueryContext(ctx, "rows 1")); err != nil {
				t.Fatal(err)
			}
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		work() // the goroutines of the pool
		before := runtime.NumGoroutine()
		for range each {
			work()
		}
		if left := runtime.NumGoroutine() - before; left > each/2 { // a few are anybody's
			t.Errorf("%d goroutines are left of %d rows and transactions", left, 2*each)
		}
		close(ctx.done)
		empty(t, s, db, pool, lim)
	})
}

// endless is a context of somebody's own that could end.
type endless struct {
	context.Context
	done chan struct{}
}

func (e *endless) Done() <-chan struct{} { return e.done }

// What was given back is not touched by an end that comes later, whoever asks for it: the
// slot and the connection are those of another by then.
func TestEndsAreOfTheirOwnHold(t *testing.T) {
	for how, end := range map[string]func(*goodputsql.Rows) error{
		"close": func(rows *goodputsql.Rows) error { return rows.Close() },
		"read":  func(rows *goodputsql.Rows) error { return read(rows, nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var saw context.Context
			s, lim := &server{queries: func(ctx context.Context) { saw = ctx }}, fixed(1)
			db, pool := s.behind(t, lim, goodputsql.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			rows, err := db.QueryContext(ctx, "rows 1")
			if err != nil {
				t.Fatal(err)
			}
			old := saw
			if err := end(rows); err != nil {
				t.Fatal(err)
			}
			next, err := db.QueryContext(t.Context(), "rows 3")
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			if old.Err() == nil {
				t.Errorf("%s: the context of the rows does not end", how)
			}
			synctest.Wait()
			n := 0
			for ; next.Next(); n++ {
				if lim.Stats().InUse != 1 || db.Stats().Held != 1 {
					t.Errorf("%s: %d slots in use, %d held, while rows are read", how, lim.Stats().InUse, db.Stats().Held)
				}
			}
			if n != 3 || next.Err() != nil {
				t.Errorf("%s: %d rows, %v", how, n, next.Err())
			}
			empty(t, s, db, pool, lim)
		})
	}
}

// A context that ends while the driver is about to return rows, and was asked for its error
// then, ends them: nobody may ask again.
func TestEndBeforeTheRowsAreThere(t *testing.T) {
	var cancel context.CancelFunc
	s, lim := &server{queries: func(ctx context.Context) {
		cancel()
		if ctx.Err() == nil {
			t.Error("it has not ended")
		}
	}}, fixed(1)
	db, pool := s.behind(t, lim, goodputsql.Config{})
	for range many(2000) {
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		rows, err := db.QueryContext(ctx, "rows 1") // and nobody closes them
		if err == nil {
			until(t, func() bool { return lim.Stats().InUse == 0 })
			if rows.Next() {
				t.Error("a row after the end")
			}
		}
		cancel()
	}
	empty(t, s, db, pool, lim)
}
