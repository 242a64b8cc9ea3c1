package goodputsql

import (
	"context"
	"database/sql"
	"errors"
)

// errUnwound is what a slot fails with whose function did not return.
var errUnwound = errors.New("goodputsql: the function panicked or called runtime.Goexit")

// Do runs fn with a connection of its own and returns its error; or a *goodput.Rejection,
// *NestedError, *DialError or the driver's error, without running it. The connection and
// then the slot are given back however fn ends. Inside of another Do, with the context that its
// function got, fn runs on the connection of that.
//
// The context of fn ends with it, and rows and transactions that fn left open on it end
// too. Those that it opened with another context it must close: Do waits for them, as
// sql.Conn.Close does.
func (db *DB) Do(ctx context.Context, fn func(ctx context.Context, conn *sql.Conn) error) error {
	site := caller()
	r, err := db.riding(ctx, site)
	if err != nil {
		return err
	}
	if r != nil {
		return fn(ctx, r.on.conn)
	}
	return db.hold(ctx, OfDo, site, func(ctx context.Context, h *hold) error {
		return fn((&ride{on: h}).with(ctx), h.conn)
	})
}

// hold runs fn with a hold, and with a context that ends with it.
func (db *DB) hold(ctx context.Context, kind Kind, site uintptr, fn func(context.Context, *hold) error) (err error) {
	h := new(hold)
	if err := h.begin(ctx, db, kind, site); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(h.slot.Context(h.ctx))
	returned := false
	defer func() {
		cancel() // closes the rows that fn left open, or the connection would not come back
		if !returned {
			err = errUnwound
		}
		if h.claim() {
			h.giveBack(err)
		}
	}()
	err = fn(ctx, h)
	returned = true
	return err
}

// Tx runs fn in a transaction: it is committed if fn returns nil, and rolled back if fn
// returns an error or panics, which goes on, or ctx is over. It returns the error of fn,
// or of the commit; or one as Do returns without running fn. opts may be nil.
//
// Inside of Do it begins on the connection of that. Inside of another Tx it fails: SQL has
// no transactions in transactions. fn does not commit or roll back by itself.
func (db *DB) Tx(ctx context.Context, opts *sql.TxOptions, fn func(ctx context.Context, tx *sql.Tx) error) error {
	site := caller()
	r, err := db.riding(ctx, site)
	if err != nil {
		return err
	}
	if r != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		tx, err := r.on.conn.BeginTx(ctx, opts)
		if err != nil {
			return err
		}
		return transact(ctx, r.on, tx, fn)
	}
	return db.hold(ctx, OfTx, site, func(ctx context.Context, h *hold) error {
		tx, err := h.beginTx(ctx, opts)
		if err != nil {
			return err
		}
		return transact(ctx, h, tx, fn)
	})
}

// beginTx begins, on another connection if this one turns out to be bad.
func (h *hold) beginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error) {
	for left := 0; ; {
		tx, err := h.conn.BeginTx(ctx, opts)
		if err == nil || !h.again(err, &left) {
			return tx, err
		}
	}
}

// transact runs fn and ends tx.
func transact(ctx context.Context, on *hold, tx *sql.Tx, fn func(context.Context, *sql.Tx) error) error {
	returned := false
	defer func() {
		if !returned {
			tx.Rollback() //nolint:errcheck // the panic is what counts
		}
	}()
	err := fn((&ride{on: on, tx: true}).with(ctx), tx)
	returned = true
	if err != nil {
		if undone := tx.Rollback(); undone != nil && ctx.Err() == nil && !errors.Is(undone, sql.ErrTxDone) {
			return errors.Join(err, undone)
		}
		return err
	}
	err = tx.Commit()
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // and not that somebody has ended it
	}
	return err
}
