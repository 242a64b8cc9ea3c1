package goodputhttp

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// Frames of HTTP/2, RFC 9113, 6.
const (
	frameData      = 0
	frameHeaders   = 1
	frameReset     = 3
	frameSettings  = 4
	flagEndStream  = 0x1
	flagEndHeaders = 0x4
)

// literal writes a header field as it is, without any table: RFC 7541, 6.2.2. Both parts
// are shorter than 127 bytes.
func literal(b []byte, name, value string) []byte {
	b = append(b, 0, byte(len(name)))
	b = append(b, name...)
	b = append(b, byte(len(value)))
	return append(b, value...)
}

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(b[5:], stream)
	return append(b, payload...)
}

// A call of gRPC that is refused is answered in one frame: trailers only, which is what its
// client takes the status and the pushback from. If it had more to send it is told to stop
// without an error: grpc/grpc doc/PROTOCOL-HTTP2.md, Early Server Closure.
func TestTrailersOnly(t *testing.T) {
	lim := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, lim, 1)
	srv := start(t, Handler(lim, nothing))
	for _, open := range []bool{false, true} {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		var fields []byte
		for _, f := range [][2]string{
			{":method", "POST"},
			{":scheme", "http"},
			{":path", "/a.B/C"},
			{":authority", "x"},
			{"content-type", "application/grpc"},
			{"te", "trailers"},
		} {
			fields = literal(fields, f[0], f[1])
		}
		flags := byte(flagEndHeaders)
		if !open {
			flags |= flagEndStream
		}
		out := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(frameSettings, 0, 0, nil)...)
		if _, err := c.Write(append(out, frame(frameHeaders, flags, 1, fields)...)); err != nil {
			t.Fatal(err)
		}
		ended, reset := false, false
		for !ended || open && !reset {
			var head [9]byte
			if _, err := io.ReadFull(c, head[:]); err != nil {
				t.Fatal(err)
			}
			payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
			if _, err := io.ReadFull(c, payload); err != nil {
				t.Fatal(err)
			}
			if binary.BigEndian.Uint32(head[5:]) != 1 {
				continue // of the connection
			}
			switch kind, flags := head[3], head[4]; {
			case kind == frameHeaders && !ended && flags&flagEndStream != 0 && flags&flagEndHeaders != 0:
				ended = true
			case kind == frameReset && ended:
				if code := binary.BigEndian.Uint32(payload); code != 0 {
					t.Errorf("reset with %d", code)
				}
				reset = true
			default:
				t.Fatalf("more to come %v: a frame of kind %d with flags %#x", open, kind, flags)
			}
		}
	}
}
