package fleet

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// C123: four instances are replaced by four with a surge of one, and scaled between two and
// six meanwhile; the limits in force add up to at most 100 at each moment, and so does what
// slots hold. The world is simulated, the shares are real.
//
// News is what breaks such schemes, so it is as bad as Settle allows: each member looks on
// its own, sees a list that was true up to (age - look) ago, perhaps an older one than the
// time before, and never the same as the others.
type world struct {
	t     *testing.T
	r     *rand.Rand
	split Split
	age   time.Duration // D: the list that a member goes by was true at most that long ago
	look  time.Duration // of which so much between two looks
	grace time.Duration // G: who is not counted any more goes on for up to that
	hold  time.Duration // H: the longest time that a slot is held
	known bool          // members know which one they are

	weighted bool // and are of three sizes

	mu      sync.Mutex
	counted []version // who is counted, since when
	members []*member // who runs
	named   int
	changed time.Time

	first   int           // the largest sum of limits until the first four are there
	most    int           // the same from then on
	held    int           // the largest sum of what slots may hold
	granted time.Duration // the integral of the sum of limits: unit-time
}

type version struct {
	since time.Time
	names []int // increasing
}

// A member is one process. Its slots hold at most the largest limit of the last hold.
type member struct {
	name  int
	share *Share
	force int
	was   []past // earlier limits, and until when they were in force
	next  time.Time
}

func newWorld(t *testing.T, r *rand.Rand, split Split) *world {
	known := r.IntN(3) > 0
	return &world{
		t: t, r: r, split: split,
		age: 25 * time.Second, look: 10 * time.Second, grace: 20 * time.Second, hold: 10 * time.Second,
		known: known, weighted: known && r.IntN(2) == 0,
		counted: []version{{since: time.Now().Add(-time.Hour)}},
		changed: time.Now(),
	}
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.r.Int64N(int64(d))) }

// place is what a member of that name is told.
func (w *world) place(name int) Place {
	at := time.Now().Add(-w.upTo(w.age - w.look))
	var names []int
	for _, v := range w.counted {
		if !v.since.After(at) {
			names = v.names
		}
	}
	i, ok := slices.BinarySearch(names, name)
	if !ok { // it knows of itself
		names = slices.Insert(slices.Clone(names), i, name)
	}
	p := Place{Count: len(names)}
	if w.known {
		p.Nth = i + 1
	}
	if w.weighted {
		for _, n := range names {
			p.Weights = append(p.Weights, float64(1+n%3))
		}
	}
	return p
}

// judge adds up what is in force and what may be held. The caller holds the lock.
func (w *world) judge() {
	now := time.Now()
	limits, held := 0, 0
	for _, m := range w.members {
		limits += m.force
		high := m.force
		for _, p := range m.was {
			if now.Sub(p.until) < w.hold {
				high = max(high, p.units)
			}
		}
		held += high
	}
	w.most, w.held = max(w.most, limits), max(w.held, held)
}

// up starts a member; it is counted from now on, and the others hear of it when they do.
func (w *world) up() {
	w.mu.Lock()
	w.named++
	m := &member{name: w.named, next: time.Now().Add(w.upTo(w.look))}
	last := w.counted[len(w.counted)-1].names
	w.counted = append(w.counted, version{time.Now(), append(slices.Clone(last), m.name)})
	w.members = append(w.members, m)
	p := w.place(m.name)
	w.mu.Unlock()
	var err error
	if m.share, err = New(func(units int) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.account()
		m.was = append(m.was[max(0, len(m.was)-50):], past{time.Now(), m.force})
		m.force = units
		w.judge()
		return nil
	}, w.split, p); err != nil {
		w.t.Fatal(err)
	}
}

// account adds up the time that limits were in force.
func (w *world) account() {
	for _, m := range w.members {
		w.granted += time.Duration(m.force) * time.Since(w.changed)
	}
	w.changed = time.Now()
}

// down takes the oldest member out of the count; it goes on for a while.
func (w *world) down() {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.counted[len(w.counted)-1].names
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.name == last[0] })
	m := w.members[i]
	w.counted = append(w.counted, version{time.Now(), last[1:]})
	time.AfterFunc(w.upTo(w.grace), func() {
		m.share.Stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.account()
		w.members = slices.DeleteFunc(w.members, func(other *member) bool { return other == m })
		w.judge()
	})
}

func (w *world) count() int { return len(w.counted[len(w.counted)-1].names) }

// sleep lets d pass, in which members look around.
func (w *world) sleep(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Until(end), time.Second))
		w.mu.Lock()
		members := slices.Clone(w.members)
		w.mu.Unlock()
		for _, m := range members {
			if time.Now().Before(m.next) {
				continue
			}
			m.next = time.Now().Add(w.upTo(w.look - time.Second))
			w.mu.Lock()
			p := w.place(m.name)
			w.mu.Unlock()
			if err := m.share.Set(p); err != nil && err.Error() != "fleet: the share was stopped" {
				w.t.Error(err)
			}
		}
	}
}

// rollout replaces four by four, one more at a time, and an autoscaler that cannot make up
// its mind changes the number between two and six. pace is the time between two steps.
func (w *world) rollout(pace func() time.Duration) {
	for range 4 {
		w.up()
		w.sleep(pace())
	}
	w.sleep(3 * time.Minute)
	w.mu.Lock()
	w.first, w.most, w.held = w.most, 0, 0
	w.mu.Unlock()
	for replaced := 0; replaced < 4; {
		switch n := w.count(); {
		case w.r.IntN(2) == 0:
			w.up() // the surge of the update
			w.sleep(pace())
			w.down()
			replaced++
		case n < 6 && (n == 2 || w.r.IntN(2) == 0):
			w.up()
		default:
			w.down()
		}
		w.sleep(pace())
	}
	w.sleep(3 * time.Minute)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.account()
	for _, m := range w.members {
		m.share.Stop()
	}
}

// play runs one rollout and returns what it saw, and the part of the budget that was in
// force on average.
func play(t *testing.T, sound bool, split Split, pace func(w *world) time.Duration) (most, held int, used float64) {
	return playWith(t, seeded(t), sound, split, pace)
}

func playWith(t *testing.T, r *rand.Rand, sound bool, split Split, pace func(w *world) time.Duration) (most, held int, used float64) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w := newWorld(t, r, split)
		w.rollout(func() time.Duration { return pace(w) })
		time.Sleep(w.grace)
		if w.first > split.Budget && sound {
			t.Errorf("limits of up to %d in force while the first four start", w.first)
		}
		most, held = w.most, w.held
		used = w.granted.Seconds() / time.Since(start).Seconds() / float64(split.Budget)
	})
	return most, held, used
}

// Without a surge to keep free, steps may follow as fast as they like.
func TestRolloutSettles(t *testing.T) {
	split := Split{Budget: 100, Settle: 55 * time.Second} // 25 + 20 + 10
	mean := 0.0
	const runs = 100
	for range runs {
		most, held, used := play(t, true, split, func(w *world) time.Duration { return w.upTo(40 * time.Second) })
		if most > 100 || held > 100 {
			t.Fatalf("limits of up to %d in force, up to %d held, of 100", most, held)
		}
		mean += used / runs
	}
	t.Logf("%d rollouts: never more than 100, %.0f %% of it in force on average", runs, 100*mean)
}

// With a surge of two, for one that starts and one that leaves within Settle, nobody waits.
func TestRolloutSurge(t *testing.T) {
	split := Split{Budget: 100, Surge: 2, Settle: 55 * time.Second}
	mean := 0.0
	const runs = 100
	for range runs {
		// Three steps take two of these, and more than 55 s.
		most, held, used := play(t, true, split, func(w *world) time.Duration { return 28*time.Second + w.upTo(10*time.Second) })
		if most > 100 || held > 100 {
			t.Fatalf("limits of up to %d in force, up to %d held, of 100", most, held)
		}
		mean += used / runs
	}
	t.Logf("%d rollouts: never more than 100, %.0f %% of it in force on average", runs, 100*mean)
}

// The world is bad enough to tell: with a Settle that is too short, or more steps than the
// surge has room for, the same rollouts are beyond the budget.
func TestRolloutCanFail(t *testing.T) {
	fast := func(w *world) time.Duration { return w.upTo(10 * time.Second) }
	for name, split := range map[string]Split{
		"settle too short":      {Budget: 100, Settle: time.Second},
		"settle of 20s, not 55": {Budget: 100, Settle: 20 * time.Second},
		"surge of 1":            {Budget: 100, Surge: 1, Settle: time.Second},
		"and of 1, settling":    {Budget: 100, Surge: 1, Settle: 55 * time.Second},
	} {
		worst, worstHeld := 0, 0
		for range 40 {
			most, held, _ := play(t, false, split, fast)
			worst, worstHeld = max(worst, most), max(worstHeld, held)
		}
		t.Logf("%s: %d in force, %d held", name, worst, worstHeld)
		if worst <= 100 {
			t.Errorf("%s: the budget held, so these tests prove nothing", name)
		}
	}
}

// FuzzRollout looks for the seed of a rollout that is beyond the budget, at any pace.
func FuzzRollout(f *testing.F) {
	f.Add(uint64(1), uint16(10), uint8(10))
	f.Add(uint64(2), uint16(1000), uint8(60))
	f.Fuzz(func(t *testing.T, seed uint64, budget uint16, pace uint8) {
		split := Split{Budget: 1 + int(budget%2000), Settle: 55 * time.Second}
		most, held, _ := playWith(t, rand.New(rand.NewPCG(seed, 0)), true, split, func(w *world) time.Duration {
			return w.upTo(time.Duration(1+pace%100) * time.Second)
		})
		if most > split.Budget || held > split.Budget {
			t.Errorf("limits of up to %d in force, up to %d held, of %d", most, held, split.Budget)
		}
	})
}
