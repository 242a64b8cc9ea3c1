package goodputhttp

import (
	"io"
	"net/http"
)

// Bits of what a writer has beside the three methods of http.ResponseWriter.
const (
	canFlush = 1 << iota
	canHijack
	canReadFrom
	canPush
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
	if _, ok := w.(http.Pusher); ok {
		has |= canPush
	}
	return has
}

// writer returns w with the optional interfaces of the writer as it came, and
// none that it lacks: handlers decide by a type assertion whether they can
// stream, and a promise that fails when it is called is worse than none.
// net/http itself has two of the sixteen combinations, f|h|r for HTTP/1 and f|p
// for HTTP/2; the others come from middleware.
func (w *response) writer() http.ResponseWriter {
	type (
		f = *flusher
		h = *hijacker
		r = *readerFrom
		p = *pusher
	)
	switch abilities(w.ResponseWriter) {
	case canFlush | canHijack | canReadFrom:
		return struct {
			*response
			f
			h
			r
		}{w, f(w), h(w), r(w)}
	case canFlush | canPush:
		return struct {
			*response
			f
			p
		}{w, f(w), p(w)}
	case canFlush:
		return struct {
			*response
			f
		}{w, f(w)}
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
	case canPush:
		return struct {
			*response
			p
		}{w, p(w)}
	case canHijack | canPush:
		return struct {
			*response
			h
			p
		}{w, h(w), p(w)}
	case canFlush | canHijack | canPush:
		return struct {
			*response
			f
			h
			p
		}{w, f(w), h(w), p(w)}
	case canReadFrom | canPush:
		return struct {
			*response
			r
			p
		}{w, r(w), p(w)}
	case canFlush | canReadFrom | canPush:
		return struct {
			*response
			f
			r
			p
		}{w, f(w), r(w), p(w)}
	case canHijack | canReadFrom | canPush:
		return struct {
			*response
			h
			r
			p
		}{w, h(w), r(w), p(w)}
	case canFlush | canHijack | canReadFrom | canPush:
		return struct {
			*response
			f
			h
			r
			p
		}{w, f(w), h(w), r(w), p(w)}
	}
	return w
}
