package proxy

import (
	"strings"
	"testing"
)

// C077 on the way back: what a service says about its connection to us, and what it names in
// Connection, is not for the client; the rest is, each value once. (Where it names close as
// well, the transport of net/http has taken all of Connection by then.)
func TestConnectionOfTheServiceStaysHere_C077(t *testing.T) {
	w := start(t, answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection:\r\nConnection: X-Inner, keep-alive\r\n"+
		"X-Inner: 1\r\nKeep-Alive: timeout=9\r\nProxy-Connection: close\r\nProxy-Authenticate: Basic\r\nTe: trailers\r\nUpgrade: h2c\r\n"+
		"X-Outer: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nok"), nil)
	answer := w.everything("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	for _, name := range []string{"X-Inner", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te:", "Upgrade", "timeout=9"} {
		if strings.Contains(answer, name) {
			t.Errorf("the client is told %s:\n%s", name, answer)
		}
	}
	for _, line := range []string{"\r\nX-Outer: 2\r\n", "\r\nSet-Cookie: a=1\r\n", "\r\nSet-Cookie: b=2\r\n", "\r\nConnection: close\r\n", "\r\n\r\nok"} {
		if strings.Count(answer, line) != 1 {
			t.Errorf("not once %q:\n%s", line, answer)
		}
	}
}
