package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
	"github.com/goodput/goodput/limit"
)

// open returns a pool of a database in this process; a service calls sql.Open.
func open() *sql.DB { return sql.OpenDB(&server{}) }

// database returns it behind a limiter.
func database(slots int) *goodputsql.DB {
	lim := goodput.New(goodput.Config{Name: "db", Limit: limit.Fixed(slots), Objective: 400 * time.Millisecond})
	db, err := goodputsql.New(open(), lim)
	if err != nil {
		panic(err)
	}
	return db
}

func ExampleNew() {
	pool := open()
	pool.SetMaxOpenConns(10) // what the database allows
	lim := goodput.New(goodput.Config{
		Name:      "accounts",
		Limit:     limit.Fixed(20),
		Objective: 400 * time.Millisecond,
	})
	_, err := goodputsql.New(pool, lim)
	fmt.Println(err)
	// Output:
	// goodputsql: MaxOpenConns 10 is below the limit 20 of accounts, so callers with a slot would queue in the pool: raise one or lower the other
}

func ExampleConfig() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(20), Objective: 400 * time.Millisecond})
	_, err := goodputsql.Config{
		LongHold:   time.Second,
		OnLongHold: func(h goodputsql.Hold) { fmt.Printf("%v at %s has a connection for %v\n", h.Kind, h.Site, h.For) },
		MaxHold:    time.Minute, // for jobs without a deadline
	}.New(open(), lim)
	fmt.Println(err)
	// Output:
	// <nil>
}

func ExampleDB_Do() {
	db := database(20)
	err := db.Do(context.Background(), func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, "ok"); err != nil { // set local ...
			return err
		}
		var n int
		err := db.QueryRowContext(ctx, "rows 1").Scan(&n) // with this ctx on the same connection
		fmt.Println("held", db.Stats().Held, err)
		return err
	})
	fmt.Println("held", db.Stats().Held, err)
	// Output:
	// held 1 <nil>
	// held 0 <nil>
}

func ExampleDB_Tx() {
	db := database(20)
	err := db.Tx(context.Background(), nil, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "ok"); err != nil {
			return err // and rolls back
		}
		_, err := db.ExecContext(ctx, "ok") // a slip: db, not tx
		var nested *goodputsql.NestedError
		fmt.Println("outside of the transaction:", errors.As(err, &nested))
		return nil
	})
	fmt.Println(err)
	// Output:
	// outside of the transaction: true
	// <nil>
}

func ExampleDB_QueryContext() {
	db := database(20)
	rows, err := db.QueryContext(context.Background(), "rows 3")
	if err != nil {
		fmt.Println(err) // a *goodput.Rejection: it was not sent
		return
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(n, "held", db.Stats().Held)
	}
	fmt.Println(rows.Err(), "held", db.Stats().Held)
	// Output:
	// 0 held 1
	// 1 held 1
	// 2 held 1
	// <nil> held 0
}

func ExampleDB_QueryRowContext() {
	db := database(20)
	var n int
	err := db.QueryRowContext(context.Background(), "rows 0").Scan(&n)
	fmt.Println(errors.Is(err, sql.ErrNoRows))
	// Output:
	// true
}

func ExampleDB_ExecContext() {
	db := database(20)
	res, err := db.ExecContext(context.Background(), "ok")
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := res.RowsAffected()
	fmt.Println(n, err)
	// Output:
	// 1 <nil>
}

func ExampleDB_BeginTx() {
	db := database(20)
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to do
	if _, err := tx.ExecContext(context.Background(), "ok"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tx.Commit(), "held", db.Stats().Held)
	// Output:
	// <nil> held 0
}

func ExampleDB_Conn() {
	db := database(20)
	conn, err := db.Conn(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(conn.PingContext(context.Background()), "held", db.Stats().Held)
	fmt.Println(conn.Close(), "held", db.Stats().Held)
	// Output:
	// <nil> held 1
	// <nil> held 0
}

func ExampleDB_PingContext() {
	db := database(1)
	err := db.Do(context.Background(), func(context.Context, *sql.Conn) error {
		return db.PingContext(context.Background()) // the only slot is taken
	})
	fmt.Println(err)
	// Output:
	// <nil>
}

// New refuses a pool with fewer connections than slots. A limit that is raised later, as by
// SetLimit or a fleet.Share, shows here.
func ExampleDB_Explain() {
	pool := open()
	pool.SetMaxOpenConns(20)
	lim := goodput.New(goodput.Config{Name: "accounts", Limit: limit.Fixed(20), Objective: 400 * time.Millisecond})
	db, _ := goodputsql.New(pool, lim)

	_ = lim.SetLimit(30)
	_, of, _ := strings.Cut(db.Explain(), "arrivals\n") // those of the limiter come first
	fmt.Print(of)
	// Output:
	// pool     at most 20 connections (MaxOpenConns), and a limit of 30; 0 open, 0 of them idle
	//            MaxOpenConns 20 is below the limit 30 of accounts, so callers with a slot queue in the pool, out of order: raise one or lower the other
	//   held     0 connections now
}

func ExampleDB_Stats() {
	db := database(20)
	err := db.Do(context.Background(), func(context.Context, *sql.Conn) error {
		s := db.Stats()
		fmt.Println(s.Held, "held, the longest by", s.Longest.Kind, "and", s.Queued, "ever waited in the pool")
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 held, the longest by Do and 0 ever waited in the pool
	// <nil>
}
