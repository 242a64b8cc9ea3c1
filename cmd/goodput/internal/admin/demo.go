package admin

import "net/http"

// A Demo is what a live demo adds to the listener.
type Demo struct {
	Controls http.Handler // GET and POST /api/v1/demo
	Scene    func() any   // Tick.demo, asked for once in each tick
}

// demo mounts it: a page of another origin is not to steer it.
func (a *Admin) demo(d *Demo) {
	if d != nil {
		a.mux.Handle("/api/v1/demo", http.NewCrossOriginProtection().Handler(d.Controls))
	}
}
