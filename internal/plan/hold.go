package plan

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// A Hold is how long the slots of one layer are held: while its own work is done,
// and then while it waits for the answer of the layers further in. Times are means,
// in seconds.
type Hold struct {
	Slots   int     `json:"slots"`               // of the fewest replicas, all workers
	Own     float64 `json:"own_seconds"`         // work of the layer itself
	Further float64 `json:"further_seconds"`     // of the slowest of its calls, if nobody waits there
	Held    float64 `json:"held_seconds"`        // own + further
	Waits   float64 `json:"inner_waits_seconds"` // beyond Held, while all slots of this layer are in use
	Door    float64 `json:"alone_rate"`          // slots / held, in requests of this layer: no narrower layer further in
	Rate    float64 `json:"rate"`                // with the layers further in, likewise
	Outside int     `json:"most_at_once"`        // calls that the layers outside can have here; 0: any number

	calls int    // further in, for a request
	next  string // the layer that answers them, if its service is known
	dark  string // a layer further in of which nothing is said
	best  float64
	work  *work // own + further
	curve curve
}

// holds computes the layers from the bottom up: what a layer holds depends on those
// further in.
func (t Topology) holds() []Hold {
	out := make([]Hold, len(t.Layers))
	var further *work // of one call to what is further in
	var inner curve
	next, dark, best := "", "", math.Inf(1)
	for i := len(t.Layers) - 1; i >= 0; i-- {
		l := t.Layers[i]
		fewest, _ := l.replicas()
		h := &out[i]
		*h = Hold{Slots: l.Limit * fewest * l.limits(), calls: l.fanOut(), next: next, dark: dark}
		var own *work
		if l.planned() {
			own = l.input(time.Second).own()
			h.Own = own.mean
		}
		h.work = after(own, further, h.calls)
		if h.work == nil { // nothing is known from here inwards
			dark = l.Name
			continue
		}
		h.Held = h.work.mean
		if further == nil {
			h.curve = servers(float64(h.Slots), h.Held)
		} else {
			h.Further = h.Held - h.Own
			asks := spread(h.calls, h.Further, further.mean, inner)
			h.curve = asks
			if h.Slots > 0 {
				h.curve = within(float64(h.Slots), h.Own, asks)
			}
		}
		h.Rate = h.curve(math.Inf(1))
		best /= float64(h.calls)
		if h.Slots > 0 {
			h.Door = float64(h.Slots) / h.Held
			h.Waits = max(0, float64(h.Slots)/h.Rate-h.Held)
			if own != nil {
				best = min(best, float64(h.Slots)/h.Own)
			}
		}
		h.best = best
		further, inner = h.work, h.curve
		if own != nil {
			next = l.Name
		} else if dark == "" {
			dark = l.Name
		}
	}
	t.outside(out)
	return out
}

// outside fills how many calls can be in each layer at once: as many as the slots
// of those outside, of all replicas, hold.
func (t Topology) outside(holds []Hold) {
	most := 0.0
	for i, l := range t.Layers {
		holds[i].Outside = int(min(most, maxSlots))
		_, replicas := l.replicas()
		if slots := float64(l.Limit * replicas * l.limits()); slots > 0 && (most == 0 || slots < most) {
			most = slots
		}
		most *= float64(l.fanOut())
	}
}

// inside is what a limiter is told of its Hold: the service time that it will
// measure.
func (h Hold) inside() *inside {
	if h.next == "" {
		return nil
	}
	return &inside{
		work:  h.work.shifted(h.Waits),
		words: h.Said(),
		extra: h.Further + h.Waits,
	}
}

// inside is the time that a limiter holds a slot for beyond its own work.
type inside struct {
	work  *work   // with own work
	words string  // the sum
	extra float64 // mean, in seconds
}

// shifted returns w with every time so many seconds longer.
func (w *work) shifted(by float64) *work {
	s := &work{sorted: make([]float64, len(w.sorted)), mean: w.mean + by}
	for i, v := range w.sorted {
		s.sorted[i] = v + by
	}
	s.cv2 = w.cv2 * (w.mean / s.mean) * (w.mean / s.mean)
	s.dist = s.drawn()
	return s
}

// Said is the sum of the time held in an overload, in words.
func (h Hold) Said() string {
	if h.waitsMatter() {
		return h.sum() + " + " + brief(h.Waits) + " of waits there"
	}
	return h.sum()
}

// sum is Held in words.
func (h Hold) sum() string {
	var terms []string
	if h.Own > 0 {
		terms = append(terms, brief(h.Own)+" of its own")
	}
	in := fmt.Sprintf("%s in %s", brief(h.Further), h.next)
	if h.calls > 1 {
		in = fmt.Sprintf("%s in the slowest of %d calls of %s", brief(h.Further), h.calls, h.next)
	}
	return strings.Join(append(terms, in), " + ")
}

// nobodyWaits reports whether the layers outside cannot send more than there are
// slots.
func (h Hold) nobodyWaits() bool { return h.Outside > 0 && h.Outside <= h.Slots }

// waitsMatter reports whether the waits further in are worth a word.
func (h Hold) waitsMatter() bool { return h.Waits > 0.02*h.Held }
