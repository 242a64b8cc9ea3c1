package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawHTTP2 sends one stream of HTTP/2, whatever its header and body are, and returns how it
// was answered: a status, or what it was reset with, or that the connection went away.
func (w *world) rawHTTP2(fields []hpack.HeaderField, body string) string {
	w.Helper()
	c, err := net.DialTimeout("tcp", w.addr, patience)
	if err != nil {
		w.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience)) // TCP
	io.WriteString(c, http2.ClientPreface)  // the read fails then
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.WriteSettings()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, field := range fields {
		e.WriteField(field) // to memory
	}
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: body == ""})
	if body != "" {
		f.WriteData(1, true, []byte(body))
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			if errors.Is(err, io.EOF) || errors.As(err, new(*net.OpError)) {
				return "closed"
			}
			w.Fatal(err)
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return "reset"
		case *http2.GoAwayFrame:
			return "closed"
		}
	}
}

// lengthless are those whose length net/http takes for none: what comes for a body then resets
// the stream, and the request may have gone on without it by then.
var lengthless = map[string]bool{"content-length 0 and a body": true, "content-length +5": true}

// C097 over HTTP/2, in front of a service that speaks HTTP/1.1, where another length than ours
// or a line break in a value would become another request: the service hears what is wanted,
// or nothing, and the client is told so by a 400 or the end of its stream.
func TestNobodyIsSmuggledInOverHTTP2_C097(t *testing.T) {
	get := []string{":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/p"}
	post := []string{":method", "POST", ":scheme", "http", ":authority", "h", ":path", "/p"}
	with := func(base []string, more ...string) []string { return append(append([]string(nil), base...), more...) }
	const plain, five = `GET /p of h, "" <nil>`, `POST /p of h, "hello" <nil>`
	for name, c := range map[string]struct {
		fields     []string
		body, want string
	}{
		"nothing odd":                  {get, "", plain},
		"a body":                       {post, "hello", five},
		"connection":                   {with(get, "connection", "keep-alive"), "", ""},
		"connection that names a body": {with(post, "connection", "content-length", "content-length", "5"), "hello", ""},
		"keep-alive":                   {with(get, "keep-alive", "timeout=5"), "", ""},
		"proxy-connection":             {with(get, "proxy-connection", "close"), "", ""},
		"upgrade":                      {with(get, "upgrade", "websocket"), "", ""},
		"transfer-encoding":            {with(post, "transfer-encoding", "chunked"), "0\r\n\r\n" + hidden, ""},
		"te: gzip":                     {with(get, "te", "gzip"), "", ""},
		"te: trailers":                 {with(get, "te", "trailers"), "", plain},
		"content-length too small":     {with(post, "content-length", "3"), "hello", ""},
		"content-length too large":     {with(post, "content-length", "50"), "hello", ""},
		"content-length 0 and a body":  {with(post, "content-length", "0"), hidden, ""},
		"content-length twice":         {with(post, "content-length", "5", "content-length", "0"), "hello", five},
		"content-length +5":            {with(post, "content-length", "+5"), "hello", ""},
		"content-length without body":  {with(post, "content-length", "5"), "", `POST /p of h, "" <nil>`},
		"pseudo after regular":         {with([]string{":method", "GET", ":scheme", "http", ":authority", "h", "x", "y"}, ":path", "/p"), "", ""},
		"two paths":                    {with(get, ":path", "/q"), "", ""},
		"two methods":                  {with(get, ":method", "POST"), "", ""},
		"unknown pseudo":               {append([]string{":evil", "x"}, get...), "", ""},
		"a status":                     {append([]string{":status", "200"}, get...), "", ""},
		"no path":                      {get[:6], "", ""},
		"no method":                    {get[2:], "", ""},
		"no scheme":                    {[]string{":method", "GET", ":authority", "h", ":path", "/p"}, "", ""},
		"empty path":                   {with(get[:6], ":path", ""), "", ""},
		"path without a slash":         {with(get[:6], ":path", "p"), "", ""},
		"path as a URL":                {with(get[:6], ":path", "http://evil/p"), "", plain},
		"a request in the path":        {with(get[:6], ":path", "/p HTTP/1.1\r\nHost: evil\r\n\r\nGET /hidden"), "", ""},
		"a space in the path":          {with(get[:6], ":path", "/p x"), "", `GET /p%20x of h, "" <nil>`},
		"a request in the method":      {append([]string{":method", "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\nGET"}, get[2:]...), "", ""},
		"a request in the authority":   {[]string{":method", "GET", ":scheme", "http", ":authority", "h\r\n\r\n" + hidden, ":path", "/p"}, "", ""},
		"a path in the authority":      {[]string{":method", "GET", ":scheme", "http", ":authority", "h/evil", ":path", "/p"}, "", ""},
		"a user in the authority":      {[]string{":method", "GET", ":scheme", "http", ":authority", "evil@h", ":path", "/p"}, "", ""},
		"another host":                 {with(get, "host", "evil"), "", plain},
		"a host and no authority":      {[]string{":method", "GET", ":scheme", "http", ":path", "/p", "host", "h"}, "", plain},
		"capitals in a name":           {with(get, "X-Evil", "1"), "", ""},
		"a space in a name":            {with(get, "x evil", "1"), "", ""},
		"a colon in a name":            {with(get, "x:evil", "1"), "", ""},
		"a line break in a name":       {with(get, "x\r\nhost: evil", "1"), "", ""},
		"a line break in a value":      {with(get, "x", "a\r\nhost: evil"), "", ""},
		"a request in a value":         {with(get, "x", "a\r\n\r\n"+hidden), "", ""},
		"a LF in a value":              {with(get, "x", "a\nhost: evil"), "", ""},
		"NUL in a value":               {with(get, "x", "a\x00b"), "", ""},
		"an empty name":                {with(get, "", "x"), "", ""},
		"expect of something else":     {with(post, "expect", "other"), "hello", ""},
		"a trailer that says a length": {with(post, "trailer", "content-length"), "hello", five},
	} {
		// Each has a service of its own: what is reset may reach it after its case has ended.
		tap := newWiretap(t)
		w := start(t, tap.Addr().String(), nil)
		var fields []hpack.HeaderField
		for i := 0; i+1 < len(c.fields); i += 2 {
			fields = append(fields, hpack.HeaderField{Name: c.fields[i], Value: c.fields[i+1]})
		}
		answer := w.rawHTTP2(fields, c.body)
		w.settle("idle", idle)
		requests, wire := tap.heard()
		got := strings.Join(requests, " + ")
		if got != "" && got != c.want && !(lengthless[name] && got == `POST /p of h, "" <nil>`) || got == "" && (answer == "200" || c.want != "") {
			t.Errorf("%s: answered %s, and the service heard %q", name, answer, got)
		}
		for _, bad := range []string{"hidden", "evil\r\n", "\r\nHost: evil", "\r\nTransfer-Encoding: identity", "\r\nKeep-Alive", "\r\nConnection"} {
			if strings.Contains(wire, bad) && c.want == "" {
				t.Errorf("%s: answered %s, and the service was sent %q in\n%q", name, answer, bad, wire)
			}
		}
		if n := strings.Count(wire, "\r\nHost: "); n > 1 || strings.Contains(wire, "\r\nHost: evil") {
			t.Errorf("%s: %d hosts in\n%q", name, n, wire)
		}
	}
}
