package soak

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of requests to a server, and of its answers.
const (
	workHeader  = "Work-Us"      // how long it works
	sizeHeader  = "Answer-Bytes" // how long the answer is
	heldHeader  = "Held-Us"      // how long it held its slot: a sleep is never shorter than asked for
	echoed      = "echo"         // the protocol of upgraded connections
	longAnswer  = 4 << 20        // more than the buffers of a connection, so a slow reader is felt
	pathPlain   = "/plain"
	pathAuto    = "/auto"
	pathExtra   = "/plain/extra" // a class of its own in some of the policies
	pathLong    = "/lasting/long"
	pathLongToo = "/plain/long" // the same, in a class that queues
	pathEvents  = "/lasting/events"
	pathEcho    = "/lasting/echo"
	pathHealthy = "/healthz"
)

// Serve serves at addr, in HTTP/1.1, until the process is killed.
func Serve(addr string) error {
	server := &http.Server{Addr: addr, Handler: newServer()}
	return server.ListenAndServe()
}

// newServer is what stands behind the proxy: two kinds of work, each with slots of its own and
// a queue behind them that nobody sees, and what lasts. Who leaves is noticed.
func newServer() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(pathHealthy, func(http.ResponseWriter, *http.Request) {})
	for _, path := range []string{pathPlain, pathAuto} {
		s := slots{make(chan struct{}, slotsEach)}
		mux.Handle(path, s)
		mux.Handle(path+"/", s)
	}
	for _, path := range []string{pathLong, pathLongToo} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fill(w, longAnswer) })
	}
	mux.HandleFunc(pathEvents, events)
	mux.HandleFunc(pathEcho, echo)
	return mux
}

// slots are what runs at once.
type slots struct{ c chan struct{} }

func (s slots) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	work, err := number(r, workHeader)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	size, err := number(r, sizeHeader)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // who has left reads no answer
	}
	held, err := s.do(r.Context(), time.Duration(work)*time.Microsecond)
	if err != nil {
		return
	}
	w.Header().Set(heldHeader, strconv.FormatInt(held.Microseconds(), 10))
	fill(w, size)
}

// do waits for a slot and works in it.
func (s slots) do(ctx context.Context, work time.Duration) (held time.Duration, err error) {
	select {
	case s.c <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-s.c }()
	begin := time.Now()
	if !sleep(ctx, work) {
		return 0, ctx.Err()
	}
	return time.Since(begin), nil
}

// events sends one each 200 ms for as long as the request says.
func events(w http.ResponseWriter, r *http.Request) {
	work, err := number(r, workHeader)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for end := time.Now().Add(time.Duration(work) * time.Microsecond); time.Now().Before(end); {
		if _, err := io.WriteString(w, "data: "+strings.Repeat("e", 200)+"\n\n"); err != nil || out.Flush() != nil {
			return
		}
		if !sleep(r.Context(), 200*time.Millisecond) {
			return
		}
	}
}

// echo upgrades the connection and sends back what comes.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != echoed {
		http.Error(w, "upgrade to "+echoed, http.StatusUpgradeRequired)
		return
	}
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+echoed+"\r\n\r\n"); err != nil {
		return
	}
	_, _ = io.Copy(conn, both) // until one of the two has gone
}

// kilobyte is what answers are made of.
var kilobyte = []byte(strings.Repeat("x", 1<<10))

func fill(w http.ResponseWriter, size int) {
	w.Header().Set("Content-Length", strconv.Itoa(size))
	for ; size > 0; size -= len(kilobyte) {
		if _, err := w.Write(kilobyte[:min(size, len(kilobyte))]); err != nil {
			return // who has left reads no answer
		}
	}
}

// number reads a header that is a number; without it, 0.
func number(r *http.Request, header string) (int, error) {
	v := r.Header.Get(header)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("header %s is %q, not a whole number from 0 on", header, v)
	}
	return n, nil
}

// sleep returns false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
