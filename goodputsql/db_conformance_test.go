package goodputsql_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/goodput/goodput/conformance"
	"github.com/goodput/goodput/goodputsql"
)

// untilHeld makes of the caller's context one that take may end by as long as it waits. What
// it has taken is rolled back or closed when its own context ends, as with *sql.DB; here that
// is the end of the test.
func untilHeld(ctx context.Context, take func(ctx context.Context) (release func(), err error)) (func(), error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	release, err := take(own)
	switch {
	case err != nil:
		stop()
		cancel()
		return nil, err
	case !stop(): // it is over, and so is what was taken
		release()
		return nil, ctx.Err()
	}
	return func() { release(); cancel() }, nil
}

// A slot of a DB is a connection, a transaction or a result set: whichever, it does what
// any limiter must.
func TestDBConformance(t *testing.T) {
	for name, take := range map[string]func(ctx context.Context, db *goodputsql.DB) (release func(), err error){
		"Conn": func(ctx context.Context, db *goodputsql.DB) (func(), error) {
			c, err := db.Conn(ctx)
			if err != nil {
				return nil, err
			}
			return func() { _ = c.Close() }, nil
		},
		"BeginTx": func(ctx context.Context, db *goodputsql.DB) (func(), error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return nil, err
			}
			return func() { _ = tx.Rollback() }, nil
		},
		"QueryContext": func(ctx context.Context, db *goodputsql.DB) (func(), error) {
			rows, err := db.QueryContext(ctx, "rows 3")
			if err != nil {
				return nil, err
			}
			return func() { _ = rows.Close() }, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.TestLimiter(t, func(n int) conformance.Limiter {
				lim := fixed(n)
				db, _ := new(server).behind(t, lim, goodputsql.Config{})
				return conformance.Limiter{
					Acquire: func(ctx context.Context) (func(), error) {
						return untilHeld(ctx, func(ctx context.Context) (func(), error) { return take(ctx, db) })
					},
					Do: func(ctx context.Context, fn func(context.Context) error) error {
						return db.Do(ctx, func(ctx context.Context, _ *sql.Conn) error { return fn(ctx) })
					},
					InUse:   func() int { return lim.Stats().InUse },
					Waiting: func() int { return lim.Stats().Waiting },
					Resize: func(n int) {
						if err := lim.SetLimit(n); err != nil {
							panic(err)
						}
					},
				}
			}, conformance.LimiterOptions{Part: 100})
		})
	}
}
