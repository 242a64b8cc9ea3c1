package proxy

import "net/http"

// An early is the writer of a response over HTTP/2 in a class of connections, to which responses
// before the last one (100, 103) may be written while its client resets the stream. Where there
// is a limiter, goodputhttp sees to that.
//
// net/http returns from WriteHeader then, and is still reading the header in another
// goroutine; ReverseProxy clears it at once. A map that is written while it is read ends
// the process, so that one client and one service with early hints could end it for all. Of
// a header with a Content-Length, which no such response may have, net/http sends a copy
// without it: so each gets one.
type early struct{ http.ResponseWriter }

// noLength is never changed.
var noLength = []string{"0"}

func (w *early) WriteHeader(status int) {
	if status >= 200 {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	h := w.Header()
	length, had := h["Content-Length"]
	if !had {
		h["Content-Length"] = noLength
	}
	w.ResponseWriter.WriteHeader(status)
	if h["Content-Length"] = length; !had {
		delete(h, "Content-Length")
	}
}

// Flush and FlushError are what the writer of HTTP/2 has beside the three.
func (w *early) Flush()            { _ = w.FlushError() } // the next write says so
func (w *early) FlushError() error { return http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *early) Unwrap() http.ResponseWriter { return w.ResponseWriter }
