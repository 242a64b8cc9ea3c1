package live

import (
	"errors"
	"net/http"
	"time"
)

// How long a viewer may take to read one event before its connection is closed: a tick of 100
// limiters is 0.7 MB and their history 3 MB, so a line of 0.2 MB/s, which can keep up with
// nothing more than it, is given the time that it needs.
const (
	tickTimeout    = 5 * time.Second
	historyTimeout = 30 * time.Second
)

// ServeHTTP streams events until the viewer leaves, is too slow, or the hub ends: history first,
// then a tick at once and one each second. Those are the heartbeat too. Last-Event-ID is of no
// use here: whoever comes again is sent the history again, which has what it missed.
//
//	?limiter=NAME   that limiter alone
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, f, err := h.join(r.URL.Query().Get("limiter"))
	if err != nil {
		code := http.StatusServiceUnavailable
		if errors.Is(err, errUnknown) {
			code = http.StatusNotFound
		}
		http.Error(w, err.Error(), code)
		return
	}
	defer h.leave(v)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // an nginx in front passes each event on at once
	if r.Method == http.MethodHead {
		return
	}
	s := stream{w, http.NewResponseController(w)}
	// The server's ReadTimeout would end the request while we answer it, and its WriteTimeout the
	// answer: the first is lifted, since there is nothing more to read, the second set anew for
	// each event.
	if err := s.control.SetReadDeadline(time.Time{}); err != nil {
		http.Error(w, "this server cannot stream: "+err.Error(), http.StatusInternalServerError)
		return
	}
	if s.send(f.history(v.limiter), historyTimeout) != nil || s.send(h.read(v).message(v.limiter), tickTimeout) != nil {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case event, is := <-v.ticks:
			if !is || s.send(event, tickTimeout) != nil {
				return
			}
		}
	}
}

// A stream is the answer to a viewer.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// send writes an event, or fails when that takes too long.
func (s stream) send(event []byte, timeout time.Duration) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := s.w.Write(event); err != nil {
		return err
	}
	return s.control.Flush()
}
