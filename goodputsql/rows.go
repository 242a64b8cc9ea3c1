package goodputsql

import (
	"database/sql"
	"errors"
	"sync/atomic"
)

// Rows are the *sql.Rows of a query, with the slot and the connection they hold. Both are given
// back when Next or NextResultSet finds nothing more, at Close, and when the context of the
// query is over: rows that somebody forgot to close end with their request. The methods
// are those of *sql.Rows and, but for Close, not for concurrent use.
type Rows struct {
	rows   *sql.Rows
	hold   hold
	on     *hold       // of Do, if they ride on its connection: then hold is empty
	locked atomic.Bool // for ever, by a panic
}

// holder returns the hold on whose connection the rows are.
func (r *Rows) holder() *hold {
	if r.on != nil {
		return r.on
	}
	return &r.hold
}

// Next prepares the next row for Scan. See sql.Rows.Next.
func (r *Rows) Next() bool { return r.advance((*sql.Rows).Next) }

// NextResultSet prepares the next result set. See sql.Rows.NextResultSet.
func (r *Rows) NextResultSet() bool { return r.advance((*sql.Rows).NextResultSet) }

func (r *Rows) advance(how func(*sql.Rows) bool) bool {
	if r.locked.Load() {
		return false
	}
	returned := false
	defer func() {
		if !returned {
			r.unwound()
		}
	}()
	more := how(r.rows) || r.ended()
	returned = true
	return more
}

// unwound closes the rows after a driver panicked, unless that was in closing them.
func (r *Rows) unwound() {
	if _, err := r.rows.Columns(); err != nil {
		r.lose()
		return
	}
	r.Close() //nolint:errcheck // the panic is what counts
}

// lose gives back the slot of rows that database/sql has locked for ever.
func (r *Rows) lose() {
	r.locked.Store(true)
	r.holder().state.Store(broken)
	if r.on == nil && r.hold.claim() {
		r.hold.giveBack(errUnwound)
	}
}

// ended gives back what the rows hold if database/sql has closed them; after the last row there may be
// another result set. It returns false.
func (r *Rows) ended() bool {
	if r.on != nil {
		return false
	}
	if _, err := r.rows.Columns(); err != nil && r.hold.claim() { // they are closed
		r.hold.giveBack(r.rows.Err())
	}
	return false
}

// Scan copies the columns of the current row. See sql.Rows.Scan.
func (r *Rows) Scan(dest ...any) error {
	if r.locked.Load() {
		return errUnwound
	}
	returned := false
	defer func() {
		if !returned {
			r.lose()
		}
	}()
	err := r.rows.Scan(dest...)
	returned = true
	return r.holder().told(err)
}

// Err returns the error that ended the rows, if one did. See sql.Rows.Err.
func (r *Rows) Err() error {
	if r.locked.Load() {
		return errUnwound
	}
	return r.holder().told(r.rows.Err())
}

// Columns returns the names of the columns. See sql.Rows.Columns.
func (r *Rows) Columns() ([]string, error) { return r.rows.Columns() }

// ColumnTypes returns what is known of the columns. See sql.Rows.ColumnTypes.
func (r *Rows) ColumnTypes() ([]*sql.ColumnType, error) { return r.rows.ColumnTypes() }

// Close closes the rows and gives back what they hold. It may be called more than once.
func (r *Rows) Close() error {
	if r.locked.Load() {
		return errUnwound
	}
	mine := r.on == nil && r.hold.claim()
	ended := error(errUnwound)
	defer func() {
		if ended == errUnwound { //nolint:errorlint // the driver panicked
			r.locked.Store(true)
			r.holder().state.Store(broken)
		}
		if mine {
			r.hold.giveBack(ended)
		}
	}()
	err := r.rows.Close()
	if ended = r.rows.Err(); ended == nil {
		ended = err
	}
	return r.holder().told(err)
}

// A Row is the result of QueryRowContext.
type Row struct {
	rows Rows
	err  error
}

// Scan copies the columns of the first row and gives back what the query holds. It returns
// sql.ErrNoRows if there is none. See sql.Row.Scan.
func (r *Row) Scan(dest ...any) (err error) {
	if r.err != nil {
		return r.err
	}
	defer func() {
		if closed := r.rows.Close(); err == nil {
			err = closed
		}
	}()
	for _, d := range dest {
		if _, raw := d.(*sql.RawBytes); raw {
			return errors.New("goodputsql: RawBytes would be gone when Row.Scan returns: scan into a []byte")
		}
	}
	if !r.rows.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	return r.rows.Scan(dest...)
}

// Err returns the error of the query, without scanning.
func (r *Row) Err() error { return r.err }
