package proxy

import (
	"sync"
	"sync/atomic"
	"time"
)

// limits end a stream or a tunnel when nothing has moved for a while, or after a time in
// all. One timer has both: it is set to the earlier end, and looks again if something has
// moved, so that a byte costs a reading of the clock and no more.
type limits struct {
	idle, total time.Duration // 0: none
	begun       time.Time
	moved       atomic.Int64 // since begun, in ns

	mu    sync.Mutex
	timer *time.Timer // nil without limits
	over  bool        // stopped, or cut: cut is not called any more
	cut   func(ending)
}

// start begins to count. cut is called once, at most, from another goroutine.
func (l *limits) start(idle, total time.Duration, cut func(ending)) {
	if idle <= 0 && total <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle, l.total, l.cut, l.begun = idle, total, cut, time.Now()
	wait, _ := l.left(0)
	l.timer = time.AfterFunc(wait, l.ring)
}

// move says that something has moved.
func (l *limits) move() {
	if l.idle > 0 {
		l.moved.Store(int64(time.Since(l.begun)))
	}
}

// left returns the time to the earlier of the two ends at a time since begun, and which
// that is.
func (l *limits) left(now time.Duration) (time.Duration, ending) {
	idle := time.Duration(l.moved.Load()) + l.idle - now
	total := l.total - now
	if l.total <= 0 || l.idle > 0 && idle <= total {
		return idle, idled
	}
	return total, expired
}

func (l *limits) ring() {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	left, which := l.left(time.Since(l.begun))
	if left > 0 {
		l.timer.Reset(left)
		l.mu.Unlock()
		return
	}
	l.over = true
	l.mu.Unlock() // cut may stop us
	l.cut(which)
}

// stop ends the counting. A cut that has begun goes on.
func (l *limits) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
}
