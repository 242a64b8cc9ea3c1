package goodput_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	failures int       // attempts that failed; a refusal is no attempt
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

// release makes a row that was claimed due again at next: it was not sent.
func (o *outbox) release(m message, next time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.row(m.id).next = next
}

// failed is release for one that was sent, and failed.
func (o *outbox) failed(m message, next time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.row(m.id)
	r.next = next
	r.failures++
}

func (o *outbox) row(id int) *message {
	i, _ := slices.BinarySearchFunc(o.rows, id, func(r message, id int) int { return cmp.Compare(r.id, id) })
	return &o.rows[i]
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

// A redriver hands the rows of an outbox to whoever has to act on them, one at a time. Each
// goroutine has one of its own, and all of them the same outbox and limiter.
type redriver struct {
	outbox *outbox
	lim    *goodput.Limiter // of the receiver: the one that its other callers meet
	send   func(ctx context.Context, once, body string) error
	lease  time.Duration // longer than an attempt takes
	tooOld time.Duration // older ones are for a person to decide
	idle   time.Duration // between two looks at an empty outbox
	inARow int           // failures since the receiver last answered
}

// errPermanent is what the receiver says that will not change.
var errPermanent = errors.New("cannot be done")

// backoff is the wait after a failure that so many others were before: even between 0 and a
// second, doubled with each of them, but no longer than most.
func backoff(failures int, most time.Duration) time.Duration {
	return rand.N(min(time.Second<<min(failures, 16), most))
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
		r.outbox.release(m, now)
		return max(refused.Jittered(), r.idle)
	case errors.Is(err, errPermanent):
		r.outbox.bury(m, err.Error())
	default: // perhaps executed: m.once makes that harmless
		r.outbox.failed(m, now.Add(backoff(m.failures, 5*time.Minute)))
		r.inARow++
		if r.inARow == 1 {
			return 0 // it may be the message
		}
		return backoff(r.inARow-2, 30*time.Second) // it is the receiver
	}
	r.inARow = 0
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

// A drain is a backlog and what there is to send it with. Rates are per second.
type drain struct {
	backlog, in float64       // messages that are there, and those that go on coming
	capacity    float64       // of the receiver
	load        float64       // of its other callers
	reserved    float64       // for Background, whatever the others want
	send        time.Duration // one step: claim, send, delete
	redrivers   int           // at the same time
}

// left is what the others leave.
func (d drain) left() float64 { return max(d.capacity-d.load, d.reserved) }

// needed is how many re-drivers use all that is left.
func (d drain) needed() int { return int(math.Ceil(d.left() * d.send.Seconds())) }

// takes is how long until the backlog is gone: for ever if less is sent than comes in.
func (d drain) takes() time.Duration {
	rate := min(d.left(), float64(d.redrivers)/d.send.Seconds()) - d.in
	if rate <= 0 {
		return forever
	}
	return time.Duration(d.backlog / rate * float64(time.Second))
}

const forever = time.Duration(math.MaxInt64)

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
	d := drain{backlog: 300 * 100, in: 100, capacity: 1200, load: 800, send: 20 * time.Millisecond, redrivers: 1}
	fmt.Println("one re-driver sends 50/s: for ever:", d.takes() == forever)
	d.redrivers = 3
	fmt.Println("three send 150/s:", d.takes())
	for _, of := range []struct{ load, reserve float64 }{
		{800, 0}, {1050, 0}, {1300, 0}, {1300, 0.05}, {1300, 0.1}, // Reserve{Background: 0.1}
	} {
		d.load, d.reserved = of.load, of.reserve*d.capacity
		d.redrivers = d.needed()
		took := d.takes().String()
		if d.takes() == forever {
			took = "never"
		}
		fmt.Printf("at %4.0f/s, reserve %3.0f/s: %3.0f/s left, %d re-drivers, %s\n", d.load, d.reserved, d.left(), d.redrivers, took)
	}
	// Output:
	// one re-driver sends 50/s: for ever: true
	// three send 150/s: 10m0s
	// at  800/s, reserve   0/s: 400/s left, 8 re-drivers, 1m40s
	// at 1050/s, reserve   0/s: 150/s left, 3 re-drivers, 10m0s
	// at 1300/s, reserve   0/s:   0/s left, 0 re-drivers, never
	// at 1300/s, reserve  60/s:  60/s left, 2 re-drivers, never
	// at 1300/s, reserve 120/s: 120/s left, 3 re-drivers, 25m0s
}

// What drain says of re-drivers is so: as many messages at once as there are re-drivers
// and slots, and no more.
func TestRedriversAtOnce(t *testing.T) {
	const backlog, send = 300, 20 * time.Millisecond
	for _, c := range []struct{ redrivers, slots int }{{1, 1}, {3, 1}, {3, 3}, {6, 3}} {
		synctest.Test(t, func(t *testing.T) {
			lim := goodput.New(goodput.Config{Limit: limit.Fixed(c.slots), Objective: time.Minute})
			var s shop
			for i := range backlog {
				s.place(time.Now(), fmt.Sprint(i), "x")
			}
			began, left := time.Now(), backlog
			var last time.Time
			var mu sync.Mutex
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range c.redrivers {
				r := &redriver{outbox: &s.outbox, lim: lim, lease: time.Minute, tooOld: time.Hour, idle: time.Second}
				r.send = func(context.Context, string, string) error {
					time.Sleep(send)
					mu.Lock()
					defer mu.Unlock()
					if left--; left == 0 {
						last = time.Now()
					}
					return nil
				}
				all.Go(func() { r.run(ctx) })
			}
			time.Sleep(time.Minute)
			cancel()
			all.Wait()
			want := drain{backlog: backlog, capacity: 1e6, send: send, redrivers: min(c.redrivers, c.slots)}.takes()
			if took := last.Sub(began); left != 0 || (took-want).Abs() > time.Microsecond {
				t.Errorf("%d re-drivers, %d slots: %v, %d left; want %v", c.redrivers, c.slots, took, left, want)
			}
		})
	}
}

// A receiver that does not answer is not asked by every message: the re-driver rests. From
// the 6th rest on one is even between 0 and 30 s, so of 600 s the first five take 15.5 s on
// average (of 1, 2, 4, 8, 16 s half each), and the others are 584.5/15 = 39, with a standard
// deviation of sqrt(39) x 8.66/15 = 3.6. 46 in all; the bounds are 6 of those away.
func TestRedriverRestsWhileTheReceiverIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := goodput.New(goodput.Config{Limit: limit.Fixed(1)})
		var s shop
		for i := range 1000 {
			s.place(time.Now(), fmt.Sprint(i), "x")
		}
		var sent atomic.Int64
		var down atomic.Bool
		down.Store(true)
		r := &redriver{outbox: &s.outbox, lim: lim, lease: time.Minute, tooOld: 24 * time.Hour, idle: time.Second}
		r.send = func(context.Context, string, string) error {
			if sent.Add(1); down.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { r.run(ctx) })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := sent.Load(); n < 46-22 || n > 46+22 {
			t.Errorf("%d messages were sent in 10 minutes to nobody, want 46 or so", n)
		}
		down.Store(false)
		time.Sleep(5*time.Minute + 30*time.Second)
		cancel()
		loop.Wait()
		if len(s.rows) != 0 {
			t.Errorf("%d are left %v after it is back", len(s.rows), 5*time.Minute+30*time.Second)
		}
	})
}

// Refusals are no attempts: the first failure after a hundred of them waits no longer than
// the first failure of all.
func TestRefusalsAreNoAttempts(t *testing.T) {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Depth: goodput.NoQueue})
	var s shop
	now := time.Now()
	s.place(now, "ann", "x")
	r := &redriver{outbox: &s.outbox, lim: lim, lease: time.Minute, tooOld: time.Hour, idle: time.Second}
	r.send = func(context.Context, string, string) error { return errors.New("connection reset") }
	_ = lim.SetLimit(0)
	for range 100 {
		r.step(t.Context(), now)
	}
	_ = lim.SetLimit(1)
	rest := r.step(t.Context(), now)
	if m := s.rows[0]; m.failures != 1 || m.next.Sub(now) >= time.Second || rest != 0 {
		t.Errorf("%d failures, next in %v, a rest of %v", m.failures, m.next.Sub(now), rest)
	}
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

// No instant of a backoff is beyond its bound, whatever the number of failures.
func TestBackoffIsBounded(t *testing.T) {
	for failures := range 200 {
		for _, most := range []time.Duration{30 * time.Second, 5 * time.Minute} {
			if d, bound := backoff(failures, most), min(time.Second<<min(failures, 16), most); d < 0 || d >= bound {
				t.Errorf("%v after %d failures, bound %v", d, failures, bound)
			}
		}
	}
}
