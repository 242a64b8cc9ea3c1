package goodputsql

import (
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/goodput/goodput"
)

// Config has the settings of a DB. The zero value of each field means its default.
type Config struct {
	// LongHold is how long a connection is held before that is reported: 1 ms to 24 h,
	// default 10 s, or half of MaxHold if that is shorter.
	LongHold time.Duration

	// OnLongHold is called once for each connection that is held longer than LongHold,
	// while it is held. It runs in a goroutine of its own and delays nobody. Default: it is
	// only counted, in Stats.Long.
	OnLongHold func(Hold)

	// MaxHold is how long a connection may be held: 2 ms to 24 h, and not below LongHold.
	// Default: as long as its holder likes.
	//
	// At MaxHold the context of the holder is cancelled, with ErrHeldTooLong as its
	// cause, and the connection of one that runs no statement is closed. Most drivers give up
	// then, and nothing is left. If the connection is still out a second later, because
	// the driver ignores the context, as before a server that is frozen, its slot is given
	// to the next, and the connection is closed whenever it comes back. From then on
	// the database may see more connections than the limit, by Stats.Overdue: the limit is on
	// those that are of use. A database with a hard limit needs that many to spare.
	//
	// All errors of what was cut match ErrHeldTooLong, but for those of a bare *sql.Conn,
	// *sql.Tx or *sql.Row.
	MaxHold time.Duration
}

const (
	defaultLongHold = 10 * time.Second
	minHold         = time.Millisecond // below that the timer is what is measured
	maxHold         = 24 * time.Hour

	// grace is what a driver has to give up a statement once its context is over. pgx takes
	// a round trip at most; what takes a second does not come.
	grace = time.Second
)

// ErrHeldTooLong is the cause (context.Cause) of the end of a context whose holder had its
// connection for Config.MaxHold.
var ErrHeldTooLong = errors.New("goodputsql: the connection was held for MaxHold")

// Validate says what is wrong with c, in one sentence for each.
func (c Config) Validate() error {
	var bad []error
	if c.LongHold != 0 && (c.LongHold < minHold || c.LongHold > maxHold) {
		bad = append(bad, fmt.Errorf("goodputsql: LongHold is %v, it must be %v to %v", c.LongHold, minHold, maxHold))
	}
	if c.MaxHold != 0 && (c.MaxHold < 2*minHold || c.MaxHold > maxHold) {
		bad = append(bad, fmt.Errorf("goodputsql: MaxHold is %v, it must be %v to %v", c.MaxHold, 2*minHold, maxHold))
	} else if c.MaxHold != 0 && c.LongHold > c.MaxHold {
		bad = append(bad, fmt.Errorf("goodputsql: LongHold %v is more than MaxHold %v, so nobody would be reported before the end", c.LongHold, c.MaxHold))
	}
	return errors.Join(bad...)
}

// A DB is a *sql.DB behind a limiter. It is safe for concurrent use. Its owner closes the
// *sql.DB, after the last use; a DB needs no Close.
type DB struct {
	pool  *sql.DB
	lim   *goodput.Limiter
	cfg   Config
	epoch time.Time
	asked int64 // waits in the queue of the pool before New

	holds holds
	dial  dial

	out    atomic.Int64  // connections that the pool has given to us or was asked for, lost ones included
	health chan struct{} // has room for the health check that has the lane
}

// New returns pool behind lim, with the default settings. It returns an error if the pool
// would queue: if its MaxOpenConns is below the limit. A limit that moves by itself is to
// have a Max within MaxOpenConns; New knows only where it is now, and DB.Explain says it
// of one that was raised above MaxOpenConns later.
func New(pool *sql.DB, lim *goodput.Limiter) (*DB, error) { return Config{}.New(pool, lim) }

// New is the function New with settings.
func (c Config) New(pool *sql.DB, lim *goodput.Limiter) (*DB, error) {
	if pool == nil || lim == nil {
		return nil, errors.New("goodputsql: New needs a *sql.DB and a *goodput.Limiter, and one of them is nil")
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.LongHold == 0 {
		c.LongHold = defaultLongHold
		if c.MaxHold != 0 {
			c.LongHold = min(c.LongHold, c.MaxHold/2)
		}
	}
	is, most := pool.Stats(), lim.Stats().Limit
	if queues(is, most) {
		return nil, fmt.Errorf("goodputsql: MaxOpenConns %d is below the limit %d of %s, so callers with a slot would queue in the pool: raise one or lower the other",
			is.MaxOpenConnections, most, lim.Name())
	}
	db := &DB{pool: pool, lim: lim, cfg: c, epoch: time.Now(), asked: is.WaitCount, health: make(chan struct{}, 1)}
	db.holds.limit = most
	db.keepIdle(most)
	return db, nil
}

// queues reports whether callers with a slot may find the pool without a connection for them.
func queues(is sql.DBStats, limit int) bool {
	return is.MaxOpenConnections > 0 && is.MaxOpenConnections < limit
}

// keepIdle makes the pool keep as many connections as may be used at once. One that has
// room for fewer closes what comes back, and dials again for the next.
func (db *DB) keepIdle(limit int) {
	if limit > 0 { // for database/sql none at all, and 0 would be
		db.pool.SetMaxIdleConns(limit)
	}
}

// now returns the time since the epoch of the DB.
func (db *DB) now() time.Duration { return time.Since(db.epoch) }
