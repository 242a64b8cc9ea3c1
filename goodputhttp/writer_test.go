package goodputhttp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// What a handler may do with its writer is what it could do without us.
func TestWriterKeepsItsInterfaces(t *testing.T) {
	check := func(has int, w http.ResponseWriter) {
		t.Helper()
		got := (&response{ResponseWriter: w}).writer()
		if now := abilities(got); now != has {
			t.Errorf("%T: %03b, want %03b", w, now, has)
		}
		if http.NewResponseController(got) == nil || got.Header() == nil {
			t.Error("no header")
		}
	}
	type plain struct{ http.ResponseWriter }
	base := plain{httptest.NewRecorder()}
	var c everything
	for has := range 8 {
		var w http.ResponseWriter
		switch has {
		case 0:
			w = base
		case 1:
			w = struct {
				plain
				http.Flusher
			}{base, c}
		case 2:
			w = struct {
				plain
				http.Hijacker
			}{base, c}
		case 3:
			w = struct {
				plain
				http.Flusher
				http.Hijacker
			}{base, c, c}
		case 4:
			w = struct {
				plain
				io.ReaderFrom
			}{base, c}
		case 5:
			w = struct {
				plain
				http.Flusher
				io.ReaderFrom
			}{base, c, c}
		case 6:
			w = struct {
				plain
				http.Hijacker
				io.ReaderFrom
			}{base, c, c}
		case 7:
			w = struct {
				plain
				http.Flusher
				http.Hijacker
				io.ReaderFrom
			}{base, c, c, c}
		}
		check(has, w)
	}
}

type everything struct{}

func (everything) Flush()                                       {}
func (everything) ReadFrom(io.Reader) (int64, error)            { return 0, nil }
func (everything) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// Deadlines and full duplex are set through http.ResponseController.
func TestResponseController(t *testing.T) {
	srv := start(t, Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetWriteDeadline(time.Now().Add(patience)), c.EnableFullDuplex(), c.Flush()); err != nil {
			t.Error(err)
		}
	})))
	if res, err := http.Get(srv.URL); err != nil || res.StatusCode != 200 {
		t.Error(res, err)
	}
}

// io.Copy into the writer uses ReadFrom, and the bytes are all there.
func TestReadFrom(t *testing.T) {
	for _, size := range []int{0, 1, sniffed - 1, sniffed, sniffed + 1, 300_000} {
		want := bytes.Repeat([]byte("goodput."), size/8+1)[:size]
		lim := limiter(1, goodput.Config{})
		srv := start(t, Handler(lim, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n, err := w.(io.ReaderFrom).ReadFrom(bytes.NewReader(want)); n != int64(size) || err != nil {
				t.Error(n, err)
			}
		})))
		res, err := http.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, res); got != string(want) {
			t.Errorf("%d bytes, want %d", len(got), size)
		}
		outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1})
	}
}
