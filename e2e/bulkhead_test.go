//go:build linux

package e2e

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/e2e/internal/openloop"
	"github.com/goodput/goodput/e2e/internal/rig"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

// A door is the law of a front door that looks for contention, as adaptive laws do: when
// requests take more than three times what they did at first, fewer may run. It is crude
// on purpose: what counts is what it is told.
type door struct {
	blind bool // it looks at all of the time, and not at its own part
}

const doorStart = 256

func (door) Start() (int, error) { return doorStart, nil }

func (d door) Begin(uint64) limit.State { return d }

func (door) Why() string { return "" }

func (d door) Next(current int, w *limit.Window) limit.Move {
	return limit.Move{Limit: d.next(current, w)}
}

func (d door) next(current int, w *limit.Window) int {
	took := w.Own
	if d.blind {
		took = w.Mean
	}
	switch {
	case w.Samples == 0:
		return current
	case took > 3*pageTakes:
		return max(current*7/10, 4)
	}
	return min(current+4, doorStart)
}

// pageTakes is what the other endpoint does, which needs no database.
const (
	pageTakes = 10 * time.Millisecond
	pageRate  = 100.0 // per second
)

// bulkhead is a service with two endpoints behind one front door: /work sleeps in the
// database, behind a limiter of its own, and /page does not use it.
type bulkhead struct {
	front, inner   *goodput.Limiter
	failed, served atomic.Int64
	url            string
}

// work runs a statement in a slot of inner, within 20 connections.
type work func(ctx context.Context, inner *goodput.Limiter) error

func serveBulkhead(t *testing.T, law limit.Law, query work) *bulkhead {
	t.Helper()
	b := &bulkhead{
		front: goodput.New(goodput.Config{Name: "front", Limit: law, Objective: objective}),
		inner: goodput.New(goodput.Config{Name: "database", Limit: limit.Fixed(slots), Objective: objective}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /work", func(w http.ResponseWriter, r *http.Request) {
		err := query(r.Context(), b.inner)
		switch {
		case err == nil:
			b.served.Add(1)
			io.WriteString(w, "done\n") //nolint:errcheck // whoever asked has left
		case errors.Is(err, goodput.ErrRejected):
			goodputhttp.ProxyError(w, r, err)
		default:
			if r.Context().Err() == nil {
				b.failed.Add(1)
				t.Log(err)
			}
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(pageTakes)
		io.WriteString(w, "page\n") //nolint:errcheck // whoever asked has left
	})
	s := httptest.NewServer(&goodputhttp.Server{
		Limiter: func(*http.Request) *goodput.Limiter { return b.front },
		Next:    mux,
	})
	t.Cleanup(s.Close)
	b.url = s.URL
	return b
}

// refusals is how many were not admitted.
func refusals(lim *goodput.Limiter) int {
	o := lim.Stats().Outcomes
	return int(o[goodput.Rejected] + o[goodput.Expired])
}

// overSQL is goodputsql, overPgx pgxpool behind the bare limiter.
func overSQL(t *testing.T, db *rig.Database) work {
	cfg, err := pgx.ParseConfig(db.DSN())
	if err != nil {
		t.Fatal(err)
	}
	pool := stdlib.OpenDB(*cfg)
	t.Cleanup(func() {
		if n := pool.Stats().WaitCount; n != 0 {
			t.Errorf("%d callers waited in the queue of database/sql", n)
		}
		pool.Close() //nolint:errcheck // the server notices
	})
	// MaxOpenConns is not set: a 21st connection would be an error of PostgreSQL.
	var once sync.Once
	var own *goodputsql.DB
	return func(ctx context.Context, inner *goodput.Limiter) error {
		once.Do(func() { own, err = goodputsql.New(pool, inner) })
		if err != nil {
			return err
		}
		var void sql.RawBytes
		rows, err := own.QueryContext(ctx, "select pg_sleep($1)", service.Seconds())
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err has it
		for rows.Next() {
			if err := rows.Scan(&void); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

func overPgx(t *testing.T, db *rig.Database) work {
	cfg, err := pgxpool.ParseConfig(db.DSN())
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = slots
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return func(ctx context.Context, inner *goodput.Limiter) error {
		return inner.Do(ctx, func(ctx context.Context) error {
			return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
				_, err := conn.Exec(ctx, "select pg_sleep($1)", service.Seconds())
				return err
			})
		})
	}
}

// Three times what the database can do arrives at one endpoint. Its own limiter refuses what
// is too much, and nobody else: the front door, whose law looks for contention, hears nothing
// of the time in the database, and the endpoint beside it does as well as alone.
func TestBulkhead(t *testing.T) {
	db := database(t)
	for name, over := range map[string]func(*testing.T, *rig.Database) work{"database/sql": overSQL, "pgxpool": overPgx} {
		t.Run(name, func(t *testing.T) {
			db.Disconnect(t)
			b := serveBulkhead(t, door{}, over(t, db))
			first, second, most, samples := b.load(t, db, 6*time.Second)
			b.report(t, first, second)
			figure(t, "database", "at most %d connections, %d statements, %d in pg_sleep in %d samples", most.Connections, most.Active, most.Sleeping, samples)

			if most.Connections > slots || b.failed.Load() > 0 {
				t.Errorf("the database saw %d connections and %d statements failed, the limit is %d", most.Connections, b.failed.Load(), slots)
			}
			if n := refusals(b.front); n != 0 {
				t.Errorf("the front door refused %d", n)
			}
			if n := first.Count(openloop.Refused); n == 0 || n != refusals(b.inner) {
				t.Errorf("%d were refused, the limiter of the database refused %d", n, refusals(b.inner))
			}
			st := b.front.Stats()
			if st.Elsewhere < 0.5 {
				t.Errorf("%.2f of the time behind the front door was in the database", st.Elsewhere)
			}
			if !punctual(t, second) || !punctual(t, first) {
				return
			}
			if ratio := inTimeShare(second); ratio < 0.98 {
				t.Errorf("%.3f of the requests that need no database were in time", ratio)
			}
		})
	}
	// The same with a front door that takes the time in the database for its own: it closes, and
	// the harm is everybody's. So the above shows something.
	t.Run("blind", func(t *testing.T) {
		db.Disconnect(t)
		b := serveBulkhead(t, door{blind: true}, overPgx(t, db))
		first, second, _, _ := b.load(t, db, 3*time.Second)
		b.report(t, first, second)
		if refusals(b.front) == 0 {
			t.Error("the front door refused nobody, so this load says nothing about attribution")
		}
	})
}

// load offers 3 times the capacity of the database to /work, and some pages beside it.
func (b *bulkhead) load(t *testing.T, db *rig.Database, length time.Duration) (first, second openloop.Result, most rig.Sample, samples int) {
	t.Helper()
	watching, stop := context.WithCancel(context.Background())
	var watch, load sync.WaitGroup
	watch.Go(func() {
		var err error
		if most, samples, err = db.Watch(watching); err != nil {
			t.Error(err)
		}
	})
	load.Go(func() { first = offer(b.url, length, false) })
	load.Go(func() {
		second = openloop.Run(context.Background(), openloop.Plan{
			URL: b.url + "/page", Rate: pageRate, Duration: length, Deadline: objective, Seed: 2,
		})
	})
	load.Wait()
	stop()
	watch.Wait()
	return first, second, most, samples
}

func inTimeShare(r openloop.Result) float64 {
	return float64(r.Count(r.InTime)) / float64(len(r.Answers))
}

func (b *bulkhead) report(t *testing.T, first, second openloop.Result) {
	t.Helper()
	st := b.front.Stats()
	figure(t, "with the database", "offered %.0f/s, in time %.0f/s of %.0f/s; %v", first.Offered(),
		float64(first.Count(first.InTime))/first.Plan.Duration.Seconds(), capacity, first)
	figure(t, "without", "offered %.0f/s, in time %.3f, p50 %s, p99 %s", second.Offered(), inTimeShare(second),
		millis(second.Quantile(0.5, openloop.Latency, openloop.OK)), millis(second.Quantile(0.99, openloop.Latency, openloop.OK)))
	figure(t, "limiters", "the front door refused %d, limit %d, %.0f %% of its time elsewhere; that of the database refused %d",
		refusals(b.front), st.Limit, 100*st.Elsewhere, refusals(b.inner))
}
