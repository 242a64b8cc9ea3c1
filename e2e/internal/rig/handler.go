//go:build linux

package rig

import (
	"net"
	"net/http"
	"testing"
)

// Handle serves h in HTTP/1.1 and h2c for the length of a test and returns the address: a
// service in the test's own process, where it can be asked what it has seen.
func Handle(t testing.TB, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: h, Protocols: protocols}
	go srv.Serve(l)                   //nolint:errcheck // ends with Close
	t.Cleanup(func() { srv.Close() }) //nolint:errcheck // the test is over
	return l.Addr().String()
}
