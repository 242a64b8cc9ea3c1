package proxy

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A flooder is a connection of HTTP/2 that does what no client does.
type flooder struct {
	net.Conn
	*http2.Framer
	header []byte
	next   uint32
	gone   chan struct{} // closed when the server has ended the connection

	refused, reset, answered atomic.Int64 // streams
}

func (w *world) flood() *flooder {
	w.Helper()
	c, err := net.DialTimeout("tcp", w.addr, patience)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience)) // TCP
	io.WriteString(c, http2.ClientPreface)  // the read fails then
	f := &flooder{Conn: c, Framer: http2.NewFramer(c, c), next: 1, gone: make(chan struct{})}
	f.WriteSettings()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, h := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/"}} {
		e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) // to memory
	}
	f.header = block.Bytes()
	go f.read()
	return f
}

func (f *flooder) read() {
	defer close(f.gone)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame:
			if f.reset.Add(1); frame.ErrCode == http2.ErrCodeRefusedStream || frame.ErrCode == http2.ErrCodeEnhanceYourCalm || frame.ErrCode == http2.ErrCodeProtocol {
				f.refused.Add(1)
			}
		case *http2.HeadersFrame:
			f.answered.Add(1)
		}
	}
}

// open begins a request and returns its stream.
func (f *flooder) open() (uint32, error) {
	id := f.next
	f.next += 2
	return id, f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.header, EndHeaders: true, EndStream: true})
}

// Streams that are reset as soon as they are open (CVE-2023-44487), before a service that does
// not notice when it is hung up on. With Finish a slot is given back when the request has
// ended there, so what runs at the service is within the limit. What is in memory has a bound,
// others are served, and in the end nothing is left.
func TestRapidResetIsBounded(t *testing.T) {
	const slots = 4
	var now, most atomic.Int64
	w := start(t, backend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n) // two at once may lose one of two numbers, and the next brings it
		}
		defer now.Add(-1)
		time.Sleep(2 * time.Millisecond)
	})), func(c *Config, lc *goodput.Config) {
		lc.Limit, lc.MaxItems, c.Finish = limit.Fixed(slots), 100, patience
	})
	before := runtime.NumGoroutine()
	goroutines := 0
	for range 3 {
		f := w.flood()
		for range 10_000 {
			id, err := f.open()
			if err == nil {
				err = f.WriteRSTStream(id, http2.ErrCodeCancel)
			}
			if err != nil {
				break // the server has had enough
			}
			if f.next%2000 == 1 {
				goroutines = max(goroutines, runtime.NumGoroutine())
			}
		}
		f.Close()
		<-f.gone
		if res, _ := w.get(w.h1, "/"); res.StatusCode != 200 && res.StatusCode != 503 {
			t.Errorf("somebody else: %s", res.Status)
		}
	}
	s := w.settle("idle", idle)
	t.Logf("%d arrived: %v; at most %d at once there, %d goroutines, %d before", s.Arrivals, s.Outcomes, most.Load(), goroutines, before)
	if most.Load() > slots {
		t.Errorf("%d were in flight, the limit is %d", most.Load(), slots)
	}
	// net/http runs as many handlers as streams may be open, of one connection, and each has a
	// few goroutines.
	if most := before + 4*w.server.HTTP2.MaxConcurrentStreams; goroutines > most {
		t.Errorf("%d goroutines, want %d at the most", goroutines, most)
	}
}

// Streams beyond those that a connection may have are refused one by one, before anything is
// done for them.
func TestStreamFloodIsRefused(t *testing.T) {
	const streams = 10
	addr, entered, release := held(t)
	cfg := lanes(t, addr, lane{"rest", limit.Fixed(100), 0, 10 * time.Second, "app", true})
	cfg.Listeners[0].MaxStreams = streams
	c := newCrowd(t, cfg)
	w := &world{T: t, addr: c.addr, lim: c.all()[0]}
	f := w.flood()
	for range 5 * streams {
		if _, err := f.open(); err != nil {
			t.Fatal(err)
		}
	}
	for range streams {
		<-entered
	}
	for end := time.Now().Add(patience); f.refused.Load() < 4*streams; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d streams were refused, %d reset", f.refused.Load(), f.reset.Load())
		}
	}
	if s := w.lim.Stats(); s.Arrivals != streams {
		t.Errorf("%d arrived", s.Arrivals)
	}
	close(release)
	w.settle("idle", idle)
}
