package goodputhttp

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A protocol is a way to reach a handler: one server with one kind of client.
type protocol struct {
	name   string
	url    string
	client *http.Client
}

// overAll serves h over HTTP/1.1, h2c and h2 over TLS, and returns the three ways to it.
func overAll(t testing.TB, h http.Handler) []protocol {
	t.Helper()
	plain := start(t, h)
	var all []protocol
	for _, name := range []string{"HTTP/1.1", "h2c"} {
		all = append(all, protocol{name, plain.URL, clients(t)[name]})
	}
	secure := httptest.NewUnstartedServer(h)
	secure.EnableHTTP2 = true
	secure.Config.ConnContext = ConnContext
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	client := secure.Client()
	client.Timeout = patience
	return append(all, protocol{"h2", secure.URL, client})
}

// isTheirs checks that an answer came over the protocol that the row is about.
func (p *protocol) isTheirs(t testing.TB, res *http.Response) {
	t.Helper()
	major, secure := 2, p.name == "h2"
	if p.name == "HTTP/1.1" {
		major = 1
	}
	if res.ProtoMajor != major || (res.TLS != nil) != secure {
		t.Fatalf("%s: came over %s, TLS %v", p.name, res.Proto, res.TLS != nil)
	}
}
