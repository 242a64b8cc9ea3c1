package attempts

import "time"

// buckets is in how many parts a window is kept. What it counts is from 0.9 to 1 window
// old when it is forgotten, in ten steps: a client that used up a budget of ten gets it
// back one at a time rather than all at once.
const buckets = 10

// A window counts two things over a time that slides, in constant memory.
//
// Time does not run backwards: an instant before the latest one counts as that. After a
// jump ahead nothing is left of what was before. If time came back from such a jump,
// nothing would be forgotten until it has caught up, and all that is counted would
// still be true.
type window struct {
	counts [buckets][2]uint64
	sums   [2]uint64 // of counts, always: what advance clears it takes off
	latest int64     // number of the latest bucket: time / width, rounded down
	begun  bool      // latest counts
}

// advance forgets what is too old at now and returns the number of the place in counts
// that now belongs to. length is that of the window.
func (w *window) advance(now, length time.Duration) int {
	if length <= 0 {
		panic("attempts: the window is " + length.String() + " long, want more than 0")
	}
	width := int64(max(length/buckets, 1))
	n := int64(now) / width
	if int64(now) < n*width {
		n-- // rounded down, below 0 as well
	}
	switch {
	case !w.begun:
		w.latest, w.begun = n, true
	case n > w.latest && uint64(n)-uint64(w.latest) >= buckets:
		w.counts, w.sums, w.latest = [buckets][2]uint64{}, [2]uint64{}, n
	default:
		for w.latest < n {
			w.latest++
			old := &w.counts[place(w.latest)]
			w.sums[0] -= old[0]
			w.sums[1] -= old[1]
			*old = [2]uint64{}
		}
	}
	return place(w.latest)
}

func place(n int64) int { return int((n%buckets + buckets) % buckets) }

// drop takes back the latest of kind that still counts at now, if there is one.
func (w *window) drop(now, length time.Duration, kind int) {
	w.advance(now, length)
	for i := range int64(buckets) {
		if c := &w.counts[place(w.latest-i)]; c[kind] > 0 {
			c[kind]--
			w.sums[kind]--
			return
		}
	}
}

// add counts one of kind at now.
func (w *window) add(now, length time.Duration, kind int) {
	w.counts[w.advance(now, length)][kind]++
	w.sums[kind]++
}
