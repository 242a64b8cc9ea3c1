package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A tunnel is an upgraded connection to a client: a WebSocket, or another protocol of which
// we know only that bytes move. It is what ReverseProxy copies to and from, and it
//
//	ends       when nothing has moved for the idle limit, or at the total limit
//	half-ends  when either side has no more to send, and the other goes on (golang/go#35892)
//	leaves     at a drain: a WebSocket with a close frame, the others at the end of it
//
// The two copies, and the connection to the service, end with it.
type tunnel struct {
	net.Conn // as whoever counts it has wrapped it
	half     closeWriter
	of       *tunnels
	counts   *traffic
	limits   limits
	early    []byte // what the client had sent before the upgrade was answered
	began    time.Time

	webSocket bool
	opened    atomic.Bool // the answer to the upgrade is out: frames may follow
	told      atomic.Bool // we are leaving
	closed    sync.Once

	write  sync.Mutex // towards the client
	frames frames     // towards the client
	// spoken: our close frame is out, or a write has failed, who knows where. Invariant: a
	// close frame stands at a boundary of frames, and nothing is written behind it.
	spoken bool
}

type closeWriter interface{ CloseWrite() error }

// farewell is how long a WebSocket has from our close frame to its end: time for a message
// on its way, the close frame of the client and that of the service.
const farewell = 5 * time.Second

// Read reads what the client sends. Who reads or writes for the first time has sent the
// answer to the upgrade.
func (t *tunnel) Read(p []byte) (int, error) {
	t.open()
	if len(t.early) > 0 {
		n := copy(p, t.early)
		t.early = t.early[n:]
		return n, nil
	}
	n, err := t.Conn.Read(p)
	if n > 0 {
		t.limits.move()
	}
	return n, err
}

// Write writes what the service sends, up to our close frame; what comes after it is
// dropped.
func (t *tunnel) Write(p []byte) (int, error) {
	t.open()
	t.write.Lock()
	defer t.write.Unlock()
	n, err := t.pass(p)
	if n > 0 {
		t.limits.move()
	}
	return n, err
}

func (t *tunnel) pass(p []byte) (int, error) {
	if !t.webSocket {
		return t.Conn.Write(p)
	}
	if t.spoken {
		return len(p), nil
	}
	end, speak := 0, false
	for end < len(p) && !speak {
		n, ends := t.frames.next(p[end:])
		end += n
		speak = ends && t.told.Load() && !t.frames.closing
	}
	n, err := t.Conn.Write(p[:end])
	switch {
	case err != nil:
		t.spoken = true
		return n, err
	case !speak:
		return n, nil
	}
	return len(p), t.speak()
}

func (t *tunnel) speak() error {
	t.spoken = true
	_, err := t.Conn.Write(goingAwayFrame)
	return err
}

func (t *tunnel) open() {
	if t.opened.CompareAndSwap(false, true) && t.told.Load() {
		t.leave()
	}
}

// leave says goodbye to a WebSocket, now or at the end of the frame that is being sent. A
// client that does not take it within the farewell has none.
func (t *tunnel) leave() {
	t.told.Store(true)
	if !t.webSocket || !t.opened.Load() {
		return
	}
	_ = t.SetWriteDeadline(time.Now().Add(farewell)) // of a write that goes on as well; it fails where Close has been called
	t.write.Lock()
	defer t.write.Unlock()
	if !t.spoken && t.frames.boundary() && !t.frames.closing {
		_ = t.speak() // then it is for Close to say
	}
}

// expire ends a tunnel at one of its limits.
func (t *tunnel) expire() {
	if !t.webSocket {
		t.Close()
		return
	}
	time.AfterFunc(farewell, func() { t.Close() })
	t.leave()
}

// CloseWrite tells the client that the service has no more to send.
func (t *tunnel) CloseWrite() error {
	if t.half == nil {
		return http.ErrNotSupported
	}
	return t.half.CloseWrite()
}

// Close ends the tunnel. ReverseProxy calls it at the end of the copies as well.
func (t *tunnel) Close() error {
	err := t.Conn.Close()
	t.closed.Do(func() {
		t.limits.stop()
		t.of.remove(t)
		t.counts.tunnels.Add(-1)
		t.counts.tunnelled.since(t.began)
	})
	return err
}

// An upgradable is the writer of a request that may become a tunnel.
type upgradable struct {
	http.ResponseWriter
	carrier *carrier
	r       *http.Request
	life    *life // of a request that is no stream; else nil
}

// Unwrap is for http.ResponseController.
func (w *upgradable) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack is how ReverseProxy takes over the connection, when the service has agreed.
func (w *upgradable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if w.life != nil {
		w.life.freed()
	}
	c := w.carrier
	t := &tunnel{
		Conn: conn, of: c.tunnels, counts: c.traffic, began: time.Now(),
		webSocket: strings.EqualFold(w.r.Header.Get("Upgrade"), "websocket"),
	}
	t.half, _ = conn.(closeWriter)
	if n := buf.Reader.Buffered(); n > 0 { // ReverseProxy copies from the connection
		t.early = make([]byte, n)
		_, _ = io.ReadFull(buf.Reader, t.early) // it is in memory
	}
	t.counts.tunnels.Add(1)
	t.counts.tunnelsEver.Add(1)
	c.tunnels.add(t)
	t.limits.start(c.cfg.Idle, c.cfg.Total, func(e ending) {
		t.counts.cut[e].Add(1)
		t.expire()
	})
	return t, buf, nil
}

// tunnels are all that are open, of all classes.
type tunnels struct {
	mu      sync.Mutex
	open    map[*tunnel]struct{}
	leaving bool
	gone    chan struct{} // closed when leaving and none is open
}

func (ts *tunnels) add(t *tunnel) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.open == nil {
		ts.open = map[*tunnel]struct{}{}
	}
	ts.open[t] = struct{}{}
	if ts.leaving {
		t.told.Store(true) // it hears of it once it is open
	}
}

func (ts *tunnels) remove(t *tunnel) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.open, t)
	ts.check()
}

func (ts *tunnels) check() {
	if ts.leaving && len(ts.open) == 0 && ts.gone != nil {
		close(ts.gone)
		ts.gone = nil
	}
}

// all returns those for which is holds.
func (ts *tunnels) all(is func(*tunnel) bool) []*tunnel {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var list []*tunnel
	for t := range ts.open {
		if is(t) {
			list = append(list, t)
		}
	}
	return list
}

// drain ends the tunnels: a WebSocket is told, and has the farewell for its end; another
// protocol has until ctx ends. It returns how many were cut at the end of ctx.
func (ts *tunnels) drain(ctx context.Context) (cut int) {
	gone := make(chan struct{})
	ts.mu.Lock()
	ts.leaving, ts.gone = true, gone
	ts.check()
	ts.mu.Unlock()
	everyone := func(*tunnel) bool { return true }
	for _, t := range ts.all(everyone) {
		go t.leave() // it may wait for a write, for the farewell at most
	}
	patience := time.NewTimer(farewell)
	defer patience.Stop()
	for {
		select {
		case <-gone:
			return 0
		case <-patience.C:
			for _, t := range ts.all(func(t *tunnel) bool { return t.webSocket }) {
				t.Close()
			}
		case <-ctx.Done():
			for _, t := range ts.all(everyone) {
				t.Close()
				cut++
			}
			return cut
		}
	}
}
