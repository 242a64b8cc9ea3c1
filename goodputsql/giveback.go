package goodputsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goodput/goodput"
)

// What is known of the connection of a hold after a panic.
const (
	sound   = iota
	suspect // a function panicked, perhaps because the driver did: then it may be broken
	broken  // the driver panicked in a call after which database/sql keeps a lock for ever
)

// claim makes the caller the one who ends the hold. The hook is taken back before
// anything is released: a cancel that comes now must not hit whoever is next.
func (h *hold) claim() bool {
	if h.over.Load() || h.over.Swap(true) {
		return false
	}
	if h.stop != nil {
		h.stop()
	}
	return true
}

// giveBack returns the connection and then the slot. err is how the work ended. After a
// panic it waits no longer than grace for the connection: the slot is free then, as at MaxHold.
func (h *hold) giveBack(err error) {
	switch h.state.Load() {
	case broken:
		h.lose()
	case suspect:
		if !bounded(func() { h.close(err) }) {
			h.db.expire(h, err)
		}
	default:
		h.close(err)
	}
}

// close closes the connection, which waits for rows and transactions that are open on it.
func (h *hold) close(err error) {
	db := h.db
	closed := false
	defer func() {
		if !closed { // the driver panicked in it
			db.lost()
			err = errUnwound
		}
		db.dial.cameBack()
		h.leave(err)
	}()
	if (h.kind == OfTx || h.kind == OfDo) && h.ctx.Err() != nil || h.unsure.Load() != 0 {
		discardUnlessReset(h.conn)
	}
	if !db.put(h.conn) && err == errUnwound { //nolint:errorlint // it is ours
		db.out.Add(1)
		db.lost() // the driver panicked before, in closing it
	}
	closed = true
}

// lose ends a hold whose connection is broken. The pool never takes it back, and sql.Conn.Close
// would wait for ever; so the connection of the driver is closed past it.
func (h *hold) lose() {
	h.over.Store(true)
	if h.conn != nil {
		h.db.abandon(h.conn)
	}
	h.leave(errUnwound)
}

// abandon closes the connection of the driver for the database, if that does not wait for
// too long, and counts it as lost.
func (db *DB) abandon(conn *sql.Conn) {
	db.lost()
	bounded(func() {
		raw(conn, func(dc any) error {
			if c, ok := dc.(driver.Conn); ok {
				c.Close() //nolint:errcheck // nobody uses it any more
			}
			return nil // and not ErrBadConn, for which database/sql would wait for its lock
		})
	})
}

// put gives a connection back to the pool, and reports whether that is done. If database/sql
// was first to close it, it may not be.
func (db *DB) put(conn *sql.Conn) bool {
	err := conn.Close()
	db.out.Add(-1)
	return err == nil || db.settle()
}

// lost counts a connection that the pool takes for one in use for ever, as out does.
func (db *DB) lost() {
	db.holds.Lock()
	db.holds.lost++
	db.holds.Unlock()
}

// bounded calls what may never return in a goroutine of its own, and waits for it no longer
// than grace. A panic in it ends it: there is one already that goes on.
func bounded(what func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recover() }() //nolint:errcheck // as above
		what()
	}()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// leave ends a hold that has no connection any more.
func (h *hold) leave(err error) {
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil && h.ctx.Err() != nil {
		err = h.ctx.Err()
	}
	mine := h.db.delist(h, err == nil)
	if h.abort != nil {
		h.abort(nil)
	}
	if mine {
		end(&h.slot, err)
		h.span.End()
	}
}

// end ends a slot with err.
func end(slot *goodput.Slot, err error) {
	if tooMany(err) {
		slot.Dropped()
		return
	}
	slot.Fail(err)
}

// tooMany reports whether the database refused a connection because it has as many as it
// takes. No driver is imported, so an error is known by its SQLState method, which those of
// pgx and lib/pq have, and that of MySQL by its text, as go-sql-driver writes it. Who
// made no attempt, because it was too early for the next one, has heard nothing.
func tooMany(err error) bool {
	var dial *DialError
	if err == nil || errors.As(err, &dial) && !dial.tried {
		return false
	}
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		switch state.SQLState() {
		case "53300", "08004": // too_many_connections of PostgreSQL, and of MySQL 1040
			return true
		}
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); strings.HasPrefix(text, "Error 1040:") || strings.HasPrefix(text, "Error 1040 (08004):") {
			return true
		}
	}
	return false
}

// caught makes a call of the driver, and keeps what a panic in it leaves of the connection.
func (h *hold) caught(leaves int32, call func() error) error {
	returned := false
	defer func() {
		if !returned && h.state.Load() < leaves {
			h.state.Store(leaves)
		}
	}()
	err := call()
	returned = true
	return h.told(err)
}

// told returns what the caller is told of err: at MaxHold that as well, for the context whose
// cause it is may be ours alone.
func (h *hold) told(err error) error {
	if err == nil || h.abort == nil || errors.Is(err, ErrHeldTooLong) || context.Cause(h.ctx) != ErrHeldTooLong { //nolint:errorlint // the cause is what we gave
		return err
	}
	return fmt.Errorf("%w: %w", ErrHeldTooLong, err)
}

// discardUnlessReset closes a connection on which database/sql may be rolling back a
// transaction, because its context ended, unless the driver can tell whether that went
// well. That is what database/sql does as well (Tx.awaitDone), but our Close could be
// first, and would put it into the pool.
func discardUnlessReset(conn *sql.Conn) {
	raw(conn, func(dc any) error {
		_, resets := dc.(driver.SessionResetter)
		_, validates := dc.(driver.Validator)
		if resets && validates {
			return nil
		}
		return driver.ErrBadConn
	})
}

// raw is conn.Raw for a connection that somebody else may be closing. database/sql looks
// whether it is closed before it takes the lock (Conn.grabConn), and panics if it has been
// closed between the two. Then there is nothing left to do, as if it had seen it before.
func raw(conn *sql.Conn, fn func(dc any) error) {
	defer func() { recover() }() //nolint:errcheck // fn does not panic
	conn.Raw(fn)                 //nolint:errcheck // it is closed, or about to be
}

// discard closes a connection when the statement that runs on it returns, so that it does
// not come back into the pool.
func discard(conn *sql.Conn) {
	raw(conn, func(any) error { return driver.ErrBadConn })
}
