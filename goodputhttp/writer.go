package goodputhttp

import (
	"io"
	"net/http"
)

// Bits of what a writer has beside the three methods of http.ResponseWriter.
// HTTP/2 push is not among them: browsers have dropped it.
const (
	canFlush = 1 << iota
	canHijack
	canReadFrom
)

func abilities(w http.ResponseWriter) (has int) {
	switch w.(type) {
	case http.Flusher, interface{ FlushError() error }:
		has |= canFlush
	}
	if _, ok := w.(http.Hijacker); ok {
		has |= canHijack
	}
	if _, ok := w.(io.ReaderFrom); ok {
		has |= canReadFrom
	}
	return has
}

// The two combinations that net/http has are parts of a response, which saves an allocation
// for each request.
type (
	http1Writer struct {
		*response
		*flusher
		*hijacker
		*readerFrom
	}
	http2Writer struct {
		*response
		*flusher
	}
)

// writer returns w with the optional interfaces of the writer as it came, and
// none that it lacks: handlers decide by a type assertion whether they can
// stream, and a promise that fails when it is called is worse than none.
// net/http itself has two of the eight combinations, f|h|r for HTTP/1 and f for
// HTTP/2; the others come from middleware.
func (w *response) writer() http.ResponseWriter {
	type (
		f = *flusher
		h = *hijacker
		r = *readerFrom
	)
	switch abilities(w.ResponseWriter) {
	case canFlush | canHijack | canReadFrom:
		w.http1 = http1Writer{w, f(w), h(w), r(w)}
		return &w.http1
	case canFlush:
		w.http2 = http2Writer{w, f(w)}
		return &w.http2
	case canHijack:
		return struct {
			*response
			h
		}{w, h(w)}
	case canFlush | canHijack:
		return struct {
			*response
			f
			h
		}{w, f(w), h(w)}
	case canReadFrom:
		return struct {
			*response
			r
		}{w, r(w)}
	case canFlush | canReadFrom:
		return struct {
			*response
			f
			r
		}{w, f(w), r(w)}
	case canHijack | canReadFrom:
		return struct {
			*response
			h
			r
		}{w, h(w), r(w)}
	}
	return w
}
