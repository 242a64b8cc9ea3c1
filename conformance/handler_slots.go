package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// The checks of how long a request holds its slot.

func checkHandlerLimit(e *env) error {
	const limit, clients = 10, 24
	s := e.site(limit)
	if err := e.together(clients, "requests at a limit of 10", func(int) {
		for range e.rounds(e.times(20), "requests of each of 24 clients") {
			x := s.send("/quick", nil)
			if err := s.sanely(x, "a request at a limit of 10"); err != nil {
				e.fail(err)
				return
			}
		}
	}); err != nil {
		return err
	}
	if most := s.most.Load(); most > limit {
		return fmt.Errorf("%d were in the handler at once at a limit of %d", most, limit)
	}
	return s.free(limit, "after the load")
}

func checkHandlerLimitZero(e *env) error {
	var s *site
	refused := func() (msg any) {
		defer func() { msg = recover() }()
		s = e.site(0)
		return nil
	}()
	if refused != nil {
		return note(fmt.Sprintf("refused as a configuration: %v", refused))
	}
	ctx, cancel := context.WithTimeout(e.ctx, 2*e.grace)
	defer cancel()
	c := make(chan answer, 1)
	go func() { c <- s.direct(ctx, "/quick?zero") }()
	var said error
	select {
	case a := <-c:
		said = a.genuine()
	case <-e.broken:
	case <-time.After(5 * e.grace): // that it waits on is for deadline-waiting to say
	}
	if s.has("zero") {
		return errors.New("a request was run at a limit of 0")
	}
	if said != nil {
		return fmt.Errorf("a request at a limit of 0: %w", said)
	}
	return nil
}

// called runs direct under a watch. What comes after it has given up stays in the channel.
func (e *env) called(s *site, ctx context.Context, pathQuery, what string, args ...any) (answer, error) {
	answers := make(chan answer, 1)
	go func() { answers <- s.direct(ctx, pathQuery) }()
	return receive(e, answers, what, args...)
}

func checkHandlerPanic(e *env) error {
	const limit = 4
	panics := max(e.times(1000), 2*limit)
	s := e.site(limit)
	s.special = func(http.ResponseWriter, *http.Request) {
		s.own.Store(true)
		panic(http.ErrAbortHandler)
	}
	for i := range e.rounds(panics, "panics") {
		query := fmt.Sprintf("panic%d", i)
		a, err := e.called(s, e.ctx, "/panic?"+query, "request %d, each of which panics, at a limit of %d", i+1, limit)
		if err != nil {
			return err
		}
		if !s.has(query) {
			return fmt.Errorf("after %d handlers that panicked, one after the other at a limit of %d, the next request is not run and answered %d: their slots are gone", i, limit, a.status)
		}
	}
	for i := range limit {
		go s.direct(e.ctx, "/hold?after")
		if err := s.entry("after so many panics %d of %d requests get in", i, limit); err != nil {
			return err
		}
	}
	s.let()
	return nil
}

func checkPanicGoesOn(e *env) error {
	bug := &struct{ s string }{"a bug"}
	for _, value := range []any{http.ErrAbortHandler, bug} {
		s := e.site(1) // the slot may be gone with the first
		s.special = func(http.ResponseWriter, *http.Request) {
			s.own.Store(true)
			panic(value)
		}
		a, err := e.called(s, e.ctx, "/panic", "a handler that panics with %v", value)
		if err != nil {
			return err
		}
		if a.panicked != value {
			return fmt.Errorf("the handler panicked with %v, and the server gets %v", value, a.panicked)
		}
	}
	return nil
}

// checkHandlerDeadline ends the context of requests that wait, and then lets go the one
// that runs. After that it does so in the very moment, often.
func checkHandlerDeadline(e *env) error {
	const callers = 5
	s := e.site(1)
	holder := make(chan struct{})
	go func() {
		defer close(holder)
		s.direct(e.ctx, "/hold?holder")
	}()
	if err := s.entry("the first request"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, 2*e.grace)
	defer cancel()
	var wg sync.WaitGroup
	answers := make([]answer, callers)
	for i := range callers {
		wg.Go(func() { answers[i] = s.direct(ctx, fmt.Sprintf("/quick?late%d", i)) })
	}
	<-ctx.Done()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wg.Wait()
	}()
	// If they wait on, letting go of the holder shows whether they are run.
	select {
	case <-ended:
	case <-time.After(e.patience):
		s.let()
		if err := e.await(ended, "5 requests that waited, and whose context is over, after the slot is free"); err != nil {
			return err
		}
		for i := range callers {
			if s.has(fmt.Sprintf("late%d", i)) {
				return fmt.Errorf("requests whose context was over went on waiting for %v, and were then run", e.patience)
			}
		}
		return fmt.Errorf("requests whose context was over went on waiting for %v, until the slot came free", e.patience)
	}
	s.let()
	if err := e.await(holder, "the first request, let go"); err != nil {
		return err
	}
	for i := range callers {
		if s.has(fmt.Sprintf("late%d", i)) {
			return errors.New("a request was run whose context was over before a slot came free")
		}
		if err := answers[i].genuine(); err != nil {
			return fmt.Errorf("a request whose deadline has passed while it waited: %w", err)
		}
	}
	return checkHandlerDeadlineRace(e)
}

// checkHandlerDeadlineRace lets go the one that runs at the very deadline of the others,
// of whom half wait by then and half are on their way. Nobody of either is to be run: the
// slot comes free when the deadline has passed, if only by an instant.
func checkHandlerDeadlineRace(e *env) error {
	const callers = 8
	s := e.site(1)
	end := make(chan struct{})
	s.special = func(http.ResponseWriter, *http.Request) {
		s.entered <- ""
		select {
		case <-end:
		case <-e.ctx.Done():
		}
	}
	asked, ran := 0, 0
	for round := range e.rounds(e.times(200), "rounds at the very deadline") {
		var wg sync.WaitGroup
		holder := make(chan struct{})
		go func() {
			defer close(holder)
			s.direct(e.ctx, "/until-the-deadline")
		}()
		if err := s.entry("round %d: the request that holds the slot", round); err != nil {
			return err
		}
		late := func(i int) string { return fmt.Sprintf("late%d-%d", round, i) }
		atDeadline(e.ctx, callers, func(ctx context.Context, i int) {
			wg.Go(func() { s.direct(ctx, "/quick?"+late(i)) })
		})
		asked += callers
		select {
		case end <- struct{}{}:
		case <-e.broken:
			return e.faulty()
		}
		if err := e.await(holder, "round %d: the request that held the slot, let go", round); err != nil {
			return err
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			wg.Wait()
		}()
		if err := e.await(ended, "round %d: %d requests whose deadline passed as the slot came free", round, callers); err != nil {
			return err
		}
		for i := range callers {
			if s.has(late(i)) {
				ran++
			}
		}
	}
	if ran > 0 {
		return fmt.Errorf("of %d requests whose deadline had passed just before the slot came free %d were run", asked, ran)
	}
	return nil
}

func checkDeadlineHeader(e *env) error {
	s := e.site(1)
	opts := e.web.opts
	given := make(chan time.Duration, 1)
	s.special = func(_ http.ResponseWriter, r *http.Request) {
		at, _ := r.Context().Deadline() // none is long ago
		given <- time.Until(at)
	}
	within := func(ms int) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(opts.DeadlineHeader, opts.Milliseconds(ms)) }
	}
	if err := s.ok(s.send("/deadline", within(60_000)), "a request with a minute"); err != nil {
		return err
	}
	left, err := receive(e, given, "a request with a minute is run")
	switch {
	case err != nil:
		return err
	case left < 0:
		return fmt.Errorf("the context of the handler has no deadline that is to come, and the request had a minute in %s", opts.DeadlineHeader)
	case left > time.Minute:
		return fmt.Errorf("the handler is told that it has %v, and the request had a minute in %s", left, opts.DeadlineHeader)
	}
	if _, err := s.fill(1, "at first"); err != nil {
		return err
	}
	late := s.send("/quick?late", within(20))
	if err := e.await(late.done, "a request with 20 ms, which finds no slot"); err != nil {
		return err
	}
	s.let()
	if s.has("late") {
		return errors.New("a request with 20 ms was run after them")
	}
	if late.err == nil && late.status < http.StatusBadRequest {
		return fmt.Errorf("a request with 20 ms was not run in them, and is answered %d", late.status)
	}
	return nil
}

func checkClientAbort(e *env) error {
	s := e.site(1)
	samples := func() int { return 0 }
	if e.web.opts.Samples != nil {
		samples = e.web.opts.Samples
	}
	before := samples()
	ended := make(chan struct{})
	s.special = func(_ http.ResponseWriter, r *http.Request) {
		s.entered <- ""
		<-r.Context().Done()
		close(ended)
	}
	running := s.send("/until-gone", nil)
	if err := s.entry("the first request"); err != nil {
		return err
	}
	waiting := s.send("/quick?"+watched, nil)
	ctx, err := receive(e, s.arrived, "a second request does not arrive")
	if err != nil {
		return err
	}
	waiting.cancel() // if it was refused there is nobody to leave
	if err := e.await(ctx.Done(), "the context of a request whose client has left while it waited"); err != nil {
		return err
	}
	time.Sleep(e.grace) // contexts below it end a moment later
	running.cancel()
	if err := e.await(ended, "the context of a request whose client has left"); err != nil {
		return err
	}
	// The slot comes free as the handler returns; a limiter that refuses at once may say no
	// until then.
	if err := s.eventually("/quick?next", nil, "the next request, after the client has left"); err != nil {
		return err
	}
	if s.has("left") {
		return errors.New("a request was run whose client had left while it waited")
	}
	if n := samples() - before; n > 1 { // the next one is one
		return fmt.Errorf("%d service times were learnt of one request that was served: a client that left is one of them", n)
	}
	return s.free(1, "after a client has left")
}

// eventually sends a request until it is answered 200.
func (s *site) eventually(pathQuery string, change func(*http.Request), what string) error {
	var err error
	for end := time.Now().Add(s.e.patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err = s.ok(s.send(pathQuery, change), "%s", what); err == nil {
			return nil
		}
	}
	return err
}

// checkStreaming lets the client have the header and a part of the body.
func checkStreaming(e *env) error {
	s := e.site(1)
	end := make(chan struct{})
	finish := sync.OnceFunc(func() { close(end) })
	defer finish()
	s.special = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first part")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "last part")
	}
	first := make(chan struct{})
	rest := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(e.ctx, http.MethodGet, s.url+"/stream", nil)
		res, err := s.client.Do(req)
		if err != nil {
			rest <- err
			return
		}
		defer res.Body.Close() //nolint:errcheck // it is read to its end
		if _, err := io.ReadFull(res.Body, make([]byte, len("first part"))); err != nil {
			rest <- err
			return
		}
		close(first)
		_, err = io.Copy(io.Discard, res.Body)
		rest <- err
	}()
	if err := e.await(first, "the first part of a response that was flushed"); err != nil {
		return err
	}
	other := s.send("/quick?other", nil)
	time.Sleep(2 * e.grace)
	if s.has("other") {
		return errors.New("another request was run at a limit of 1 while a response was still being sent")
	}
	finish()
	failed, err := receive(e, rest, "the end of a response")
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("a response that streams: %w", err)
	}
	if err := e.await(other.done, "a request that came during a response"); err != nil {
		return err
	}
	if err := s.eventually("/quick", nil, "a request after the end of a response"); err != nil {
		return err
	}
	return s.free(1, "after a response that streamed")
}

// checkHijack tells at which of three moments the slot comes free; only never is wrong.
func checkHijack(e *env) error {
	s := e.site(1)
	taken := make(chan net.Conn, 1)
	failed := make(chan error, 1)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	s.special = func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			failed <- err
			return
		}
		taken <- conn
		<-hold
	}
	conn, err := net.DialTimeout("tcp", s.addr, e.patience)
	if err != nil {
		return fmt.Errorf("dialling the server: %w", err)
	}
	defer conn.Close() //nolint:errcheck // nothing is expected of it
	_, _ = fmt.Fprintf(conn, "GET /hijack HTTP/1.1\r\nHost: x\r\n\r\n")
	var server net.Conn
	select {
	case server = <-taken:
	case err := <-failed:
		return fmt.Errorf("hijacking: %w", err)
	case <-e.broken:
		return e.faulty()
	case <-time.After(e.patience):
		return errors.New("hijacking: the handler was not run" + stuck())
	}
	defer server.Close() //nolint:errcheck // it is closed below
	free := func() bool {
		x := s.send("/quick", nil)
		defer x.cancel()
		select {
		case <-x.done:
			return x.status == http.StatusOK
		case <-time.After(3 * e.grace):
			return false
		}
	}
	how := "the slot comes free when the connection is hijacked, so it does not limit those"
	if !free() {
		release()
		how = "the slot comes free when the handler returns"
		if !free() {
			how = "the slot comes free when the connection is closed"
		}
	}
	release()
	_, _ = io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fmt.Errorf("the answer over a hijacked connection: %w", err)
	}
	_ = res.Body.Close()
	_ = server.Close()
	if err := s.eventually("/quick", nil, "a request after a hijacked connection was closed"); err != nil {
		return err
	}
	if err := s.free(1, "after a hijacked connection was closed"); err != nil {
		return err
	}
	return note(how)
}
