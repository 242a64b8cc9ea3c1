package live

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// A frame is one tick for all who watch. What they are sent is encoded once and not once for
// each of them, by the first who needs it; where nobody watches nothing is encoded. One who
// wants one limiter alone shares with the others who want that one.
type frame struct {
	tick  Tick // without the state, and without what explains
	snaps []Snapshot
	past  []*point // up to this tick, and not changed
	state func([]Snapshot) any

	mu        sync.Mutex
	ticks     map[string][]byte // by the name of the limiter, "" for all
	histories map[string][]byte
}

// has reports whether there is a limiter of that name. "" is all of them.
func (f *frame) has(limiter string) bool {
	return limiter == "" || slices.ContainsFunc(f.snaps, func(s Snapshot) bool { return s.Stats.Name == limiter })
}

// message returns the event "tick".
func (f *frame) message(limiter string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.ticks[limiter]
	if b == nil {
		t := f.tick
		t.Limiters = []View{}
		var snaps []Snapshot
		for i, v := range f.tick.Limiters {
			if limiter == "" || v.Name == limiter {
				s := &f.snaps[i]
				v.Explanation = Explained(s.limiter.ExplanationOf(&s.Stats, s.Tenants, s.refused), f.now(i))
				t.Limiters = append(t.Limiters, v)
				snaps = append(snaps, *s)
			}
		}
		t.State = f.state(snaps)
		b = event(fmt.Sprintf("id: %d\nevent: tick", t.Number), t)
		f.ticks[limiter] = b
	}
	return b
}

// history returns the event "history", which begins a stream. Whoever loses it comes again
// after a second.
func (f *frame) history(limiter string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.histories[limiter]
	if b == nil {
		var names []string
		for i := range f.snaps {
			if name := f.snaps[i].Stats.Name; limiter == "" || name == limiter {
				names = append(names, name)
			}
		}
		b = event("retry: 1000\nevent: history", historyOf(f.past, names))
		f.histories[limiter] = b
	}
	return b
}

// event returns one server-sent event. JSON has no line breaks of its own. What cannot be
// written as JSON, which is a mistake of ours, is said in a comment, and the stream goes on.
func event(head string, data any) []byte {
	b, err := json.Marshal(data)
	if err != nil {
		return fmt.Appendf(nil, ": cannot be shown: %q\n\n", err.Error())
	}
	return fmt.Appendf(nil, "%s\ndata: %s\n\n", head, b)
}
