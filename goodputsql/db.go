package goodputsql

import (
	"context"
	"database/sql"
)

// ExecContext executes a statement that returns no rows.
func (db *DB) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	var at site
	at.mark()
	r, err := db.riding(ctx, OfExec, at)
	if err != nil {
		return nil, err
	}
	if r != nil {
		var res sql.Result
		err := r.on.aboard(ctx, suspect, func() (err error) { res, err = r.on.conn.ExecContext(ctx, query, args...); return err })
		return res, err
	}
	h := new(hold)
	if err := h.begin(ctx, db, OfExec, at); err != nil {
		return nil, err
	}
	err = errUnwound // until the driver returns
	defer func() {
		if h.claim() {
			h.giveBack(err)
		}
	}()
	for left := 0; ; {
		var res sql.Result
		if res, err = h.conn.ExecContext(h.ctx, query, args...); err == nil {
			return res, nil
		}
		var more bool
		if more, err = h.again(err, &left); !more {
			return nil, h.told(err)
		}
	}
}

// QueryContext executes a query. Its slot and connection are held until the rows are read
// to their end or closed, or ctx is over: see Rows.
func (db *DB) QueryContext(ctx context.Context, query string, args ...any) (*Rows, error) {
	var at site
	at.mark()
	rows := new(Rows)
	if err := db.query(ctx, at, rows, query, args); err != nil {
		return nil, err
	}
	return rows, nil
}

// query executes a query into rows. If it returns an error they hold nothing.
func (db *DB) query(ctx context.Context, at site, rows *Rows, query string, args []any) error {
	r, err := db.riding(ctx, OfRows, at)
	if err != nil {
		return err
	}
	if r != nil {
		rows.on = r.on
		return r.on.aboard(ctx, broken, func() (err error) { rows.rows, err = r.on.conn.QueryContext(ctx, query, args...); return err })
	}
	h := &rows.hold
	if err := h.begin(ctx, db, OfRows, at); err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned {
			h.lose()
		}
	}()
	for left := 0; ; {
		if rows.rows, err = h.conn.QueryContext(ending{h}, query, args...); err == nil {
			break
		}
		var more bool
		if more, err = h.again(err, &left); !more {
			break
		}
	}
	returned = true
	if err != nil {
		h.claim()
		h.giveBack(err)
		return h.told(err)
	}
	ending{h}.watch()
	return nil
}

// QueryRowContext executes a query that is expected to return one row at most. It always
// returns a Row; errors are kept until its Scan, which also gives back its slot and connection.
func (db *DB) QueryRowContext(ctx context.Context, query string, args ...any) *Row {
	var at site
	at.mark()
	row := new(Row)
	row.err = db.query(ctx, at, &row.rows, query, args)
	return row
}

// BeginTx begins a transaction. Its slot and connection are held until it is committed or
// rolled back, or ctx is over. Tx, the method, is harder to get wrong. opts may be nil.
func (db *DB) BeginTx(ctx context.Context, opts *sql.TxOptions) (*Tx, error) {
	var at site
	at.mark()
	r, err := db.riding(ctx, OfTx, at)
	if err != nil {
		return nil, err
	}
	if r != nil {
		tx, err := r.on.beginAboard(ctx, opts)
		if err != nil {
			return nil, err
		}
		return &Tx{Tx: tx, hold: r.on, rides: true}, nil
	}
	h := new(hold)
	if err := h.begin(ctx, db, OfTx, at); err != nil {
		return nil, err
	}
	returned := false
	defer func() {
		if !returned {
			h.lose()
		}
	}()
	tx, err := h.beginTx(h.ctx, opts)
	returned = true
	if err != nil {
		h.claim()
		h.giveBack(err)
		return nil, h.told(err)
	}
	h.watch()
	return &Tx{Tx: tx, hold: h}, nil
}

// Conn returns a connection. Its slot and connection are held until its Close, even if ctx
// is over before: as with *sql.DB that is only for the time until there is one. Do is
// harder to get wrong. Inside of Do it is the connection of that, and Close leaves it there.
func (db *DB) Conn(ctx context.Context) (*Conn, error) {
	var at site
	at.mark()
	r, err := db.riding(ctx, OfConn, at)
	if err != nil {
		return nil, err
	}
	if r != nil {
		return &Conn{Conn: r.on.conn, hold: r.on, rides: true}, nil
	}
	h := new(hold)
	if err := h.begin(ctx, db, OfConn, at); err != nil {
		return nil, err
	}
	return &Conn{Conn: h.conn, hold: h}, nil
}
