package conformance

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"
)

const (
	http1 = "HTTP/1.1"
	http2 = "HTTP/2"
)

// A web is the server and the client of one check.
type web struct {
	handlers func(limit int, next http.Handler) http.Handler
	opts     *HandlerOptions
	protocol string

	mu    sync.Mutex
	after []func() // what ends it, the last first
}

func (w *web) later(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = append(w.after, f)
}

// close ends the servers in a goroutine of its own: a handler that hangs must not hold up
// the next check.
func (w *web) close() {
	w.mu.Lock()
	after := w.after
	w.after = nil
	w.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := len(after) - 1; i >= 0; i-- {
			after[i]()
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// A site is a limited handler that is served, and what is behind the limiter: a stage.
type site struct {
	*stage
	e      *env
	h      http.Handler
	url    string
	addr   string
	client *http.Client

	arrived chan context.Context // of the request with the query watched, before the limiter
}

// watched is the query of a request of which has to be known what its server knows.
const watched = "left"

// open serves what makes a limited handler of a new stage.
func (e *env) open(limit int, handlers func(int, http.Handler) http.Handler) *site {
	st := &stage{entered: make(chan string, 4096), open: make(chan struct{})}
	s := &site{stage: st, e: e, h: handlers(limit, st), arrived: make(chan context.Context, 1)}
	if s.h == nil {
		panic(fmt.Sprintf("conformance: a handler with the limit %d is nil", limit))
	}
	e.web.later(st.let)
	if e.web.protocol == "" {
		return s
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == watched {
			s.arrived <- r.Context()
		}
		s.serve(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Config.MaxHeaderBytes = 4 << 20 // for headers of a megabyte
	srv.Config.Protocols = protocols(http1, http2)
	if e.web.opts.Server != nil {
		e.web.opts.Server(srv.Config)
		e.callbacks(srv.Config)
	}
	srv.Start()
	e.web.later(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	tr := &http.Transport{Protocols: protocols(e.web.protocol), ExpectContinueTimeout: e.patience}
	e.web.later(tr.CloseIdleConnections)
	s.url, s.addr, s.client = srv.URL, srv.Listener.Addr().String(), &http.Client{Transport: tr}
	return s
}

// serve calls the handler. What it panics with goes on, as net/http would have it; if that is
// neither the stage's nor how net/http is told to cut the connection, the check has failed.
func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if v != http.ErrAbortHandler && !s.own.Load() {
			s.e.fail(ending("the handler", v))
		}
		if v != nil {
			panic(v)
		}
	}()
	s.h.ServeHTTP(w, r)
	returned = true
}

func (e *env) site(limit int) *site { return e.open(limit, e.web.handlers) }

func protocols(names ...string) *http.Protocols {
	p := new(http.Protocols)
	for _, name := range names {
		switch name {
		case http1:
			p.SetHTTP1(true)
		case http2:
			p.SetUnencryptedHTTP2(true)
		}
	}
	return p
}

// A stage is the handler behind the limiter.
//
//	/quick    answers
//	/hold     is entered, and answers once it is let go or its context is over
//	/stuck    the same whatever its context says
//	others    do as special says
//
// A body whose length is known has to be there.
type stage struct {
	tally
	own     atomic.Bool // special panics
	ran     sync.Map    // path + "?" + query: struct{}
	entered chan string // its query
	open    chan struct{}
	once    sync.Once
	special http.HandlerFunc // any other path
}

// let lets go whoever holds.
func (st *stage) let() { st.once.Do(func() { close(st.open) }) }

func (st *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	st.in()
	defer st.out()
	st.ran.Store(r.URL.RawQuery, struct{}{})
	if r.URL.Path == "/quick" || r.URL.Path == "/hold" {
		if b, _ := io.ReadAll(r.Body); r.ContentLength > int64(len(b)) {
			http.Error(w, fmt.Sprintf("%d bytes of a body of %d", len(b), r.ContentLength), http.StatusUnprocessableEntity)
			return
		}
	}
	switch r.URL.Path {
	case "/quick":
	case "/hold":
		st.entered <- r.URL.RawQuery
		select {
		case <-st.open:
		case <-r.Context().Done():
		}
	case "/stuck":
		st.entered <- r.URL.RawQuery
		<-st.open
	default:
		st.special(w, r)
		return
	}
	_, _ = io.WriteString(w, okay)
}

// okay is all that a stage says.
const okay = "ok"

// genuine returns an error for an answer that is no refusal and not the stage's: whoever is
// told that all is well has been run.
func genuine(method string, status int, body string) error {
	if method == http.MethodHead {
		body = okay
	}
	if status < http.StatusBadRequest && (status != http.StatusOK || body != okay) {
		return fmt.Errorf("it is answered %d with %d bytes that the handler has not written: it was not run, or its answer is lost", status, len(body))
	}
	return nil
}

// has reports whether the request of that query was run.
func (st *stage) has(query string) bool {
	_, ok := st.ran.Load(query)
	return ok
}

// An exchange is a request and its answer.
type exchange struct {
	cancel context.CancelFunc
	req    *http.Request
	done   chan struct{} // closed at the end of the answer; what follows is valid then
	status int
	header http.Header
	body   string
	after  http.Header // the trailers
	err    error
}

// send sends a request; change may be nil.
func (s *site) send(pathQuery string, change func(*http.Request)) *exchange {
	ctx, cancel := context.WithCancel(s.e.ctx)
	x := &exchange{cancel: cancel, done: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+pathQuery, nil)
	if err != nil {
		panic(fmt.Sprintf("conformance: a request of its own: %v", err))
	}
	if change != nil {
		change(req)
	}
	x.req = req
	go func() {
		defer close(x.done)
		defer s.e.beats.Add(1)
		res, err := s.client.Do(req)
		if err != nil {
			x.err = err
			return
		}
		defer res.Body.Close() //nolint:errcheck // it was read
		var body []byte
		body, x.err = io.ReadAll(res.Body)
		x.body = string(body)
		x.status, x.header, x.after = res.StatusCode, res.Header, res.Trailer
	}()
	return x
}

// plain reports whether the stage answers it without special.
func (x *exchange) plain() bool { return x.req.URL.Path == "/quick" || x.req.URL.Path == "/hold" }

// answered waits for an answer of the stage or a refusal.
func (s *site) answered(x *exchange, what string, args ...any) error {
	if err := s.e.await(x.done, what, args...); err != nil {
		return err
	}
	err := x.err
	if err == nil && x.plain() {
		err = genuine(x.req.Method, x.status, x.body)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
	}
	return nil
}

// ok waits for a 200.
func (s *site) ok(x *exchange, what string, args ...any) error {
	if err := s.answered(x, what, args...); err != nil {
		return err
	}
	if x.status != http.StatusOK {
		return fmt.Errorf("%s: answered %d, %.60q", fmt.Sprintf(what, args...), x.status, x.body)
	}
	return nil
}

// entry waits until somebody is in the handler.
func (s *site) entry(what string, args ...any) error {
	in := make(chan struct{})
	go func() {
		select {
		case <-s.entered:
			close(in)
		case <-s.e.ctx.Done():
		}
	}()
	return s.e.await(in, what, args...)
}

// into waits until x is in the handler, and is the only one that gets there.
func (s *site) into(x *exchange, what string, args ...any) error {
	done := make(chan struct{})
	in := false
	go func() {
		defer close(done)
		select {
		case <-s.entered:
			in = true
		case <-x.done:
		case <-s.e.ctx.Done():
		}
	}()
	if err := s.e.await(done, what, args...); err != nil || in {
		return err
	}
	if x.err != nil {
		return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), x.err)
	}
	return fmt.Errorf("%s: it is answered %d, %.60q", fmt.Sprintf(what, args...), x.status, x.body)
}

// fill has n requests in the handler.
func (s *site) fill(n int, when string) (held []*exchange, err error) {
	for i := range n {
		x := s.send(fmt.Sprintf("/hold?%d", i), nil)
		held = append(held, x)
		if err := s.into(x, "%s: request %d of %d does not get into the handler", when, i+1, n); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// free sees that n requests get in together and one more does not. It lets everybody go, so
// it comes last.
func (s *site) free(n int, when string) error {
	held, err := s.fill(n, when)
	if err != nil {
		return err
	}
	over := s.send("/quick?over", nil)
	time.Sleep(s.e.grace)
	if s.has("over") {
		return fmt.Errorf("%s: %d are in the handler at a limit of %d", when, n+1, n)
	}
	s.let()
	for i, x := range held {
		if err := s.ok(x, "%s: request %d of %d, let go", when, i+1, n); err != nil {
			return err
		}
	}
	return s.e.await(over.done, "%s: one more than the limit, after the others have ended", when)
}

// An answer is what a handler says to a request without a server.
type answer struct {
	status   int
	body     string
	panicked any
}

// genuine is that of an answer; whoever panics has said nothing.
func (a answer) genuine() error {
	if a.panicked != nil {
		return nil
	}
	return genuine(http.MethodGet, a.status, a.body)
}

// direct calls the handler without a server.
func (s *site) direct(ctx context.Context, pathQuery string) (a answer) {
	rec := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, pathQuery, nil)
	s.own.Store(false)
	defer s.e.beats.Add(1)
	defer func() { a = answer{rec.Code, rec.Body.String(), recover()} }()
	s.serve(rec, req)
	return a
}

// receive returns what the handler gives to c once it is run.
func receive[T any](e *env, c <-chan T, what string, args ...any) (T, error) {
	done := make(chan struct{})
	var v, none T
	go func() {
		select {
		case v = <-c:
			close(done)
		case <-e.ctx.Done():
		}
	}()
	if err := e.await(done, what, args...); err != nil {
		return none, err
	}
	return v, nil
}
