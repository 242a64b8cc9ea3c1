package goodputsql

import (
	"context"
	"database/sql"
	"errors"
)

// A Tx is a *sql.Tx with the slot and the connection it holds. They are given back by the
// Commit and Rollback of the Tx, and when the context that began it is over, which rolls
// back. The *sql.Tx in it is for what needs one; its own Commit and Rollback leave the slot
// until then. A copy is the same transaction.
type Tx struct {
	*sql.Tx
	hold  *hold
	rides bool // on the connection of Do, whose hold it is
}

// Commit commits the transaction. See sql.Tx.Commit.
func (t *Tx) Commit() error {
	return t.end(func() error { return t.hold.ends(t.Tx.Commit) })
}

// Rollback rolls the transaction back: the work counts as done, not as failed. See
// sql.Tx.Rollback.
func (t *Tx) Rollback() error {
	return t.end(func() error { return t.hold.undo(t.Tx) })
}

func (t *Tx) end(how func() error) error {
	h := t.hold
	mine := !t.rides && h.claim()
	ended := error(errUnwound)
	defer func() {
		if mine {
			h.giveBack(ended)
		}
	}()
	if h.state.Load() == broken {
		return errUnwound // it would wait for ever
	}
	ended = how()
	return ended
}

// ends makes a call that ends a transaction.
func (h *hold) ends(how func() error) error {
	err := h.caught(broken, how)
	if !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		h.unsure.Add(-1) // it was this call and not, perhaps still busy with it, database/sql
	}
	return err
}

// undo rolls back. Where that fails the transaction is still open.
func (h *hold) undo(tx *sql.Tx) error {
	err := h.ends(tx.Rollback)
	if err != nil && !errors.Is(err, sql.ErrTxDone) {
		h.unsure.Add(1)
	}
	return err
}

// ExecContext is sql.Tx.ExecContext.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (res sql.Result, err error) {
	err = t.hold.caught(suspect, func() error { res, err = t.Tx.ExecContext(ctx, query, args...); return err })
	return res, err
}

// QueryContext is sql.Tx.QueryContext.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	err = t.hold.caught(broken, func() error { rows, err = t.Tx.QueryContext(ctx, query, args...); return err })
	return rows, err
}

// QueryRowContext is sql.Tx.QueryRowContext.
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) (row *sql.Row) {
	t.hold.caught(broken, func() error { row = t.Tx.QueryRowContext(ctx, query, args...); return nil }) //nolint:errcheck // it is in the row
	return row
}

// A Conn is a *sql.Conn with its slot. Both are given back by the Close of the Conn; that of
// the *sql.Conn in it leaves the slot. A copy is the same connection.
type Conn struct {
	*sql.Conn
	hold  *hold
	rides bool // on the connection of Do, whose hold it is
}

// Close waits for what still runs on the connection and gives it back, and then the slot.
// Another Close returns sql.ErrConnDone.
func (c *Conn) Close() error {
	switch {
	case c.rides:
		return nil
	case !c.hold.claim():
		return c.hold.told(sql.ErrConnDone)
	}
	c.hold.giveBack(nil)
	return nil
}

// PingContext is sql.Conn.PingContext.
func (c *Conn) PingContext(ctx context.Context) error {
	return c.hold.caught(broken, func() error { return c.Conn.PingContext(ctx) })
}

// ExecContext is sql.Conn.ExecContext.
func (c *Conn) ExecContext(ctx context.Context, query string, args ...any) (res sql.Result, err error) {
	err = c.hold.caught(suspect, func() error { res, err = c.Conn.ExecContext(ctx, query, args...); return err })
	return res, err
}

// QueryContext is sql.Conn.QueryContext.
func (c *Conn) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	err = c.hold.caught(broken, func() error { rows, err = c.Conn.QueryContext(ctx, query, args...); return err })
	return rows, err
}

// QueryRowContext is sql.Conn.QueryRowContext.
func (c *Conn) QueryRowContext(ctx context.Context, query string, args ...any) (row *sql.Row) {
	c.hold.caught(broken, func() error { row = c.Conn.QueryRowContext(ctx, query, args...); return nil }) //nolint:errcheck // it is in the row
	return row
}

// BeginTx is sql.Conn.BeginTx.
func (c *Conn) BeginTx(ctx context.Context, opts *sql.TxOptions) (tx *sql.Tx, err error) {
	err = c.hold.caught(broken, func() error { tx, err = c.Conn.BeginTx(ctx, opts); return err })
	return tx, err
}
