package proxy

import (
	"sync"
	"time"

	"github.com/goodput/goodput"
)

// A lasted counts for how long what lasts has lasted: a series apart from the latency of a
// limiter, which such requests say nothing about. They are few, and each ends once.
type lasted struct {
	mu  sync.Mutex
	all goodput.Histogram
}

// since counts what began then and has ended now.
func (l *lasted) since(began time.Time) {
	l.mu.Lock()
	l.all.Add(time.Since(began))
	l.mu.Unlock()
}

func (l *lasted) counts() goodput.Histogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}
