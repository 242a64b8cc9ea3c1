package upstream

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// An outgoing request on its way from server to server: what of it may be sent again, and to
// whom.
type outgoing struct {
	in     *http.Request
	path   url.URL // as it came: the path of a server is put before it
	host   string
	tries  int
	broken int     // of them, those that a server may have executed
	body   *parcel // of the last try; nil without a body
}

// to returns the request for s. The first is the incoming one itself; a transport may still look
// at one that has failed.
func (o *outgoing) to(s *server) *http.Request {
	r := o.in
	body := r.Body != nil && r.Body != http.NoBody
	if o.tries > 0 || body {
		own := &struct { // one allocation
			http.Request
			url  url.URL
			body parcel
		}{Request: *r, url: o.path}
		r = &own.Request
		r.URL = &own.url
		if body {
			own.body.from = o.in.Body
			o.body = &own.body
			r.Body = o.body
		}
	}
	o.tries++
	pr := httputil.ProxyRequest{Out: r}
	pr.SetURL(s.target)
	r.Host = o.host // SetURL has taken it for that of the server
	return r
}

// another reports whether another server may have the request that failed with err. What was
// not executed may be sent on if its body is untouched. What may have been executed, since
// the connection broke before there was a response, is sent on once, if it is one of those
// that may be repeated, or if the server cannot have got its body.
func (o *outgoing) another(err error) bool {
	if o.in.Context().Err() != nil || errors.Is(err, ErrSwitched) {
		return false
	}
	if unexecuted(err) {
		return o.body == nil || o.body.revoke()
	}
	if o.broken++; o.broken > 1 || o.in.Header["Upgrade"] != nil {
		return false
	}
	if o.body != nil {
		return o.in.Header["Expect"] == nil && o.body.revoke()
	}
	return repeatable(o.in)
}

// repeatable reports whether r means the same when it is received twice: as net/http has it
// for connections that it finds closed.
func repeatable(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}

// unexecuted reports whether err means that nothing of the request was sent.
func unexecuted(err error) bool {
	var (
		cert   *tls.CertificateVerificationError
		alert  tls.AlertError
		record tls.RecordHeaderError
	)
	return undialed(err) || errors.As(err, &cert) || errors.As(err, &alert) || errors.As(err, &record)
}

func undialed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// broke reports whether the client's body broke.
func (o *outgoing) broke() bool { return o.body != nil && o.body.isBroken() }

// settle says that there is no further try.
func (o *outgoing) settle() {
	if o.body != nil {
		o.body.settle()
	}
}

// A parcel is the body of a request as one server gets it. A transport closes the body of a
// request that failed; the next server is to have it, so closing it is put off until there
// is no further try. And what one server has begun to read no other one gets.
type parcel struct {
	from io.ReadCloser

	mu      sync.Mutex
	touched bool // somebody has begun to read it
	revoked bool // it is for another server now. Invariant: not touched before
	broken  bool // reading it failed
	closed  bool
	settled bool
}

func (b *parcel) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.revoked || b.closed {
		b.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	b.touched = true
	b.mu.Unlock()
	n, err := b.from.Read(p)
	if err != nil && err != io.EOF {
		b.mu.Lock()
		b.broken = true
		b.mu.Unlock()
	}
	return n, err
}

func (b *parcel) Close() error {
	b.mu.Lock()
	now := b.settled && !b.closed && !b.revoked
	b.closed = true
	b.mu.Unlock()
	if now {
		return b.from.Close()
	}
	return nil
}

// revoke takes it back for another server, and reports whether that is possible.
func (b *parcel) revoke() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revoked = !b.touched
	return b.revoked
}

func (b *parcel) settle() {
	b.mu.Lock()
	now := b.closed || b.revoked // nobody else will
	b.settled = true
	b.mu.Unlock()
	if now {
		b.from.Close()
	}
}

func (b *parcel) isBroken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken
}
