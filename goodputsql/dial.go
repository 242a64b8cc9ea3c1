package goodputsql

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A DialError says that there is no connection, and that no attempt was made to get one:
// the database did not answer lately, and it is not yet time to ask again.
type DialError struct {
	Since    time.Time // of the first failure of the series
	Failures int       // in it, those at the same time counted once
	Next     time.Time // when it is time
	Last     error     // the last failure
}

// Error says since when, why, and when the next attempt is.
func (e *DialError) Error() string {
	return fmt.Sprintf("goodputsql: no connection to the database since %s (%d attempts failed), the next attempt is at %s: %v",
		e.Since.Format(time.RFC3339), e.Failures, e.Next.Format(time.RFC3339Nano), e.Last)
}

// Unwrap returns Last.
func (e *DialError) Unwrap() error { return e.Last }

const (
	// The pause after the n-th failure is random between 0 and 20 ms x 2^(n-1), 5 s at
	// most (full jitter). 20 ms is ten times what it takes to dial in a data centre; after
	// 5 s of outage and more, a pause costs at most as much again.
	firstPause = 20 * time.Millisecond
	lastPause  = 5 * time.Second

	// patience is the longest pause that is waited out, with the slot: it delays nobody
	// who could be served, and one failure among many is not everybody's. Longer ones are
	// an outage, and those who wait for a slot are to hear of it.
	patience = 100 * time.Millisecond
)

// dial is what is known of attempts to get a connection.
type dial struct {
	sync.Mutex
	failures int           // one after another; 0: all is well
	since    time.Time     // of the first of them
	last     error         // of the last
	ended    time.Duration // when the last one ended
	next     time.Duration // not before that
	busy     chan struct{} // closed when the attempt that is being made ends; nil if none is
}

// connect gets a connection from the pool. While all is well that is what the pool does;
// once an attempt has failed, one at a time.
func (db *DB) connect(ctx context.Context) (*sql.Conn, error) {
	d := &db.dial
	for {
		d.Lock()
		if d.failures == 0 {
			d.Unlock()
			return db.attempt(ctx, false)
		}
		// Nobody else takes idle connections meanwhile, so what is seen is there.
		if db.pool.Stats().Idle > 0 {
			conn, err := db.pool.Conn(ctx)
			d.Unlock()
			return conn, err
		}
		wait, busy := d.next-db.now(), d.busy
		switch {
		case busy == nil && wait <= 0:
			d.busy = make(chan struct{})
			d.Unlock()
			return db.attempt(ctx, true)
		case busy == nil && wait > patience, busy != nil && d.failures > 3:
			err := d.error(db)
			d.Unlock()
			return nil, err
		}
		d.Unlock()
		if err := pause(ctx, busy, wait); err != nil {
			return nil, err
		}
	}
}

func (d *dial) error(db *DB) error {
	return &DialError{Since: d.since, Failures: d.failures, Next: db.epoch.Add(d.next), Last: d.last}
}

// pause waits for busy or, if that is nil, so long.
func pause(ctx context.Context, busy <-chan struct{}, wait time.Duration) error {
	var due <-chan time.Time
	if busy == nil {
		t := time.NewTimer(wait)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-busy:
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// attempt asks the pool, and keeps what came of it. alone says that nobody else asks.
func (db *DB) attempt(ctx context.Context, alone bool) (*sql.Conn, error) {
	began := db.now()
	if alone {
		defer func() {
			db.dial.Lock()
			close(db.dial.busy)
			db.dial.busy = nil
			db.dial.Unlock()
		}()
	}
	conn, err := db.pool.Conn(ctx)
	if err != nil && ctx.Err() == nil {
		db.dial.failed(db, began, err)
	} else if err == nil && alone {
		db.dial.Lock()
		db.dial.failures = 0
		db.dial.Unlock()
	}
	return conn, err
}

// failed counts a failure of an attempt that began at an instant. Those that began before
// the last was known are the same failure: they say nothing new.
func (d *dial) failed(db *DB, began time.Duration, err error) {
	d.Lock()
	defer d.Unlock()
	d.last = err
	if d.failures > 0 && began < d.ended {
		return
	}
	if d.failures == 0 {
		d.since = time.Now()
	}
	d.failures++
	d.ended = db.now()
	d.next = d.ended + rand.N(min(lastPause, firstPause<<min(d.failures-1, 10)))
}
