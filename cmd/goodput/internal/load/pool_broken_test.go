package load

import (
	"context"
	"net/http"
	"testing"
)

// Connections that broke leave the pool when another one is made, so that they are not looked
// through for each request, and do not count for what it may have.
func TestPoolForgetsBrokenConnections(t *testing.T) {
	_, u := target(t, 250, func(http.ResponseWriter, *http.Request) {})
	c := dial(t, HTTP{URL: u, HTTP2: true, Conns: 3})
	p := c.via.(*pool)
	old := *p.conns.Load()
	for _, conn := range old {
		conn.Close()
	}
	until(t, "all have ended", func() bool { return old[0].Err() != nil && old[1].Err() != nil && old[2].Err() != nil })
	if a := c.Send(context.Background()); a.Status != 200 {
		t.Errorf("%+v", a)
	}
	if now := *p.conns.Load(); len(now) != 1 || now[0] == old[0] || now[0] == old[1] || now[0] == old[2] {
		t.Errorf("%d connections in the pool, want the new one", len(now))
	}
}
