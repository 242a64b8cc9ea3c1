package load

import (
	"io"
	"net"
	"net/url"
	"testing"

	"golang.org/x/net/http2"
)

// A server of HTTP/2 says its own settings first (RFC 9113, section 3.4). Anything else is not one,
// an acknowledgement of ours neither, and would be asked in vain.
func TestSpeaksHearsTheFirstFrame(t *testing.T) {
	for name, c := range map[string]struct {
		says func(*http2.Framer) error
		want bool
	}{
		"its settings":       {func(f *http2.Framer) error { return f.WriteSettings() }, true},
		"an acknowledgement": {(*http2.Framer).WriteSettingsAck, false},
		"a ping":             {func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) }, false},
		"good bye":           {func(f *http2.Framer) error { return f.WriteGoAway(0, http2.ErrCodeNo, nil) }, false},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if err := c.says(http2.NewFramer(conn, conn)); err != nil {
				t.Error(err)
			}
			io.Copy(io.Discard, conn) // until it has heard enough
		}()
		if got := Speaks(t.Context(), HTTP{URL: &url.URL{Scheme: "http", Host: l.Addr().String()}}); got != c.want {
			t.Errorf("%s: speaks HTTP/2 is %v", name, got)
		}
		l.Close()
	}
}
