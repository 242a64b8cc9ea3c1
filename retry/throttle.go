package retry

import "time"

// A Throttle keeps calls at home that the server would most likely refuse, so that a
// client that is refused stops costing the server. The zero value is ready to use: it
// sends two calls for each that was accepted, over two minutes. It is safe for concurrent
// use, and belongs to one dependency.
type Throttle struct {
	K      float64       // 1.1 to 100, default 2
	Window time.Duration // 1 s to 10 min, default 2 min
}

// Refuses reports whether this call is kept at home. A call that is not is followed by
// Accepted, unless the server refused it.
func (t *Throttle) Refuses() bool { panic("not built") }

// Accepted counts that the server did not refuse the call.
func (t *Throttle) Accepted() { panic("not built") }
