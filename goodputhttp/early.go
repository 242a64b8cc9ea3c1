package goodputhttp

import "net/http"

// noLength is never changed.
var noLength = []string{"0"}

// early writes a response before the last one (100, 103) over HTTP/2.
//
// If the client resets the stream meanwhile, net/http returns from WriteHeader and is still
// reading the header in another goroutine. Then the handler goes on to write its header, or we
// do, and a map that is written while it is read ends the process: one client could end it for
// all. Of a header with a Content-Length, which no such response may have, net/http sends a
// copy without it, so each gets one.
func early(w http.ResponseWriter, status int) {
	h := w.Header()
	length, had := h["Content-Length"]
	if !had {
		h["Content-Length"] = noLength
	}
	w.WriteHeader(status)
	if had {
		h["Content-Length"] = length
	} else {
		delete(h, "Content-Length")
	}
}
