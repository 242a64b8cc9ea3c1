package rivals

import (
	"fmt"
	"math"
	"time"

	"github.com/goodput/goodput/limit"
)

// BBR is the law of github.com/go-kratos/aegis, and of go-zero: by Little, as many may be
// in flight as the best rate that was seen, times the shortest time:
//
//	over the last 10 s, in buckets of 100 ms, the one that is being filled left out:
//	limit = most that ended in a bucket x 10 a second x smallest mean time of a bucket, and one more
//
// and one at least. It applies while the processors are busy, and for a second after it has
// last refused something; otherwise there is no limit.
//
// Before a resource that does not use the processor it never applies, and armed always, it
// confirms itself: what a limit lets through is the rate that the next limit is made of.
type BBR struct {
	From int // for its first 100 ms: 1 to 10,000, default 2, or none (10,000) with Busy

	// Busy is the pressure (limit.Window.Pressure) at which it applies: 0 to 1000. 0 is
	// always, which is not how its authors use it; 1 is what the signal calls too much.
	Busy float64
}

const (
	bbrBuckets = 100
	bbrBucket  = 100 * time.Millisecond
	bbrMost    = 10_000 // in place of none
	bbrAfter   = time.Second
)

func (b BBR) Start() (int, error) {
	switch {
	case b.From < 0 || b.From > bbrMost:
		return 0, fmt.Errorf("start %d of the bbr limit is out of range: 1 to %d, or 0 for the default", b.From, bbrMost)
	case !(b.Busy >= 0 && b.Busy <= 1000):
		return 0, fmt.Errorf("busy %v of the bbr limit is out of range: 0 to 1000", b.Busy)
	case b.From == 0 && b.Busy == 0:
		return 2, nil
	case b.From == 0:
		return bbrMost, nil
	}
	return b.From, nil
}

func (b BBR) Begin(uint64) limit.State {
	from, _ := b.Start()
	return &bbr{BBR: b, limit: from, refused: bbrAfter + 1}
}

func (b BBR) String() string { return "bbr" }

// A bucket is what ended in 100 ms.
type bucket struct{ ended, samples, sum float64 }

type bbr struct {
	BBR
	limit   int
	now     bucket
	length  time.Duration // of now
	ring    [bbrBuckets - 1]bucket
	at      int           // where in ring the next one goes
	seen    int           // of ring
	refused time.Duration // since something was, up to bbrAfter + 1
	why     string
}

func (s *bbr) Why() string { return s.why }

func (s *bbr) Next(current int, w *limit.Window) limit.Move {
	long := min(max(w.Length, 0), time.Hour)
	s.refused = min(s.refused+long, bbrAfter+1)
	armed := s.Busy == 0 || w.Pressure >= s.Busy || s.refused <= bbrAfter
	if armed && w.Delayed > 0 {
		s.refused = 0
	}
	s.now.ended += float64(max(w.Ended-max(w.Dropped, 0), 0))
	if w.Samples > 0 && w.Mean > 0 {
		s.now.samples += float64(w.Samples)
		s.now.sum += float64(w.Samples) * w.Mean.Seconds()
	}
	if s.length += long; s.length >= bbrBucket {
		n := float64(s.length) / float64(bbrBucket) // a long window is several buckets
		s.now.ended /= n
		for range min(int(n), len(s.ring)) {
			s.ring[s.at] = s.now
			s.at = (s.at + 1) % len(s.ring)
			s.seen = min(s.seen+1, len(s.ring))
		}
		s.now, s.length = bucket{}, 0
	}
	if armed || s.limit != bbrMost {
		s.decide(armed)
	}
	return limit.Move{Limit: s.limit}
}

func (s *bbr) decide(armed bool) {
	to, why := bbrMost, "not armed: no limit"
	switch {
	case armed && s.seen == 0 && s.From > 0:
		return
	case armed:
		// Before anything is known they take 1 of 1 ms.
		pass, rt := 1.0, math.Inf(1)
		for i := range s.ring[:s.seen] {
			b := &s.ring[i]
			pass = max(pass, b.ended)
			if b.samples > 0 {
				rt = min(rt, b.sum/b.samples)
			}
		}
		if math.IsInf(rt, 1) {
			rt = 0
		}
		rt = max(math.Ceil(rt*1e3), 1) // they count in ms
		most := math.Floor(pass * rt * float64(time.Second/bbrBucket) / 1000)
		// What is in flight is compared without the newcomer, and one is never too many.
		to = int(min(max(most, 1)+1, bbrMost))
		why = fmt.Sprintf("%.0f in 100ms x %.0fms, + 1", pass, rt)
	}
	if to != s.limit {
		s.why = fmt.Sprintf("bbr: %d -> %d: %s", s.limit, to, why)
		s.limit = to
	}
}
