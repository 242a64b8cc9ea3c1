package goodputsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputsql"
)

// stateError is an error as those of pgx and lib/pq are.
type stateError string

func (e stateError) Error() string    { return "server error " + string(e) }
func (e stateError) SQLState() string { return string(e) }

// F33: a database that has as many connections as it takes says so: that is a drop and no
// sample, and an attempt that was not made is none. Other errors, and callers that left, are
// none either.
func TestTooManyConnectionsAreDrops(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		drop bool
	}{
		{"PostgreSQL", stateError("53300"), true},
		{"PostgreSQL, wrapped", fmt.Errorf("connect: %w", stateError("53300")), true},
		{"MySQL", errors.New("Error 1040: Too many connections"), true},
		{"MySQL, newer", errors.New("Error 1040 (08004): Too many connections"), true},
		{"MySQL, wrapped", fmt.Errorf("connect: %w", errors.New("Error 1040 (08004): Too many connections")), true},
		{"MySQL by its state", stateError("08004"), true},
		{"starting up", stateError("57P03"), false},
		{"wrong password", stateError("28P01"), false},
		{"MySQL, no access", errors.New("Error 1045 (28000): Access denied"), false},
		{"a text that quotes it", errors.New("cannot parse \"Error 1040: Too many connections\""), false},
		{"another one", errServer, false},
		{"the caller left", context.Canceled, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, lim := &server{}, fixed(2)
			s.dials = func(int) error { return c.err }
			db, _ := s.behind(t, lim, goodputsql.Config{})
			_, err := db.ExecContext(t.Context(), "ok")
			if !errors.Is(err, c.err) {
				t.Fatalf("%s: %v", c.name, err)
			}
			// In the pauses between attempts nobody is asked, and most callers hear of the last
			// one: no more of them are drops than attempts were made.
			for range 100 {
				_, _ = db.ExecContext(t.Context(), "ok")
			}
			time.Sleep(time.Second)
			attempts := uint64(s.dialled.Load())
			least, most := uint64(0), uint64(0)
			if c.drop {
				least, most = 2, attempts
			}
			st := lim.Stats()
			if st.Dropped < least || st.Dropped > most || st.Derivation.Samples != 0 || st.Outcomes[goodput.Completed] != 0 {
				t.Errorf("%s: %d drops of 101 calls, %d attempts, %d samples of %v", c.name, st.Dropped, attempts, st.Derivation.Samples, st.Outcomes)
			}
		})
	}
}

// A statement that ends with such an error, as of a function that connects elsewhere, is a
// drop as well.
func TestTooManyConnectionsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, lim := &server{}, fixed(2)
		db, _ := s.behind(t, lim, goodputsql.Config{})
		err := db.Do(t.Context(), func(context.Context, *sql.Conn) error { return stateError("53300") })
		if err == nil {
			t.Fatal("no error")
		}
		time.Sleep(time.Second)
		if st := lim.Stats(); st.Dropped != 1 {
			t.Errorf("%d drops", st.Dropped)
		}
	})
}
