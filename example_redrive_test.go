package goodput_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// The code of docs/redrive.md: an outbox, here in memory, and what drains it.

// A message is work that has to happen, as a row of the outbox.
type message struct {
	id       int
	key      string    // what it is about: order is kept within it
	once     string    // the idempotency key: made with the row, the same in every attempt
	body     string    // what to do
	created  time.Time // its age is what is watched
	attempts int
	next     time.Time // not before
}

// An outbox is a table in the database of the service. Its mutex is the transaction.
type outbox struct {
	mu   sync.Mutex
	last int
	rows []message // by id
	dead []string  // what nobody could deliver, and why: somebody has to look
}

// claim returns the first row that is due, of those that are the oldest of their key, and
// hides it until the lease ends: if whoever claimed it dies, it comes back by itself.
func (o *outbox) claim(now time.Time, lease time.Duration) (message, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := map[string]bool{}
	for i := range o.rows {
		m := &o.rows[i]
		if !seen[m.key] && !m.next.After(now) {
			m.next = now.Add(lease)
			m.attempts++
			return *m, true
		}
		seen[m.key] = true
	}
	return message{}, false
}

func (o *outbox) remove(m message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows = slices.DeleteFunc(o.rows, func(r message) bool { return r.id == m.id })
}

func (o *outbox) later(m message, next time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i, _ := slices.BinarySearchFunc(o.rows, m.id, func(r message, id int) int { return cmp.Compare(r.id, id) })
	o.rows[i].next = next
}

func (o *outbox) bury(m message, why string) {
	o.remove(m)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = append(o.dead, m.body+": "+why)
}

// oldest returns the age of the oldest row: the number to watch.
func (o *outbox) oldest(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rows) == 0 {
		return 0
	}
	return now.Sub(o.rows[0].created)
}

// A shop keeps its orders and its outbox in one database.
type shop struct {
	outbox
	orders []string
}

// place is the handler of an order: the change and the work that follows from it are
// written together or not at all. It calls nobody.
func (s *shop) place(now time.Time, customer, order string) {
	s.mu.Lock() // begin
	defer s.mu.Unlock()
	s.orders = append(s.orders, order)
	s.last++
	s.rows = append(s.rows, message{
		id: s.last, key: customer, once: fmt.Sprintf("order-%d", s.last), body: order, created: now, next: now,
	})
}

// A redriver hands the rows of an outbox to whoever has to act on them.
type redriver struct {
	outbox *outbox
	lim    *goodput.Limiter // of the receiver: the one that its other callers meet
	send   func(ctx context.Context, once, body string) error
	lease  time.Duration // longer than an attempt takes
	tooOld time.Duration // older ones are for a person to decide
	idle   time.Duration // between two looks at an empty outbox
}

// errPermanent is what the receiver says that will not change.
var errPermanent = errors.New("cannot be done")

// backoff is the wait after so many attempts: even between 0 and a second, doubled with
// each, five minutes at most.
func backoff(attempts int) time.Duration {
	bound := min(time.Second<<min(attempts, 16), 5*time.Minute)
	return rand.N(bound)
}

// step handles one message and returns how long to rest before the next.
func (r *redriver) step(ctx context.Context, now time.Time) time.Duration {
	m, ok := r.outbox.claim(now, r.lease)
	if !ok {
		return r.idle
	}
	if now.Sub(m.created) > r.tooOld {
		r.outbox.bury(m, "too old")
		return 0
	}
	ctx, cancel := context.WithTimeout(goodput.WithPriority(ctx, goodput.Background), r.lease/2)
	defer cancel()
	err := r.lim.Do(ctx, func(ctx context.Context) error {
		return r.send(ctx, m.once, m.body)
	})
	refused := (*goodput.Rejection)(nil)
	switch {
	case err == nil:
		r.outbox.remove(m)
	case errors.As(err, &refused): // not executed, and the next one would not be either
		r.outbox.later(m, now)
		return max(refused.Jittered(), r.idle)
	case errors.Is(err, errPermanent):
		r.outbox.bury(m, err.Error())
	default: // perhaps executed: m.once makes that harmless
		r.outbox.later(m, now.Add(backoff(m.attempts)))
	}
	return 0
}

// run drains the outbox until ctx is over, one message at a time.
func (r *redriver) run(ctx context.Context) {
	for ctx.Err() == nil {
		if rest := r.step(ctx, time.Now()); rest > 0 {
			select {
			case <-time.After(rest):
			case <-ctx.Done():
			}
		}
	}
}

// drainTime is how long a backlog takes when load goes on coming: for ever if the load
// leaves nothing.
func drainTime(backlog, capacity, load, reserved float64) time.Duration {
	spare := max(capacity-load, reserved)
	if spare <= 0 {
		return 1<<63 - 1
	}
	return time.Duration(backlog / spare * float64(time.Second))
}

// billing acts on messages, once each.
type billing struct {
	charged []string
	seen    map[string]bool
	lost    int // answers that are lost after the work is done
}

func (b *billing) charge(_ context.Context, once, body string) error {
	if b.seen[once] {
		return nil // done before: the same answer
	}
	if body == "dan: -1" {
		return errPermanent
	}
	b.seen[once] = true // in the same transaction as the charge
	b.charged = append(b.charged, body)
	if b.lost > 0 {
		b.lost--
		return errors.New("connection reset")
	}
	return nil
}

// Work that has to happen, through an outage of the receiver: refused while it is away,
// executed once although an answer is lost, in order for each customer, and what cannot be
// done or is too old is left to a person.
func Example_redrive() {
	ctx := context.Background()
	lim := goodput.New(goodput.Config{Name: "billing", Limit: limit.Fixed(1), Depth: goodput.NoQueue})
	b := &billing{seen: map[string]bool{}}
	var s shop
	r := &redriver{
		outbox: &s.outbox, lim: lim, send: b.charge,
		lease: 30 * time.Second, tooOld: 24 * time.Hour, idle: time.Second,
	}
	now := time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)

	_ = lim.SetLimit(0) // billing is away
	s.place(now.Add(-48*time.Hour), "zoe", "zoe: 3")
	s.place(now, "ann", "ann: 10")
	s.place(now, "bob", "bob: 7")
	s.place(now, "ann", "ann: 5")
	s.place(now, "dan", "dan: -1")
	r.step(ctx, now) // zoe's is from before yesterday
	rest := r.step(ctx, now)
	fmt.Println("refused:", rest >= time.Second, "charged:", b.charged, "oldest:", s.oldest(now))

	_ = lim.SetLimit(1) // billing is back
	b.lost = 1          // and loses its first answer
	for range 10 {
		now = now.Add(time.Minute)
		r.step(ctx, now)
	}
	fmt.Println("charged:", b.charged)
	fmt.Println("dead:", s.dead, "left:", len(s.rows))
	// Output:
	// refused: true charged: [] oldest: 0s
	// charged: [ann: 10 bob: 7 ann: 5]
	// dead: [zoe: 3: too old dan: -1: cannot be done] left: 0
}

// How long until the backlog of an outage is gone: five minutes in which a hundred
// messages a second could not be delivered, at a receiver that serves 1,200 a second.
func Example_redriveArithmetic() {
	const backlog, capacity = 300 * 100, 1200
	fmt.Println("at 900/s: ", drainTime(backlog, capacity, 900, 0))
	fmt.Println("at 1150/s:", drainTime(backlog, capacity, 1150, 0))
	fmt.Println("at 1300/s:", drainTime(backlog, capacity, 1300, 0.05*capacity)) // Reserve{Background: 0.05}
	// Output:
	// at 900/s:  1m40s
	// at 1150/s: 10m0s
	// at 1300/s: 8m20s
}

// The loop ends with its context and leaves nothing behind but what is not due.
func TestRedriverRuns(t *testing.T) {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1)})
	b := &billing{seen: map[string]bool{}}
	var s shop
	ctx, cancel := context.WithCancel(t.Context())
	r := &redriver{outbox: &s.outbox, lim: lim, lease: time.Minute, tooOld: time.Hour, idle: time.Hour}
	r.send = func(ctx context.Context, once, body string) error {
		if body == "last" {
			cancel()
		}
		return b.charge(ctx, once, body)
	}
	now := time.Now()
	for _, body := range []string{"a", "b", "last"} {
		s.place(now, body, body)
	}
	r.run(ctx)
	if !slices.Equal(b.charged, []string{"a", "b", "last"}) || len(s.rows) != 0 {
		t.Errorf("charged %v, %d left", b.charged, len(s.rows))
	}
}

// No instant of a backoff is beyond its bound, whatever the number of attempts.
func TestBackoffIsBounded(t *testing.T) {
	for attempts := range 200 {
		if d, bound := backoff(attempts), min(time.Second<<min(attempts, 16), 5*time.Minute); d < 0 || d >= bound {
			t.Errorf("%v after %d attempts, bound %v", d, attempts, bound)
		}
	}
}
