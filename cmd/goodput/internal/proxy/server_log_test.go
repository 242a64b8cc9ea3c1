package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// What clients do wrong is not in the log, once for each of them. What we do wrong is.
func TestClientsCannotFillTheLog(t *testing.T) {
	w := start(t, backend(t, echo), nil)
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	overTLS := config.DefaultListener()
	overTLS.TLS = &config.TLS{}
	srv := w.proxy.Server(overTLS)
	go srv.Serve(tls.NewListener(l, certified.TLS)) // ends with Close
	defer srv.Close()
	for _, addr := range []string{w.addr, l.Addr().String()} {
		for _, nonsense := range []string{
			"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "\x16\x03\x01\x00\x05hello", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense, nonsense, nonsense", "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
		} {
			for range 3 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				c.SetDeadline(time.Now().Add(patience)) // TCP
				io.WriteString(c, nonsense)             // it may be closed
				c.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, c) // until it is closed
				c.Close()
			}
		}
	}
	if log := w.log.String(); log != "" {
		t.Errorf("%d lines, such as\n%.300s", strings.Count(log, "\n"), log)
	}

	srv.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("ours") })
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n") // the read fails then
	io.Copy(io.Discard, c)                                 // until it is closed
	if log := w.log.String(); !strings.Contains(log, "panic serving") || !strings.Contains(log, "ours") {
		t.Errorf("a panic of ours is not in the log: %q", log)
	}
}
