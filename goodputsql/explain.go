package goodputsql

import (
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/goodput/goodput"
)

// Explain returns what the limiter does and why, as goodput.Limiter.Explain, and below that
// a few lines about the connections: whether the pool can queue, what is held and for how
// long, and since when the database cannot be reached. What there is nothing of has no
// line. It costs as much as Stats and goodput.Limiter.Stats.
func (db *DB) Explain() string {
	var b strings.Builder
	b.WriteString(db.lim.Explain())
	s, at := db.Stats(), db.lim.Stats()
	db.explainPool(&b, &s, &at)
	db.explainHeld(&b, &s)
	if s.DialFailures > 0 {
		explainDials(&b, &s, time.Now())
	}
	return b.String()
}

// explainPool says whether those with a slot find a connection at once.
func (db *DB) explainPool(b *strings.Builder, s *Stats, at *goodput.Stats) {
	is := db.pool.Stats()
	most := "no bound on connections (MaxOpenConns 0)"
	if is.MaxOpenConnections > 0 {
		most = fmt.Sprintf("at most %s (MaxOpenConns)", counted(is.MaxOpenConnections, "connection"))
	}
	fmt.Fprintf(b, "  pool     %s, and a limit of %d; %d open, %d of them idle\n", most, at.Limit, is.OpenConnections, is.Idle)
	is.MaxOpenConnections -= lostOf(&is, s)
	tooLow := queues(is, at.Limit)
	switch {
	case s.Lost > 0 && tooLow:
		fmt.Fprintf(b, "           the driver panicked, and %s lost: the pool has room for %d and the limit of %s is %d, so callers with a slot queue in the pool, out of order: mend the driver, and restart\n",
			counted(int(s.Lost), "connection"), is.MaxOpenConnections, db.lim.Name(), at.Limit)
	case s.Lost > 0:
		fmt.Fprintf(b, "           the driver panicked, and %s lost: the pool counts them in MaxOpenConns for ever\n", counted(int(s.Lost), "connection"))
	case tooLow:
		fmt.Fprintf(b, "           MaxOpenConns %d is below the limit %d of %s, so callers with a slot queue in the pool, out of order: raise one or lower the other\n",
			is.MaxOpenConnections, at.Limit, db.lim.Name())
	}
	switch {
	case s.Queued == 0:
	case tooLow:
		fmt.Fprintf(b, "           %d have waited in its queue since New\n", s.Queued)
	case at.Observe:
		fmt.Fprintf(b, "           %d have waited in its queue since New: the limiter observes, and limits nothing\n", s.Queued)
	default:
		fmt.Fprintf(b, "           %d have waited in its queue since New: others use the pool past the limiter, or MaxOpenConns was below the limit for a time\n", s.Queued)
	}
}

// lostOf returns how many of MaxOpenConns are lost, all but one at most: 0 would be no bound.
func lostOf(is *sql.DBStats, s *Stats) int {
	return max(0, min(int(s.Lost), is.MaxOpenConnections-1))
}

// explainHeld says what has a connection now, and how many had one for too long.
func (db *DB) explainHeld(b *strings.Builder, s *Stats) {
	fmt.Fprintf(b, "  held     %s now", counted(s.Held, "connection"))
	if s.Held > 0 {
		fmt.Fprintf(b, "; the longest for %v, by %v taken at %s", short(s.Longest.For), s.Longest.Kind, s.Longest.Site)
	}
	b.WriteString("\n")
	if s.Long > 0 {
		fmt.Fprintf(b, "           %d since New were held for longer than %v (LongHold)", s.Long, db.cfg.LongHold)
		if s.Cut > 0 {
			fmt.Fprintf(b, ", %d of them for %v (MaxHold), and told to end", s.Cut, db.cfg.MaxHold)
		}
		b.WriteString("\n")
	}
	if s.Overdue > 0 {
		fmt.Fprintf(b, "           %s still out %v after the end, and their slots are given to others: the database may see so many more than the limit\n", counted(s.Overdue, "connection"), grace)
	}
}

// explainDials says since when there is no new connection, and when that is tried again.
func explainDials(b *strings.Builder, s *Stats, now time.Time) {
	next := "due now"
	if in := s.NextDial.Sub(now); in > 0 {
		next = "in " + short(in).String()
	}
	fmt.Fprintf(b, "  dials    %s failed in a row since %s, %v ago; the next is %s: %v\n",
		counted(s.DialFailures, "attempt"), s.DialsSince.Format(time.RFC3339), short(now.Sub(s.DialsSince)), next, s.DialError)
	b.WriteString("           idle connections still serve; who needs a new one soon fails with a *DialError, until an attempt succeeds\n")
}

// short drops the digits of a duration that nobody reads.
func short(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// counted returns n things in words.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
