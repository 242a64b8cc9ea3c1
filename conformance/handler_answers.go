package conformance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// The checks of what goes over the wire.

// checkController compares with the writer of net/http, by trying.
func checkController(e *env) error {
	s := e.site(1)
	errs := make(chan error, 1)
	s.special = func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		later := time.Now().Add(time.Hour)
		all := []error{said("SetReadDeadline", c.SetReadDeadline(later)), said("SetWriteDeadline", c.SetWriteDeadline(later))}
		if r.ProtoMajor == 1 {
			all = append(all, said("EnableFullDuplex", c.EnableFullDuplex()))
		}
		w.Header().Set("Trailer", "X-End")
		all = append(all, said("Flush", c.Flush()))
		w.Header().Set("X-End", "reached")
		errs <- errors.Join(all...)
	}
	x := s.send("/controller", nil)
	if err := s.ok(x, "a request"); err != nil {
		return err
	}
	all, err := receive(e, errs, "a request that was answered is run")
	if err == nil {
		err = all
	}
	if err == nil && x.after.Get("X-End") != "reached" {
		err = errors.New("a trailer that the handler has set after the header was sent does not arrive")
	}
	return err
}

func said(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("http.ResponseController.%s: %w", what, err)
}

func checkInterfaces(e *env) error {
	s := e.site(1)
	lost := make(chan []string, 1)
	s.special = func(w http.ResponseWriter, r *http.Request) {
		var all []string
		if _, ok := w.(http.Flusher); !ok {
			all = append(all, "http.Flusher")
		}
		if r.ProtoMajor == 1 {
			if _, ok := w.(http.Hijacker); !ok {
				all = append(all, "http.Hijacker")
			}
			if _, ok := w.(io.ReaderFrom); !ok {
				all = append(all, "io.ReaderFrom")
			}
		}
		lost <- all
	}
	if err := s.ok(s.send("/interfaces", nil), "a request"); err != nil {
		return err
	}
	all, err := receive(e, lost, "a request that was answered is run")
	if err != nil {
		return err
	}
	if len(all) > 0 {
		return fmt.Errorf("the writer of the handler has lost %s", strings.Join(all, ", "))
	}
	return nil
}

func checkEarlyHints(e *env) error {
	s := e.site(1)
	s.special = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "no such page")
	}
	hints := make(chan int, 8)
	x := s.send("/hints", func(r *http.Request) {
		*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
				hints <- code
				return nil
			},
		}))
	})
	if err := e.await(x.done, "a response with an early hint"); err != nil {
		return err
	}
	if x.err != nil {
		return fmt.Errorf("a response with an early hint: %w", x.err)
	}
	if x.status != http.StatusNotFound {
		return fmt.Errorf("after 103 the handler answers 404, and the client gets %d", x.status)
	}
	if len(hints) != 1 {
		return fmt.Errorf("the handler sent one 103, and the client got %d", len(hints))
	}
	return s.free(1, "after a response with an early hint")
}

// checkContinue writes the requests by hand, to see each line that comes back.
func checkContinue(e *env) error {
	s := e.site(1)
	bodies := make(chan string, 1)
	s.special = func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- string(b)
	}
	conn, lines, err := s.expecting("/upload")
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is expected of it
	if status, err := status(lines); err != nil || status != http.StatusContinue {
		return fmt.Errorf("a request with Expect: 100-continue is answered %d, %w, before its body was sent", status, err)
	}
	_, _ = io.WriteString(conn, "body!")
	if status, err := status(lines); err != nil || status != http.StatusOK {
		return fmt.Errorf("after 100 and the body the answer is %d, %w", status, err)
	}
	if got, err := receive(e, bodies, "a request that was answered is run"); err != nil {
		return err
	} else if got != "body!" {
		return fmt.Errorf("the handler read %q of a body of 5 bytes", got)
	}
	full, refused, err := e.full()
	if err != nil || refused == nil {
		return err // a skip would hide what was seen above
	}
	conn, lines, err = full.expecting("/quick?refused")
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is expected of it
	_ = conn.SetReadDeadline(time.Now().Add(20 * e.grace))
	if code, err := status(lines); err == nil && code == http.StatusContinue {
		return errors.New("a request that finds no slot is told to send its body")
	}
	full.let()
	return nil
}

// expecting sends the head of a request with a body of 5 bytes.
func (s *site) expecting(pathQuery string) (net.Conn, *bufio.Reader, error) {
	conn, err := net.DialTimeout("tcp", s.addr, s.e.patience)
	if err != nil {
		return nil, nil, fmt.Errorf("dialling the server: %w", err)
	}
	_ = conn.SetDeadline(time.Now().Add(s.e.patience))
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", pathQuery)
	return conn, bufio.NewReader(conn), err
}

// status reads the head of a response.
func status(r *bufio.Reader) (int, error) {
	t := textproto.NewReader(r)
	line, err := t.ReadLine()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(code)
	if err != nil {
		return 0, fmt.Errorf("no status line: %q", line)
	}
	_, err = t.ReadMIMEHeader()
	return n, err
}

// overflow is how many requests are sent to a handler that may have a queue.
const overflow = 200

// full returns a site with all of its slots held, and the first refusal; nil if nobody of
// so many is refused.
func (e *env) full() (*site, *exchange, error) {
	handlers, n := e.web.opts.NoQueue, 3
	if handlers == nil {
		handlers, n = e.web.handlers, overflow
	}
	s := e.open(2, handlers)
	if _, err := s.fill(2, "of an idle handler"); err != nil {
		return nil, nil, err
	}
	refused := make(chan *exchange, n)
	for i := range n {
		x := s.send(fmt.Sprintf("/quick?over%d", i), nil)
		go func() {
			<-x.done
			refused <- x
		}()
	}
	wait := 20 * e.grace // for a queue, in which all of them may wait
	if e.web.opts.NoQueue != nil {
		wait = e.patience
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case x := <-refused:
		return s, x, nil
	case <-t.C:
		if e.web.opts.NoQueue != nil {
			return nil, nil, errors.New("without a queue a request that finds no slot is not answered while the slots are held")
		}
		return s, nil, nil
	}
}

var errNobody = skip(fmt.Sprintf("nobody of %d was refused: they wait", overflow))

func checkRefusal(e *env) error {
	s, x, err := e.full()
	if err != nil {
		return err
	}
	if x == nil {
		return errNobody
	}
	for i := range overflow {
		if s.has(fmt.Sprintf("over%d", i)) {
			return errors.New("a request was run that found no slot")
		}
	}
	s.let()
	if x.err != nil {
		return fmt.Errorf("a request that finds no slot: %w", x.err)
	}
	if x.status != http.StatusServiceUnavailable && x.status != http.StatusTooManyRequests {
		return fmt.Errorf("a request that finds no slot is answered %d", x.status)
	}
	return nil
}

func checkRetryAfter(e *env) error {
	s, x, err := e.full()
	if err != nil {
		return err
	}
	if x == nil {
		return errNobody
	}
	s.let()
	if x.err != nil {
		return fmt.Errorf("a request that finds no slot: %w", x.err)
	}
	values := x.header.Values("Retry-After")
	if len(values) == 0 {
		return note("there is none")
	}
	wait, err := retryAfter(values[0])
	switch {
	case len(values) > 1:
		return fmt.Errorf("a refusal has %d headers Retry-After", len(values))
	case err != nil:
		return fmt.Errorf("a refusal has Retry-After: %q, which is neither seconds nor a date", values[0])
	case wait < time.Second || wait > time.Hour:
		return fmt.Errorf("a refusal has Retry-After: %q", values[0])
	}
	return nil
}

// retryAfter is RFC 9110, section 10.2.3. A date is cut to seconds on its way, so one more
// is granted.
func retryAfter(v string) (time.Duration, error) {
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	at, err := http.ParseTime(v)
	return time.Until(at) + time.Second, err
}

// hostile are headers that say a deadline, a priority, a time or an attempt somewhere.
var hostile = []string{
	"Grpc-Timeout", "Connect-Timeout-Ms", "X-Envoy-Expected-Rq-Timeout-Ms", "Expect-Within", "X-Request-Timeout",
	"Request-Timeout", "X-Deadline", "X-Request-Start", "X-Queue-Start", "Priority", "X-Priority", "X-Request-Priority",
	"Goodput-Attempt", "Grpc-Previous-Rpc-Attempts", "Retry-After", "X-Forwarded-For",
}

var nonsense = []string{
	"-1", "-9223372036854775808", "99999999999999999999999999", "1e308", "-1e308", "NaN", "Inf", "-Inf", "0", "0x10", "",
	"1h1h", "99999999H", "-5m", "+5", "u=99, i=?7", "\t", "%00", "5; 6", "t=-1", "t=99999999999999999999",
}

// checkHostileHeaders sends them to an idle handler, where everybody is to be answered, and
// to one whose slots are held, where nobody may be run.
func checkHostileHeaders(e *env) error {
	const limit = 2
	s := e.site(limit)
	rng := e.rng(0)
	for i := range e.rounds(len(hostile), "headers") {
		name := hostile[i]
		values := append([]string(nil), nonsense...)
		rng.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		values = values[:e.times(len(values))]
		if name == hostile[rng.IntN(len(hostile))] || name == "Grpc-Timeout" {
			values = append(values, strings.Repeat("9", 1<<20-512)) // what is longer HTTP/2 may refuse itself
		}
		for _, v := range values {
			x := s.send("/quick?idle", func(r *http.Request) { r.Header.Set(name, v) })
			if err := s.sanely(x, "an idle handler and %s: %.40q", name, v); err != nil {
				return err
			}
		}
		twice := s.send("/quick?twice", func(r *http.Request) { r.Header[name] = []string{"1", "NaN", "-1", "1h"} })
		if err := s.sanely(twice, "an idle handler and %s four times", name); err != nil {
			return err
		}
	}
	if _, err := s.fill(limit, "after hostile headers"); err != nil {
		return err
	}
	var waiting []*exchange
	for _, v := range nonsense {
		waiting = append(waiting, s.send("/quick?full", func(r *http.Request) {
			for _, name := range hostile {
				r.Header.Set(name, v)
			}
		}))
	}
	time.Sleep(2 * e.grace)
	if s.has("full") || s.most.Load() > limit {
		return errors.New("with all slots held a request with hostile headers was run")
	}
	s.let()
	for i, x := range waiting {
		if err := s.sanely(x, "a request with %q in all headers, after the slots came free", nonsense[i]); err != nil {
			return err
		}
	}
	return nil
}

// sanely waits for an answer or a refusal of any kind, and takes no broken connection or server.
func (s *site) sanely(x *exchange, what string, args ...any) error {
	if err := s.answered(x, what, args...); err != nil {
		return err
	}
	if x.status == http.StatusInternalServerError || x.status == http.StatusBadGateway {
		return fmt.Errorf("%s: answered %d", fmt.Sprintf(what, args...), x.status)
	}
	return nil
}

// methods are those of which each is work. OPTIONS is not one: some answer it in front.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "QUERY",
}

// by makes a request one of another method, those that have a body with one.
func by(method string) func(*http.Request) {
	return func(r *http.Request) {
		r.Method = method
		if method[0] == 'P' {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body!")), 5
		}
	}
}

// old is the query of a request of HTTP/1.0.
const old = "over-HTTP/1.0"

// checkMethods holds both slots by two methods that change something, and asks by all. At the
// end each is served at an idle handler, so that no method keeps its slot.
func checkMethods(e *env) error {
	s := e.site(2)
	var held, more []*exchange
	for _, m := range []string{http.MethodPost, http.MethodPut} {
		x := s.send("/hold", by(m))
		held = append(held, x)
		if err := s.into(x, "a %s does not get into an idle handler", m); err != nil {
			return err
		}
	}
	for _, m := range methods {
		more = append(more, s.send("/quick?over-"+m, by(m)))
	}
	if e.web.protocol == http1 {
		conn, err := net.DialTimeout("tcp", s.addr, e.patience)
		if err != nil {
			return fmt.Errorf("dialling the server: %w", err)
		}
		defer conn.Close() //nolint:errcheck // nothing is expected of it
		_, _ = fmt.Fprintf(conn, "GET /quick?%s HTTP/1.0\r\n\r\n", old)
	}
	time.Sleep(2 * e.grace)
	for _, m := range methods {
		if s.has("over-" + m) {
			return fmt.Errorf("a %s was run while a POST and a PUT held both slots", m)
		}
	}
	if s.has(old) {
		return errors.New("a request of HTTP/1.0 was run while both slots were held")
	}
	s.let()
	for _, x := range held {
		if err := s.ok(x, "a %s that held a slot, let go", x.req.Method); err != nil {
			return err
		}
	}
	for _, x := range more {
		if err := s.sanely(x, "a %s that found no slot", x.req.Method); err != nil {
			return err
		}
	}
	for _, m := range methods {
		if err := s.eventually("/quick", by(m), "a "+m+" after all others have ended"); err != nil {
			return err
		}
	}
	return nil
}
