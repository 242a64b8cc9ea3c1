// Package goodputsql puts a goodput.Limiter in front of a *sql.DB, so that the database
// never sees more work at once than it can do, and nobody waits where waiting has no
// deadline, no order and no end.
//
//	pool, err := sql.Open("pgx", dsn)
//	lim := goodput.New(goodput.Config{Limit: limit.Fixed(20), Objective: 400 * time.Millisecond})
//	db, err := goodputsql.New(pool, lim)
//
//	err = db.Tx(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "update account set balance = balance - $1 where id = $2", sum, from)
//		return err
//	})
//
// Everything takes a slot, then a connection, and gives them back in the other order: a
// connection is in the pool again before its slot is free. So the pool of database/sql
// always has a connection, or room for one, and its own queue is never used (Stats.Queued
// stays 0). Whoever has to wait does so in the queue of the limiter: within the deadline
// of the context, in its order, and refused as soon as the wait cannot be worth it. A
// refusal is a *goodput.Rejection: the statement was not sent.
//
// # Which call
//
// Do and Tx are what most callers want: what they take is given back however the function
// ends. They hand out a *sql.Conn and a *sql.Tx, which generated code (sqlc) and helpers
// (sqlx, scany) take as they are. ExecContext, QueryContext, QueryRowContext, BeginTx and
// Conn are those of *sql.DB; what a result set, transaction or connection holds is said at
// Rows, Tx and Conn. Rows and
// transactions that somebody forgot are given back at the end of their context.
//
// There is no PrepareContext: a statement that is prepared on a *sql.DB prepares itself
// again on whichever connection it gets, and takes it from the pool past the limiter.
// Prepare on the connection of Do or of a transaction; drivers such as pgx keep a cache of
// statements for each connection anyway. Nor is there a way to the bare pool: whoever uses
// it as well takes connections of which the limiter does not know.
//
// # Settings of the pool
//
// MaxOpenConns must be 0 or at least the limit; New says so if it is not, and Explain if
// the limit has been raised above it since. What the database allows is a good number for
// it, and the limit one less, if there are health checks (see below). A connection that is
// thrown away is closed before its slot is free; the server may take a moment longer to
// notice.
//
// New sets the number of idle connections to the limit. The default of database/sql is 2,
// with which a burst dials, and closes what it dialled, again and again. When the limit
// moves, the number follows within Config.LongHold. ConnMaxLifetime and ConnMaxIdleTime
// are the caller's.
//
// In the observe mode of the limiter (goodput.Config.Observe) nobody is refused and nothing
// is limited, so the pool may queue.
//
// A database that refuses a connection because it has as many as it takes (53300 of PostgreSQL,
// 1040 of MySQL) tells an adaptive limit to ask for less: see goodput.Slot.Dropped. Several
// instances over one database find their shares that way.
//
// # A connection that waits for another
//
// Whoever holds a connection and asks for a second one waits for others who may do the
// same; when all do, nobody moves. Used with the context that it was given, the function
// of Do or Tx cannot get there:
//
//   - in Do, everything rides on the connection that Do holds, a transaction too;
//   - in Tx, everything on the DB fails at once with a *NestedError, because it would run
//     outside of the transaction. It has the place of both calls.
//
// Rows, and what BeginTx and Conn return, leave no mark in a context. Who holds one and asks
// for more waits, within its deadline or the bound of the limiter (goodput.Config.MaxWait),
// and is refused in the end. It gets a *NestedError if the holder came with the same context.
// It also gets one, with the place of the oldest holder, if nobody gave a connection back
// meanwhile. With a limit of 1 all such code shows at once: run the
// tests of a service with limit.Fixed(1), and with goodput.NoQueue where nothing runs in
// parallel.
//
// Code that cannot do with one needs a limit of at least
//
//	parallel x (n-1) + 1
//
// connections for n at the same time in each of so many requests in parallel: then one of
// them always gets its last. For 2 transactions in each of 2 requests that is 3.
//
// # Long holders
//
// A connection that is held for longer than Config.LongHold is reported once, with the
// place in the source that took it, and Stats has the longest one now. Config.MaxHold ends
// them; see there for what the limit means then.
//
// # A database that is away
//
// After a dial that failed one caller at a time tries again, after pauses that grow to 5 s
// with full jitter, whatever the number of those who wait. The others wait for a short
// pause and fail at once in a long one, with a *DialError that says since when, why and
// when the next attempt is. Idle connections still serve.
//
// # Health checks
//
// PingContext has a lane of its own, beside the limit: a database that is busy is not
// dead, and a check that waits behind the load it is to watch takes the service down.
//
// # What the limiter learns
//
// An error of the function or the statement is a failure, but for sql.ErrNoRows; if the
// context is over, the work was abandoned. The time from asking for the slot to
// giving it back is goodput.Downstream of whatever slot the context belongs to, so a slow
// database shrinks its own limiter and not the front door's.
//
// # Panics
//
// A panic goes on: the transaction is rolled back, the connection and the slot given back.
//
// Where it is the driver that panicked, in a call that begins or ends a transaction, queries,
// or closes rows, database/sql keeps a lock of the connection for ever, and the pool has
// lost it, as without this package. It is closed past the pool, and Stats.Lost counts it:
// one less of MaxOpenConns. A panic of the function of Do or Tx may come from such a call, on
// the bare *sql.Conn or *sql.Tx. So what is given back then has a second; if that is not
// enough, the slot is free, and the connection is in Stats.Overdue until it comes back. A
// function that recovers from such a panic by itself, and goes on, waits as database/sql does.
//
// # pgx without database/sql
//
// pgxpool is the same in five lines, because its Acquire and Release are explicit. MaxConns
// must not be below the limit:
//
//	err := lim.Do(ctx, func(ctx context.Context) error {
//		return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
//			return conn.QueryRow(ctx, "select balance from account where id = $1", id).Scan(&sum)
//		})
//	})
//
// pool.BeginTx, pool.Query and the other shortcuts take a connection of their own: within
// the function use conn. One limiter may be in front of both kinds of pools; then it is
// the limit of the two together.
package goodputsql
