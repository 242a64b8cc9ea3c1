package goodputsql

import (
	"database/sql"
	"database/sql/driver"
)

// A Tx is a *sql.Tx with the slot and the connection it holds. They are given back by the
// Commit and Rollback of the Tx, and when the context that began it is over, which rolls
// back. The *sql.Tx in it is for what needs one; its own Commit and Rollback leave the slot
// until then. It is two pointers: a copy is the same transaction.
type Tx struct {
	*sql.Tx
	hold *hold // nil: it rides on the connection of Do
}

// Commit commits the transaction. See sql.Tx.Commit.
func (t *Tx) Commit() error { return t.end(t.Tx.Commit) }

// Rollback rolls the transaction back: the work counts as done, not as failed. See
// sql.Tx.Rollback.
func (t *Tx) Rollback() error { return t.end(t.Tx.Rollback) }

func (t *Tx) end(how func() error) error {
	if t.hold == nil || !t.hold.claim() {
		return how()
	}
	err := how()
	t.hold.giveBack(err)
	return err
}

// A Conn is a *sql.Conn with its slot. Both are given back by the Close of the Conn; that of
// the *sql.Conn in it leaves the slot. A copy is the same connection.
type Conn struct {
	*sql.Conn
	hold *hold // nil: it rides on the connection of Do
}

// Close waits for what still runs on the connection and gives it back, and then the slot.
// Another Close returns sql.ErrConnDone.
func (c *Conn) Close() error {
	switch {
	case c.hold == nil:
		return nil
	case !c.hold.claim():
		return sql.ErrConnDone
	}
	c.hold.giveBack(nil)
	return nil
}

// discard closes a connection when the statement that runs on it returns, so that it does
// not come back into the pool.
func discard(conn *sql.Conn) {
	raw(conn, func(any) error { return driver.ErrBadConn })
}

// lose ends the hold of a driver that panicked inside of a statement. database/sql never
// takes back the connection then, and would wait for it for ever.
func (h *hold) lose() {
	h.over.Store(true)
	h.leave(errUnwound)
}
