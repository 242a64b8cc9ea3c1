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
// then the slot are given back however fn ends. Inside of another Do, with the context that
// its function got, fn runs on the connection of that.
//
// The context of fn ends with it, and so do rows that fn left open on it. Those that it
// opened with another context it must close, because Do waits for them as sql.Conn.Close
// does; and a transaction that it began it must end, before the context of
// that is over: else nobody can tell whether it was rolled back.
//
// Goroutines of fn may share what rides on the connection: each call waits for the one
// before it, within its own deadline. What they do on conn itself, with rows and in
// transactions waits in database/sql, without a deadline: that is for one at a time.
func (db *DB) Do(ctx context.Context, fn func(ctx context.Context, conn *sql.Conn) error) error {
	var at site
	at.mark()
	r, err := db.riding(ctx, OfDo, at)
	if err != nil {
		return err
	}
	if r != nil {
		return fn(ctx, r.on.conn)
	}
	h := &hold{turns: make(chan struct{}, 1)}
	if err := h.begin(ctx, db, OfDo, at); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(h.context())
	err = errUnwound // until fn returns
	defer func() {
		cancel()               // closes the rows that fn left open, or the connection would not come back
		if err == errUnwound { //nolint:errorlint // it is the one above
			h.state.CompareAndSwap(sound, suspect)
		}
		if h.claim() {
			h.giveBack(err)
		}
	}()
	err = h.told(fn(ctx, h.conn))
	return err
}

// aboard makes a call on the connection of Do, in its turn.
func (h *hold) aboard(ctx context.Context, leaves int32, call func() error) error {
	select {
	case h.turns <- struct{}{}:
	default:
		select {
		case h.turns <- struct{}{}:
		case <-ctx.Done():
			return h.told(ctx.Err())
		}
	}
	defer func() { <-h.turns }()
	return h.caught(leaves, call)
}

// Tx runs fn in a transaction: it is committed if fn returns nil, and rolled back if fn
// returns an error or panics, which goes on, or ctx is over. It returns the error of fn,
// or of the commit, with that of ctx if it ended meanwhile; or one as Do returns without
// running fn. opts may be nil.
//
// Inside of Do it begins on the connection of that. Inside of another Tx it fails: SQL has
// no transactions in transactions. fn does not commit or roll back by itself.
func (db *DB) Tx(ctx context.Context, opts *sql.TxOptions, fn func(ctx context.Context, tx *sql.Tx) error) error {
	var at site
	at.mark()
	r, err := db.riding(ctx, OfTx, at)
	if err != nil {
		return err
	}
	if r != nil {
		tx, err := r.on.beginAboard(ctx, opts)
		if err != nil {
			return err
		}
		inside := &ride{on: r.on, tx: true}
		return r.on.transact(inside.with(ctx), tx, fn)
	}
	h := new(hold)
	if err := h.begin(ctx, db, OfTx, at); err != nil {
		return err
	}
	h.ride.tx = true
	err = errUnwound // until fn returns
	defer func() {
		if h.claim() {
			h.giveBack(err)
		}
	}()
	tx, err := h.beginTx(h.ctx, opts)
	if err != nil {
		return err
	}
	err = errUnwound
	err = h.transact(h.context(), tx, fn)
	return err
}

// beginTx begins, on another connection if this one turns out to be bad.
func (h *hold) beginTx(ctx context.Context, opts *sql.TxOptions) (tx *sql.Tx, err error) {
	for left := 0; ; {
		err := h.caught(broken, func() (err error) { tx, err = h.conn.BeginTx(ctx, opts); return err })
		if err == nil {
			h.unsure.Add(1)
			return tx, nil
		}
		if more, err := h.again(err, &left); !more {
			return nil, err
		}
	}
}

// beginAboard begins on the connection of Do.
func (h *hold) beginAboard(ctx context.Context, opts *sql.TxOptions) (tx *sql.Tx, err error) {
	err = h.aboard(ctx, broken, func() error { tx, err = h.conn.BeginTx(ctx, opts); return err })
	if err != nil {
		return nil, err
	}
	h.unsure.Add(1)
	return tx, nil
}

// transact runs fn and ends tx.
func (h *hold) transact(ctx context.Context, tx *sql.Tx, fn func(context.Context, *sql.Tx) error) error {
	returned := false
	defer func() {
		// If the driver panicked in a query, sql.Tx.Rollback waits for ever.
		if !returned && !bounded(func() { h.undo(tx) }) { //nolint:errcheck // the panic is what counts
			h.state.CompareAndSwap(sound, suspect)
		}
	}()
	err := fn(ctx, tx)
	returned = true
	if err != nil {
		if undone := h.undo(tx); undone != nil && ctx.Err() == nil && !errors.Is(undone, sql.ErrTxDone) {
			err = errors.Join(err, undone)
		}
		return h.told(err)
	}
	err = h.ends(tx.Commit)
	switch ended := ctx.Err(); {
	case err == nil || ended == nil || errors.Is(err, ended):
		return err
	case errors.Is(err, sql.ErrTxDone):
		return h.told(ended) // and not that somebody has ended it
	default:
		return errors.Join(err, ended)
	}
}
