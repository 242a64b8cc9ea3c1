package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A framer is a client of HTTP/2 that writes what it likes.
type framer struct {
	*testing.T
	*http2.Framer
	conn net.Conn
	out  *bufio.Writer
	next uint32 // stream
	get  []byte // the header of a request
}

// frames connects to addr, and has the settings of the server behind it.
func (w *world) frames(addr string) (*framer, map[http2.SettingID]uint32) {
	w.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience)) // a TCP connection has deadlines
	f := &framer{T: w.T, conn: conn, out: bufio.NewWriter(conn), next: 1}
	f.Framer = http2.NewFramer(f.out, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, h := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/"}} {
		enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) // to memory
	}
	f.get = head.Bytes()
	f.out.WriteString(http2.ClientPreface)
	f.WriteSettings()
	f.out.Flush() // the read fails then
	first, err := f.ReadFrame()
	if err != nil {
		w.Fatal(err)
	}
	says := map[http2.SettingID]uint32{}
	first.(*http2.SettingsFrame).ForeachSetting(func(s http2.Setting) error {
		says[s.ID] = s.Val
		return nil
	})
	return f, says
}

// request begins a stream and returns its number.
func (f *framer) request() (uint32, error) {
	id := f.next
	f.next += 2
	return id, f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.get, EndStream: true, EndHeaders: true})
}

// read reads frames until one is it.
func (f *framer) read(what string, is func(http2.Frame) bool) {
	f.Helper()
	for {
		fr, err := f.ReadFrame()
		if err != nil {
			f.Fatalf("%s never came: %v", what, err)
		}
		if is(fr) {
			return
		}
	}
}

// flood writes with write until the server closes the connection, and returns how often.
func (f *framer) flood(most int, write func() error) int {
	f.Helper()
	for n := range most {
		if err := write(); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				f.Errorf("after %d: nobody closes", n)
			}
			return n
		}
	}
	f.Errorf("%d were taken", most)
	return most
}

// narrow connections keep little of what nobody reads.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// listening serves srv, with a handler of its own if there is one.
func (w *world) listening(srv *http.Server, handler http.Handler) string {
	w.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	if handler != nil {
		srv.Handler = handler
	}
	go srv.Serve(narrow{on}) // ends with Close
	w.Cleanup(func() { srv.Close() })
	return on.Addr().String()
}

func withStreams(n int) config.Listener {
	l := config.DefaultListener()
	l.MaxStreams = n
	return l
}

// A client is told how many streams it may have, and one more is refused as not executed.
func TestMaxStreams(t *testing.T) {
	up, entered, release := held(t)
	w := start(t, up, nil)
	f, says := w.frames(w.listening(w.proxy.Server(withStreams(3)), nil))
	if n := says[http2.SettingMaxConcurrentStreams]; n != 3 {
		t.Errorf("told %d", n)
	}
	for range 3 {
		f.request()
	}
	f.out.Flush()
	for range 3 {
		<-entered
	}
	more, _ := f.request() // who has not acknowledged the limit may exceed it
	f.out.Flush()
	f.read("the refusal of a fourth", func(fr http2.Frame) bool {
		rst, ok := fr.(*http2.RSTStreamFrame)
		return ok && rst.StreamID == more && rst.ErrCode == http2.ErrCodeRefusedStream
	})
	close(release)
	ended := 0
	f.read("the end of the three", func(fr http2.Frame) bool {
		if d, ok := fr.(*http2.DataFrame); ok && d.StreamEnded() {
			ended++
		}
		return ended == 3
	})
}

// Who resets streams whose handlers go on is disconnected: net/http begins MaxStreams of
// them, keeps four times as many that wait for a goroutine, and closes the connection then.
func TestFloodOfResetsIsCut(t *testing.T) {
	const maxStreams = 10
	w := start(t, backend(t, echo), nil)
	release := make(chan struct{})
	var began atomic.Int64
	f, _ := w.frames(w.listening(w.proxy.Server(withStreams(maxStreams)), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began.Add(1)
		<-release
	})))
	n := f.flood(1_000_000, func() error {
		id, err := f.request()
		if err != nil {
			return err
		}
		return f.WriteRSTStream(id, http2.ErrCodeCancel)
	})
	if began.Load() != maxStreams {
		t.Errorf("%d handlers run for %d streams", began.Load(), maxStreams)
	}
	close(release)
	t.Logf("closed while %d were written", n)
}

// A header without an end costs what MaxHeader says and then the connection (CVE-2023-45288),
// and no request comes of it.
func TestFloodOfContinuationsIsCut(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	f, _ := w.frames(w.addr)
	go io.Copy(io.Discard, f.conn)
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.get})
	var field bytes.Buffer
	hpack.NewEncoder(&field).WriteField(hpack.HeaderField{Name: "x", Value: string(make([]byte, 8<<10)), Sensitive: true})
	n := f.flood(100_000, func() error { return f.WriteContinuation(1, false, field.Bytes()) })
	if s := w.lim.Stats(); s.Arrivals != 0 {
		t.Errorf("%d requests arrived", s.Arrivals)
	}
	t.Logf("closed while %d frames of 8 KiB were written", n)
}

// Who asks and does not read the answers is disconnected, once 10,000 of them wait.
func TestFloodOfPingsIsCut(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	f, _ := w.frames(w.listening(w.proxy.Server(config.DefaultListener()), nil))
	n := f.flood(5_000_000, func() error { return f.WritePing(false, [8]byte{}) })
	t.Logf("closed while %d were written", n)
}

// SETTINGS are acknowledged together, so many of them cost nothing that grows, and the
// connection goes on.
func TestFloodOfSettingsCostsNothing(t *testing.T) {
	const n = 20_000
	w := start(t, backend(t, echo), nil)
	f, _ := w.frames(w.addr)
	for range n {
		if err := f.WriteSettings(); err != nil {
			t.Fatal(err)
		}
	}
	id, _ := f.request()
	f.out.Flush() // the read fails then
	f.read("the answer", func(fr http2.Frame) bool {
		d, ok := fr.(*http2.DataFrame)
		return ok && d.StreamID == id && d.StreamEnded()
	})
	w.settle("idle", idle)
}

// A connection that takes nothing is closed, so that what is written to it does not wait for
// ever: a stream can be reset, but that is a frame as well.
func TestStuckConnectionsEnd(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	if got := w.proxy.Server(config.DefaultListener()).HTTP2.WriteByteTimeout; got != stuckConn || got < config.DefaultHeaderTimeout {
		t.Errorf("%v", got)
	}
	srv := w.proxy.Server(config.DefaultListener())
	srv.HTTP2.WriteByteTimeout = 100 * time.Millisecond
	ended := make(chan struct{})
	f, _ := w.frames(w.listening(srv, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 32<<10); ; {
			if _, err := w.Write(block); err != nil {
				close(ended)
				return
			}
		}
	})))
	f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	f.WriteWindowUpdate(0, 1<<31-1-65535)
	f.request()
	f.out.Flush() // and nothing is read
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the handler still waits")
	}
}

// At a drain a newcomer on a connection of HTTP/2 is refused and hears GOAWAY, without an
// error, and the stream in flight ends as ever.
func TestDrainSendsGoAway(t *testing.T) {
	up, entered, release := held(t)
	w := start(t, up, nil)
	f, _ := w.frames(w.addr)
	first, _ := f.request()
	f.out.Flush()
	<-entered
	drained := make(chan error, 1)
	go func() { drained <- w.proxy.Drain(0, patience, w.server) }()
	w.settle("draining", func(s goodput.Stats) bool { return s.Draining })
	late, _ := f.request()
	f.out.Flush() // the read fails then
	status := map[uint32]string{}
	saw := func(what string, is func(http2.Frame) bool) {
		f.read(what, func(fr http2.Frame) bool {
			if h, ok := fr.(*http2.MetaHeadersFrame); ok {
				status[h.StreamID] = h.PseudoValue("status")
			}
			return is(fr)
		})
	}
	saw("GOAWAY", func(fr http2.Frame) bool {
		g, ok := fr.(*http2.GoAwayFrame)
		if ok && (g.ErrCode != http2.ErrCodeNo || g.LastStreamID < late) {
			t.Errorf("%v", g)
		}
		return ok
	})
	close(release)
	saw("the end of the first", func(fr http2.Frame) bool {
		d, ok := fr.(*http2.DataFrame)
		return ok && d.StreamID == first && d.StreamEnded()
	})
	if status[first] != "200" || status[late] != "503" {
		t.Errorf("%v", status)
	}
	if err := w.take("the end of the drain", drained); err != nil {
		t.Error(err)
	}
}
