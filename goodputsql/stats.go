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
	Overdue int    // cut, or left by a panic, and still out: the database may see so many more than the limit
	Lost    uint64 // closed past the pool, which counts them in MaxOpenConns for ever: their driver panicked
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
	s.Held, s.Long, s.Cut, s.Overdue, s.Lost = l.n, l.long, l.cut, l.overdue, l.lost
	if l.first != nil {
		s.Longest = l.first.describe(db.now())
	}
	return s
}

// PingContext checks that the database answers. It is not in the limit, as one of
// goodput.Config.Exempt: a database that is busy is not dead. So the database may see one
// connection more than the limit, but never two: checks wait for each other.
//
// Where MaxOpenConns has no room for that one, a check takes a slot if one is free. If
// none is, every connection is asking the database something already, and the next answer
// that anybody gets is that of the check; without one until ctx is over, or for LongHold,
// it fails.
func (db *DB) PingContext(ctx context.Context) error {
	select {
	case db.health <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-db.health }()
	span := goodput.Downstream(ctx)
	defer span.End()
	if most := db.pool.Stats().MaxOpenConnections; most > 0 && most <= db.lim.Stats().Limit {
		slot, ok := db.lim.TryAcquire()
		if !ok {
			return db.nextAnswer(ctx)
		}
		return db.ping(ctx, &slot)
	}
	slot, err := db.lim.AcquireWork(ctx, goodput.Work{Priority: goodput.Critical, Exempt: true})
	if err != nil {
		return err
	}
	return db.ping(ctx, &slot)
}

// ping asks the database, and ends the slot.
func (db *DB) ping(ctx context.Context, slot *goodput.Slot) (err error) {
	err = errUnwound
	defer func() { end(slot, err) }()
	conn, err := db.connect(ctx, db.now())
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned { // the driver panicked, and Close would wait for ever
			db.abandon(conn)
			return
		}
		db.put(conn)
		db.dial.cameBack()
	}()
	err = conn.PingContext(ctx)
	returned = true
	return err
}

// nextAnswer waits until somebody's work has ended well.
func (db *DB) nextAnswer(ctx context.Context) error {
	l := &db.holds
	l.Lock()
	if l.answer == nil {
		l.answer = make(chan struct{})
	}
	answer := l.answer
	l.Unlock()
	t := time.NewTimer(db.cfg.LongHold)
	defer t.Stop()
	select {
	case <-answer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return errors.New("goodputsql: all connections are in use and none has had an answer for LongHold")
	}
}
