package live

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// How long a viewer may take to read one event before its connection is closed: a tick of 100
// limiters is 0.7 MB and their history 3 MB, so a line of 0.2 MB/s, which can keep up with
// nothing more than it, is given the time that it needs. The page waits for as long: begins in stream.js.
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
	limiter, err := limiterOf(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	v, f, err := h.join(limiter)
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
		case f, is := <-v.ticks:
			if !is || s.send(f.message(v.limiter), tickTimeout) != nil {
				return
			}
		}
	}
}

// limiterOf reads the parameter, "" for all. One that a shell has left empty is a mistake, as it is for
// /api/v1/explain.
func limiterOf(query string) (string, error) {
	q, err := url.ParseQuery(query)
	switch {
	case err != nil:
		return "", fmt.Errorf("the query is malformed: %w", err)
	case len(q["limiter"]) > 1:
		return "", fmt.Errorf("limiter is said %d times: say it once", len(q["limiter"]))
	case q.Has("limiter") && q.Get("limiter") == "":
		return "", errors.New("limiter is empty: say a name, or leave it out to mean all limiters")
	}
	return q.Get("limiter"), nil
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
