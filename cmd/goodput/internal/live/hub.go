package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goodput/goodput"
)

const (
	// maxViewers is how many watch at once. A viewer is a connection, a goroutine and a few ticks
	// of some KB for each limiter; the people on call, and a wall of screens.
	maxViewers = 64

	// behind is how many ticks a viewer may be behind. A connection takes in megabytes before a
	// write waits, so who is two seconds behind that reads nothing, or not fast enough ever.
	behind = 2
)

// A Config says what there is to watch. Its functions are called by many goroutines.
type Config struct {
	// Limiters returns those in force; a reload may exchange them.
	Limiters func() []*goodput.Limiter
	// State returns what /api/v1/state would answer, of these snapshots.
	State func([]Snapshot) any
	// Scene returns what a demo says of itself. It is called once in each tick and by one
	// goroutine, so it may have rates. nil: there is no demo.
	Scene func() any
}

// A Hub looks at limiters once a second and tells its viewers. It is an http.Handler, whose
// answer is a stream of events.
//
// It looks also while nobody watches, so that there is a past when somebody comes, who comes
// because something has begun. For 100 limiters that is 1.3 ms each second, 0.13 % of a
// processor, and 13 MB (BenchmarkLook). Encoding costs more and is done only for viewers: a
// tick with its state and what explains it 8 ms, once however many they are; the past 21 ms,
// in a second in which somebody comes.
type Hub struct {
	cfg Config

	// Of the goroutine of Run.
	tracks map[*goodput.Limiter]*track // one that was exchanged begins anew, whatever its name
	number uint64
	at     time.Time // of the last tick
	past   []*point  // it grows at its end only, so that what a frame has of it stays

	mu      sync.Mutex // nothing is encoded, and nobody is asked, under it
	viewers map[*viewer]struct{}
	latest  *frame
	ended   bool
}

// A viewer is somebody who watches. A tick that finds its channel full ends it: the channel is
// closed, by whoever holds the lock of the hub.
type viewer struct {
	limiter string // "" for all
	ticks   chan *frame
	reads   bool // it has had its history, and is sent ticks
}

// New returns a hub. It has nothing to tell before Run.
func New(cfg Config) *Hub {
	return &Hub{cfg: cfg, tracks: map[*goodput.Limiter]*track{}, viewers: map[*viewer]struct{}{}}
}

// Run looks at the limiters until ctx is done, and then ends all streams.
func (h *Hub) Run(ctx context.Context) {
	defer h.End()
	h.publish(h.sample(time.Now()))
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.publish(h.sample(time.Now()))
		}
	}
}

// End ends all streams, so that a server which waits for its answers can stop. Nobody can
// watch from then on.
func (h *Hub) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for v := range h.viewers {
		h.cut(v)
	}
}

// sample looks at all limiters.
func (h *Hub) sample(now time.Time) (*frame, *point) {
	h.number++
	f := &frame{
		tick: Tick{Version: 1, Number: h.number, Time: now}, state: h.cfg.State,
		ticks: map[string][]byte{}, histories: map[string][]byte{},
	}
	if !h.at.IsZero() {
		f.tick.ElapsedSeconds = now.Sub(h.at).Seconds()
	}
	h.at = now
	p := &point{at: now}
	tracks := map[*goodput.Limiter]*track{}
	lims := h.cfg.Limiters()
	f.snaps = make([]Snapshot, len(lims)) // of some 30 KB each: they stay where they are
	for i, lim := range lims {
		t := h.tracks[lim]
		if t == nil {
			t = &track{}
		}
		tracks[lim] = t
		s := &f.snaps[i]
		*s = Take(lim)
		s.refused = lim.Refused()
		v := t.follow(s)
		f.tick.Limiters = append(f.tick.Limiters, v)
		if len(p.rows) < maxKept {
			p.names = append(p.names, v.Name)
			p.rows = append(p.rows, rowOf(&s.Stats, &v))
		}
	}
	h.tracks = tracks // without those that are gone
	if h.cfg.Scene != nil {
		f.tick.Demo, p.scene = scene(h.cfg.Scene())
	}
	return f, p
}

// scene returns what a demo says as it is sent, and its numbers for the history; a bool is 0 or 1.
func scene(says any) (sent any, numbers map[string]float32) {
	b, err := json.Marshal(says)
	if err != nil {
		return nil, nil
	}
	var fields map[string]any
	if json.Unmarshal(b, &fields) != nil {
		return nil, nil
	}
	numbers = map[string]float32{}
	for name, v := range fields {
		switch v := v.(type) {
		case float64:
			numbers[name] = float32(v)
		case bool:
			numbers[name] = 0
			if v {
				numbers[name] = 1
			}
		}
	}
	return json.RawMessage(b), numbers
}

// publish hands a tick to all viewers and waits for none of them. What they are sent is encoded
// before: that asks for the state and takes some ms, and meanwhile viewers come and leave.
func (h *Hub) publish(f *frame, p *point) {
	if n := len(h.past); n > 0 && p.at.UnixMilli() <= h.past[n-1].at.UnixMilli() {
		h.past = nil // the clock was set back, and a chart has one line of time
	}
	h.past = append(h.past[max(0, len(h.past)+1-kept):], p)
	f.past = h.past
	for limiter := range h.wanted() {
		f.message(limiter)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = f
	for v := range h.viewers {
		if !v.reads {
			continue
		}
		select {
		case v.ticks <- f:
		default:
			h.cut(v)
		}
	}
}

// wanted are the limiters that somebody watches, "" for all.
func (h *Hub) wanted() map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := map[string]bool{}
	for v := range h.viewers {
		if v.reads {
			names[v.limiter] = true
		}
	}
	return names
}

// cut ends the stream of v. The caller holds the lock.
func (h *Hub) cut(v *viewer) {
	delete(h.viewers, v)
	close(v.ticks)
}

var (
	errEnded    = errors.New("shutting down: nothing is measured any more")
	errStarting = errors.New("starting: nothing has been measured yet")
	errMany     = fmt.Errorf("%d viewers watch already, and no more can: close a page that shows this", maxViewers)
	errUnknown  = errors.New("there is no limiter of that name: /api/v1/state lists them")
)

// join lets somebody watch, and returns the frame with the history to send first.
func (h *Hub) join(limiter string) (*viewer, *frame, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
		return nil, nil, errEnded
	case h.latest == nil:
		return nil, nil, errStarting
	case len(h.viewers) >= maxViewers:
		return nil, nil, errMany
	case !h.latest.has(limiter):
		return nil, nil, errUnknown
	}
	v := &viewer{limiter: limiter, ticks: make(chan *frame, behind)}
	h.viewers[v] = struct{}{}
	return v, h.latest, nil
}

// read has v sent ticks from now on, and returns the latest. A history may take long to send, over
// a slow line, and that is not being too slow for ticks.
func (h *Hub) read(v *viewer) *frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	v.reads = true
	return h.latest
}

func (h *Hub) leave(v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, is := h.viewers[v]; is {
		h.cut(v)
	}
}
