package goodputsql

import (
	"context"
	"errors"
	"time"

	"github.com/goodput/goodput"
)

// Stats is what a DB does now and has done.
type Stats struct {
	Held    int    // connections that are held now, Overdue included
	Longest Hold   // what has been held for the longest time now; zero if nothing is
	Long    uint64 // were held longer than Config.LongHold
	Cut     uint64 // were held for Config.MaxHold, and told to end
	Overdue int    // cut and still out: the database may see so many more than the limit
	Queued  int64  // waits in the queue of the pool since New: more than 0 says that others use it, or that MaxOpenConns is too low

	// What there is of failures to get a connection: 0 of them while all is well.
	DialFailures int
	DialsSince   time.Time // when the first of them was
	DialError    error     // the last
	NextDial     time.Time // when the next attempt is
}

// Stats returns what the DB does now.
func (db *DB) Stats() Stats {
	s := Stats{Queued: db.pool.Stats().WaitCount - db.asked}
	d := &db.dial
	d.Lock()
	if d.failures > 0 {
		s.DialFailures, s.DialsSince, s.DialError, s.NextDial = d.failures, d.since, d.last, db.epoch.Add(d.next)
	}
	d.Unlock()
	l := &db.holds
	l.Lock()
	defer l.Unlock()
	s.Held, s.Long, s.Cut, s.Overdue = l.n, l.long, l.cut, l.overdue
	if l.first != nil {
		s.Longest = l.first.describe(db.now())
	}
	return s
}

// PingContext checks that the database answers. It is not in the limit, as one of
// goodput.Config.Exempt: a database that is busy is not dead. So the database may see one
// connection more than the limit, but never two: checks wait for each other.
//
// Where MaxOpenConns has no room for that one, a check waits for a slot like everybody, with the
// priority goodput.Critical. If its time is up before it gets one, the database is
// taken to be well if anybody else has got an answer meanwhile.
func (db *DB) PingContext(ctx context.Context) error {
	seen := db.answers()
	err := db.ping(ctx)
	if err != nil && (errors.Is(err, goodput.ErrRejected) || ctx.Err() != nil) && db.answers() > seen {
		return nil
	}
	return err
}

func (db *DB) ping(ctx context.Context) error {
	select {
	case db.health <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-db.health }()
	is := db.pool.Stats()
	work := goodput.Work{Priority: goodput.Critical}
	work.Exempt = is.MaxOpenConnections == 0 || is.InUse < is.MaxOpenConnections
	span := goodput.Downstream(ctx)
	defer span.End()
	slot, err := db.lim.AcquireWork(ctx, work)
	if err != nil {
		return err
	}
	err = errUnwound
	defer func() { slot.Fail(err) }()
	conn, err := db.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it is back, or was bad and is closed
	err = conn.PingContext(ctx)
	return err
}

// answers counts what ended well.
func (db *DB) answers() uint64 {
	db.holds.Lock()
	defer db.holds.Unlock()
	return db.holds.good
}
