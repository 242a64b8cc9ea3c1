package goodputsql

import (
	"database/sql"
	"time"
)

// enlist adds a hold, which has a slot and no connection yet.
func (db *DB) enlist(h *hold) {
	l := &db.holds
	l.Lock()
	defer l.Unlock()
	h.since = db.now() // under the lock, so that the list is in order
	h.prev = l.last
	if l.last != nil {
		l.last.next = h
	} else {
		l.first = h
	}
	l.last = h
	l.n++
	if !l.running {
		l.running = true
		if l.timer == nil {
			l.timer = time.AfterFunc(db.cfg.LongHold, db.sweep)
		} else {
			l.timer.Reset(db.cfg.LongHold)
		}
	}
}

// delist takes out a hold whose connection is back, and reports whether its slot is still
// to be ended, by the caller.
func (db *DB) delist(h *hold, good bool) bool {
	l := &db.holds
	l.Lock()
	defer l.Unlock()
	l.at[l.ended.Load()%remembered] = db.now()
	l.ended.Add(1)
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		l.first = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	} else {
		l.last = h.prev
	}
	h.prev, h.next = nil, nil
	l.n--
	if good && l.answer != nil {
		close(l.answer)
		l.answer = nil
	}
	if h.freed {
		l.overdue--
		return false
	}
	h.freed = true
	return true
}

// expire ends the slot of a hold whose connection is still out, if that is not done yet.
func (db *DB) expire(h *hold, err error) {
	l := &db.holds
	l.Lock()
	first := !h.freed
	if first {
		h.freed = true
		l.overdue++
	}
	l.Unlock()
	if first {
		h.slot.Fail(err)
		h.span.End()
	}
}

// sweep looks for what is held too long, and says when to look again. It runs in the
// goroutine of the timer.
func (db *DB) sweep() {
	var long []Hold
	var cut, late []*hold
	var idle []*hold // of those that are cut, if they may be held without a statement
	l := &db.holds
	l.Lock()
	now, next := db.now(), db.cfg.LongHold
	for h := l.first; h != nil; h = h.next {
		age := now - h.since
		if age < db.cfg.LongHold {
			next = min(next, db.cfg.LongHold-age) // the others are younger
			break
		}
		if !h.long {
			h.long = true
			l.long++
			long = append(long, h.describe(now))
		}
		due := db.cfg.MaxHold
		switch {
		case due == 0 || h.freed:
			continue
		case h.cut:
			due += grace
		}
		switch {
		case age < due:
			next = min(next, due-age)
		case h.cut:
			h.freed = true
			l.overdue++
			late = append(late, h)
		default:
			h.cut = true
			l.cut++
			cut = append(cut, h)
			if h.conn != nil && (h.kind == OfDo || h.kind == OfConn) {
				idle = append(idle, h)
			}
			next = min(next, grace)
		}
	}
	if l.running = l.first != nil; l.running {
		l.timer.Reset(max(next, minHold))
	}
	l.Unlock()

	for _, h := range cut {
		h.abort(ErrHeldTooLong)
	}
	for _, h := range idle {
		go h.drop(h.conn)
	}
	for _, h := range late {
		h.slot.Fail(ErrHeldTooLong)
		h.span.End()
	}
	for _, one := range long {
		if db.cfg.OnLongHold != nil {
			go db.cfg.OnLongHold(one)
		}
	}
	db.follow()
}

// drop closes the connection of a hold that was cut, after the statement that runs on it. A Conn
// that nobody closes holds nothing then.
func (h *hold) drop(conn *sql.Conn) {
	discard(conn)
	if h.kind == OfConn && h.claim() {
		h.giveBack(ErrHeldTooLong)
	}
}

// follow makes the pool keep as many idle connections as the limit is now.
func (db *DB) follow() {
	limit := db.lim.Stats().Limit
	l := &db.holds
	l.Lock()
	changed := limit != l.limit
	l.limit = limit
	l.Unlock()
	if changed {
		db.keepIdle(limit)
	}
}

// settle waits until a connection that database/sql discards by itself, and which is no
// longer ours to close, is closed: until the pool has given out no more than others have or
// ask for. It looks twice, because one who asks is counted a moment before the pool does.
// That takes a driver a system call or two, so after 50 ms somebody is using the pool past
// us, and there is nothing to wait for. It reports whether all is as it should be.
func (db *DB) settle() bool {
	calm := false
	for pause := 50 * time.Microsecond; pause <= 26*time.Millisecond; pause *= 2 {
		was := calm
		calm = int64(db.pool.Stats().InUse) <= db.out.Load()
		if calm && was {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

// remembered is of how many connections that came back it is known when: more than most
// limits, so that those who end a wait for each other together do not hide it.
const remembered = 1024

// stuck reports whether nobody gave a connection back in a wait that ends now, while the
// number of those that had was ended at first; in the first nine tenths of it, that is, for
// those that wait for each other leave together at the end, and then give back.
func (db *DB) stuck(ended uint64, waited time.Duration) bool {
	l := &db.holds
	l.Lock()
	defer l.Unlock()
	switch n := l.ended.Load() - ended; {
	case waited == 0, n > remembered:
		return false
	case n == 0:
		return true
	}
	return l.at[ended%remembered] > db.now()-waited/10
}

// inTheWay returns a hold of the same request as a context with that Done; or else, if
// nothing moves, the oldest, and true. A statement that runs waits for nobody, so it is in
// nobody's way but as load is.
func (db *DB) inTheWay(scope <-chan struct{}, stuck bool) (holder Hold, oldest bool) {
	l := &db.holds
	l.Lock()
	defer l.Unlock()
	var first *hold
	for h := l.first; h != nil; h = h.next {
		switch {
		case h.kind == OfExec:
		case scope != nil && h.scope == scope:
			return h.describe(db.now()), false
		case stuck && first == nil:
			first = h
		}
	}
	if first == nil {
		return Hold{}, false
	}
	return first.describe(db.now()), true
}
