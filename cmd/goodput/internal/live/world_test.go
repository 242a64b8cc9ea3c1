package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// pipes is a listener whose connections are pipes: without a buffer, so that who reads nothing
// makes a write wait at once, and on the clock of the bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// A world is a hub behind a server with the deadlines of the admin listener.
type world struct {
	hub    *Hub
	server *http.Server
	client *http.Client
	states atomic.Int64 // how often the state was asked for
	stop   context.CancelFunc
	ended  chan struct{} // the hub runs no more
}

// limiters are those of a hub, which a test may exchange between ticks.
type limiters struct {
	atomic.Pointer[[]*goodput.Limiter]
}

func those(lims ...*goodput.Limiter) *limiters {
	l := &limiters{}
	l.Store(&lims)
	return l
}

// start runs a hub.
func start(t *testing.T, lims *limiters, scene func() any) *world {
	t.Helper()
	w := &world{ended: make(chan struct{})}
	w.hub = New(Config{
		Limiters: func() []*goodput.Limiter { return *lims.Load() },
		State: func(snaps []Snapshot) any {
			w.states.Add(1)
			names := []string{}
			arrivals := []uint64{}
			for _, s := range snaps {
				names, arrivals = append(names, s.Stats.Name), append(arrivals, s.Stats.Arrivals)
			}
			return map[string]any{"names": names, "arrivals": arrivals}
		},
		Scene: scene,
	})
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	go func() {
		defer close(w.ended)
		w.hub.Run(ctx)
	}()
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	w.server = &http.Server{Handler: w.hub, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	w.server.RegisterOnShutdown(w.hub.End)
	go w.server.Serve(l)
	w.client = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		l.conns <- theirs
		return ours, nil
	}}}
	t.Cleanup(func() {
		w.stop()
		<-w.ended
		w.client.CloseIdleConnections()
		w.server.Close()
	})
	synctest.Wait()
	return w
}

// viewers returns how many there are when nothing moves.
func (w *world) viewers() int {
	synctest.Wait()
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return len(w.hub.viewers)
}

// A watcher reads a stream.
type watcher struct {
	t      *testing.T
	cancel context.CancelFunc
	resp   *http.Response
	lines  *bufio.Reader
}

// watch opens a stream and does not read from it yet.
func (w *world) watch(t *testing.T, query string, header ...string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "GET", "http://admin/api/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return &watcher{t, cancel, resp, bufio.NewReader(resp.Body)}
}

func (v *watcher) leave() {
	v.cancel()
	v.resp.Body.Close()
}

// An sse is one event as it was sent.
type sse struct{ name, id, retry, data string }

// next reads an event; an error is the end of the stream.
func (v *watcher) next() (e sse, err error) {
	for {
		line, err := v.lines.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return e, nil
		}
		field, value, _ := strings.Cut(line, ": ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "retry":
			e.retry = value
		case "data":
			e.data = value
		default:
			v.t.Errorf("a line of its own: %q", line)
		}
	}
}

// A told is what a test reads of a tick.
type told struct {
	Tick
	State struct {
		Names    []string
		Arrivals []uint64
	} `json:"state"`
}

func (v *watcher) tick() told {
	v.t.Helper()
	e, err := v.next()
	if err != nil {
		v.t.Fatal(err)
	}
	var is told
	if err := json.Unmarshal([]byte(e.data), &is); err != nil || e.name != "tick" {
		v.t.Fatalf("%v in event %q: %.300s", err, e.name, e.data)
	}
	if e.id != fmt.Sprint(is.Number) {
		v.t.Errorf("id %q of tick %d", e.id, is.Number)
	}
	return is
}

// A past is a history as a viewer reads it.
type past struct {
	Times    []float64
	Limiters map[string]map[string][]*float64
	Demo     map[string][]*float64
}

func (v *watcher) history() past {
	v.t.Helper()
	e, err := v.next()
	if err != nil {
		v.t.Fatal(err)
	}
	var is past
	if err := json.Unmarshal([]byte(e.data), &is); err != nil || e.name != "history" {
		v.t.Fatalf("%v in event %q: %.300s", err, e.name, e.data)
	}
	if e.retry != "1000" {
		v.t.Errorf("retry %q", e.retry)
	}
	return is
}

func named(name string) *goodput.Limiter {
	return goodput.New(goodput.Config{Name: name, Limit: limit.Fixed(4), Objective: time.Second})
}

// serve has one request hold a slot for d.
func serve(t *testing.T, l *goodput.Limiter, d time.Duration) {
	t.Helper()
	slot, err := l.Acquire(context.Background())
	if err != nil {
		t.Error(err)
		return
	}
	time.Sleep(d)
	slot.Release()
}
