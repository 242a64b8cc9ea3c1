package admission

import (
	"fmt"
	"math/rand/v2"

	"github.com/goodput/goodput/limit"
)

// wanders is a law that asks for whatever comes to its mind, as often as not for what it
// has, and says now and then that it searches.
type wanders struct{ from int }

func (w wanders) Start() (int, error) { return w.from, nil }

func (w wanders) Begin(seed uint64) limit.State {
	return &wanderer{rand: rand.New(rand.NewPCG(seed, uint64(w.from)))}
}

type wanderer struct {
	rand *rand.Rand
	said limit.Move
}

func (w *wanderer) Why() string { return "" }

func (w *wanderer) Next(current int, _ *limit.Window) limit.Move {
	if w.rand.IntN(10) == 0 {
		w.said.Search = !w.said.Search
	}
	if w.said.Limit = current; w.rand.IntN(2) == 0 {
		w.said.Limit = w.rand.IntN(12) - 2
	}
	w.said.Mark = w.rand.IntN(3) == 0
	return w.said
}

// obey puts in force what a law has answered with: step by step, as far as a window goes.
func (m *model) obey(said limit.Move) {
	if said.Search {
		m.seen["searches"]++
	}
	m.search = said.Search
	n := m.limit
	for n < said.Limit && (n+1 <= 2*m.limit || n+1 <= m.limit+4) {
		n++
	}
	for n > said.Limit && 2*(n-1) >= m.limit {
		n--
	}
	if n != said.Limit {
		m.seen["paced"]++
	}
	if n != m.limit {
		m.seen["the limit moves"]++
		m.setLimit(n)
	}
}

// hold has both keep the law from being asked, or let it go on.
func (d *duel) hold(enter func()) error {
	held := d.pick(2) == 0
	d.last = fmt.Sprintf("at %v hold %v", d.now, held)
	d.core.Hold(d.now, held)
	enter()
	m := d.model
	switch _, moves := m.cfg.Limit.(wanders); {
	case held == m.held:
		return nil
	case held:
		m.search = false
	default:
		m.asked = m.now
		if moves {
			m.seen["held"]++
		}
	}
	m.held = held
	return nil
}
