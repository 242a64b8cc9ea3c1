package goodputsql

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A DialError says that there is no connection, and that no attempt was made to get one:
// the database did not answer lately, and it is not yet time to ask again.
type DialError struct {
	Since    time.Time // of the first failure of the series
	Failures int       // in it, those at the same time counted once
	Next     time.Time // when it is time
	Last     error     // the last failure
	tried    bool      // this caller has made an attempt of its own before
}

// Error says since when, why, and when the next attempt is.
func (e *DialError) Error() string {
	failed := fmt.Sprintf("%d attempts failed", e.Failures)
	if e.Failures == 1 {
		failed = "1 attempt failed"
	}
	return fmt.Sprintf("goodputsql: no connection to the database since %s (%s), the next attempt is at %s: %v",
		e.Since.Format(time.RFC3339), failed, e.Next.Format(time.RFC3339Nano), e.Last)
}

// Unwrap returns Last.
func (e *DialError) Unwrap() error { return e.Last }

const (
	// The pause after the n-th failure is random between 0 and 20 ms x 2^(n-1), 5 s at
	// most (full jitter). 20 ms is ten times what it takes to dial in a data centre; after
	// 5 s of outage and more, a pause costs at most as much again.
	firstPause = 20 * time.Millisecond
	lastPause  = 5 * time.Second

	// patience is how long a caller waits with its slot: for a pause or the attempt of
	// another to end, or for a connection of another, if there are any. It delays nobody
	// who could be served, and one failure among many is not everybody's: 9 slots without
	// a connection that fail at once would empty the queue before 11 with one had served
	// 20. What takes longer is an outage, and those who wait for a slot are to hear of it.
	patience = 100 * time.Millisecond
)

// dial is what is known of attempts to get a connection.
type dial struct {
	sync.Mutex
	trouble  atomic.Bool   // failures is not 0
	failures int           // one after another; 0: all is well
	since    time.Time     // of the first of them
	last     error         // of the last
	seen     atomic.Uint64 // counts failures, without an end
	next     time.Duration // not before that
	busy     chan struct{} // closed when the attempt that is being made ends; nil if none is
	back     chan struct{} // closed when a connection comes back; nil if nobody waits for that
	waits    atomic.Bool   // back is not nil
	waiting  int           // callers in pause
	taking   int           // callers that were told of an idle connection and are about to have it

	// What ended with the deadline of its caller: attempts that did, one after another, for
	// how long without what overlaps, and until when.
	lapsing  atomic.Bool // lapsed is not 0
	lapsed   time.Duration
	lapsedAt time.Duration

	queued   int64         // waits in the queue of the pool
	queuedAt time.Duration // when there were so many, at the latest
}

// connect gets a connection from the pool. While all is well that is what the pool does;
// once an attempt has failed, one at a time.
func (db *DB) connect(ctx context.Context, began time.Duration) (*sql.Conn, error) {
	d := &db.dial
	if !d.trouble.Load() {
		return db.attempt(ctx, began, false)
	}
	until := time.Duration(0) // how long we wait, once we do
	tried := false
	d.Lock()
	for {
		if d.failures == 0 {
			d.Unlock()
			return db.attempt(ctx, db.now(), false)
		}
		// Who waits for an idle connection goes first. The pool is asked without the lock: if
		// what it has turns out to be stale it dials, and that takes as long as it takes. So
		// few do as there are idle ones.
		is := db.pool.Stats()
		if idle := is.Idle - d.taking; idle > 0 && (until != 0 || idle > d.waiting) {
			d.taking++
			if d.busy == nil && db.now() >= d.next+d.longest() {
				d.well() // nobody needed an attempt for so long, and this one does not
			}
			d.Unlock()
			return db.take(ctx)
		}
		now, busy, open := db.now(), d.busy, is.OpenConnections
		if busy != nil {
			open-- // it counts as one
		}
		if until == 0 {
			until = now + patience
		}
		// What is idle is promised to others: an attempt would be given that by the pool.
		due := busy == nil && is.Idle == 0
		if due && now >= d.next {
			d.busy = make(chan struct{})
			d.Unlock()
			conn, err := db.attempt(ctx, now, true)
			if err == nil || ctx.Err() != nil {
				return conn, err
			}
			tried = true
			d.Lock() // others may have a connection to give
			continue
		}
		if now >= until || open == 0 && busy == nil && d.next > until {
			err := &DialError{Since: d.since, Failures: d.failures, Next: db.epoch.Add(d.next), Last: d.last, tried: tried}
			d.Unlock()
			return nil, err
		}
		wait := until - now
		if due {
			wait = min(wait, d.next-now)
		}
		back, ok := d.comesBack(db, is.Idle)
		if !ok {
			continue
		}
		d.waiting++
		d.Unlock()
		err := pause(ctx, busy, back, wait)
		d.Lock()
		d.waiting--
		if err != nil {
			d.Unlock()
			return nil, err
		}
	}
}

// comesBack returns what is closed when a connection comes back; not ok: one did, since so many
// were idle and before anybody was told that somebody waits. It is called under the lock.
func (d *dial) comesBack(db *DB, idle int) (back <-chan struct{}, ok bool) {
	if d.back == nil {
		d.back = make(chan struct{})
		d.waits.Store(true)
		if db.pool.Stats().Idle > idle {
			return nil, false
		}
	}
	return d.back, true
}

// pause waits until busy or back is closed, but no longer than wait.
func pause(ctx context.Context, busy, back <-chan struct{}, wait time.Duration) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-busy:
	case <-back:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// take gets an idle connection.
func (db *DB) take(ctx context.Context) (*sql.Conn, error) {
	defer func() {
		db.dial.Lock()
		db.dial.taking--
		db.dial.Unlock()
		db.dial.cameBack() // until now it looked as if there were fewer
	}()
	return db.attempt(ctx, db.now(), false)
}

// attempt asks the pool, and keeps what came of it. One that ended with the deadline of its
// caller has failed as well, if it and those before it took as long as a first pause:
// packets that are dropped, as by a firewall or a node that is gone, are answered by nothing
// else. alone says that nobody else asks; it began at an instant.
func (db *DB) attempt(ctx context.Context, began time.Duration, alone bool) (*sql.Conn, error) {
	d := &db.dial
	seen := d.seen.Load()
	if alone {
		defer func() {
			d.Lock()
			close(d.busy)
			d.busy = nil
			d.Unlock()
		}()
	}
	// A connection that was idle says nothing of those that are dialled.
	dials := alone || d.lapsing.Load() && db.pool.Stats().Idle == 0
	returned := false
	db.out.Add(1)
	defer func() {
		if !returned { // the driver panicked
			db.lost()
		}
	}()
	conn, err := db.pool.Conn(ctx)
	returned = true
	if err != nil {
		db.out.Add(-1)
	}
	switch {
	case err == nil && dials:
		d.Lock()
		if d.forget(); alone {
			d.well()
		}
		d.Unlock()
	case err == nil:
	case ctx.Err() == nil, ctx.Err() == context.DeadlineExceeded && d.lapse(began, db.now(), db.pool.Stats().WaitCount):
		d.failed(db, seen, err)
	}
	return conn, err
}

// lapse adds an attempt that ended with the deadline of its caller, and reports whether
// those since the last success took as long as a first pause. Those at the same time count
// once: a crowd that leaves after 1 ms has tried for 1 ms. waits is how many have ever waited in
// the queue of the pool: if somebody did since it began, it may be this one, as where the
// limiter only observes, and a pool that is busy is not a database that is away.
func (d *dial) lapse(began, now time.Duration, waits int64) bool {
	d.Lock()
	defer d.Unlock()
	if waits != d.queued {
		d.queued, d.queuedAt = waits, now
	}
	if d.queued != 0 && began <= d.queuedAt {
		return false
	}
	if began > d.lapsedAt+lastPause {
		d.lapsed = 0 // that is long ago
	}
	d.lapsed += now - max(began, min(d.lapsedAt, now))
	d.lapsedAt = now
	d.lapsing.Store(true)
	if d.lapsed < firstPause {
		if d.failures > 0 { // no further one, but no reason to ask at once either
			d.next = now + d.pause()
		}
		return false
	}
	d.forget()
	return true
}

// forget begins to add anew. It is called under the lock.
func (d *dial) forget() {
	d.lapsed = 0
	d.lapsing.Store(false)
}

// failed counts a failure of an attempt that began when so many had been seen. Those that
// began before the last one are the same failure: they say nothing new.
func (d *dial) failed(db *DB, seen uint64, err error) {
	d.Lock()
	defer d.Unlock()
	d.last = err
	if seen != d.seen.Load() {
		return
	}
	d.seen.Add(1)
	if d.failures == 0 {
		d.since = time.Now()
	}
	d.failures++
	d.trouble.Store(true)
	d.next = db.now() + d.pause()
}

// well ends a series of failures. It is called under the lock, as those below.
func (d *dial) well() {
	d.failures = 0
	d.trouble.Store(false)
}

// pause returns how long to pause after the failures.
func (d *dial) pause() time.Duration { return rand.N(d.longest()) }

// longest returns how long that may be.
func (d *dial) longest() time.Duration {
	return min(lastPause, firstPause<<min(max(d.failures-1, 0), 10))
}

// cameBack says that the pool has a connection again.
func (d *dial) cameBack() {
	if !d.waits.Load() {
		return
	}
	d.Lock()
	defer d.Unlock()
	if d.waits.CompareAndSwap(true, false) {
		close(d.back)
		d.back = nil
	}
}
