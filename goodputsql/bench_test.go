package goodputsql_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/goodput/goodput/goodputsql"
)

// What a call costs beside the same call on the bare pool, in one run: the difference is
// ours. /ends has a context that can end, as that of every request.
func BenchmarkCalls(b *testing.B) {
	pool := (&server{}).openPool(b)
	pool.SetMaxIdleConns(20)
	db, _ := (&server{}).behind(b, fixed(20), goodputsql.Config{})
	ends, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
	}{{"plain", context.Background()}, {"ends", ends}} {
		bench(b, "Exec/"+c.name,
			func() error { _, err := pool.ExecContext(c.ctx, "ok"); return err },
			func() error { _, err := db.ExecContext(c.ctx, "ok"); return err })
		bench(b, "Query/"+c.name,
			func() error { rows, err := pool.QueryContext(c.ctx, "rows 1"); return read(rows, err) },
			func() error { rows, err := db.QueryContext(c.ctx, "rows 1"); return read(rows, err) })
		bench(b, "QueryRow/"+c.name,
			func() error { var n int; return pool.QueryRowContext(c.ctx, "rows 1").Scan(&n) },
			func() error { var n int; return db.QueryRowContext(c.ctx, "rows 1").Scan(&n) })
		bench(b, "Tx/"+c.name,
			func() error {
				tx, err := pool.BeginTx(c.ctx, nil)
				if err != nil {
					return err
				}
				return tx.Commit()
			},
			func() error {
				return db.Tx(c.ctx, nil, func(context.Context, *sql.Tx) error { return nil })
			})
	}
}

// bench runs both in turns of a hundred calls, and reports the median of the differences
// between neighbours: what else the machine does hits both.
func bench(b *testing.B, name string, bare, ours func() error) {
	calls := map[string]func() error{"bare": bare, "goodputsql": ours}
	for which, call := range calls {
		b.Run(name+"/"+which, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run(name+"/difference", func(b *testing.B) {
		const turn = 100
		var over []time.Duration
		for b.Loop() {
			took := map[string]time.Duration{}
			for which, call := range calls {
				began := time.Now()
				for range turn {
					if err := call(); err != nil {
						b.Fatal(err)
					}
				}
				took[which] = time.Since(began)
			}
			over = append(over, took["goodputsql"]-took["bare"])
		}
		slices.Sort(over)
		b.ReportMetric(float64(over[len(over)/2])/turn, "ns-over/call")
		b.ReportMetric(0, "ns/op")
	})
}

// read reads and closes rows of one number.
func read(rows interface {
	Next() bool
	Scan(dest ...any) error
	Close() error
}, err error,
) error {
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // it is closed below
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return err
		}
	}
	return rows.Close()
}
