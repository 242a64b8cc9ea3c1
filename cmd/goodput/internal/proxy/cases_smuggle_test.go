package proxy

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/goodput/goodput"
)

// A wiretap is a service that remembers what it was sent, as bytes and as requests.
type wiretap struct {
	net.Listener
	mu       sync.Mutex
	wires    []*strings.Builder // of each connection
	requests []string
}

func newWiretap(t *testing.T) *wiretap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tap := &wiretap{Listener: l}
	srv := &http.Server{
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			tap.mu.Lock()
			defer tap.mu.Unlock()
			tap.requests = append(tap.requests, fmt.Sprintf("%s %s of %s, %q %v", r.Method, r.RequestURI, r.Host, body, err))
		}),
	}
	go srv.Serve(tap) // ends with Close
	t.Cleanup(func() { srv.Close() })
	return tap
}

func (w *wiretap) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wires = append(w.wires, new(strings.Builder))
	return &tapped{c, w, w.wires[len(w.wires)-1]}, nil
}

type tapped struct {
	net.Conn
	tap  *wiretap
	wire *strings.Builder
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.wire.Write(b[:n])
	return n, err
}

// forget begins anew.
func (w *wiretap) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wire := range w.wires { // those that are kept go on
		wire.Reset()
	}
	w.requests = nil
}

// heard returns the requests, without the one that ends each test, and the bytes.
func (w *wiretap) heard() (requests []string, wire string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if !strings.HasPrefix(r, "GET /end ") {
			requests = append(requests, r)
		}
	}
	for _, one := range w.wires {
		wire += one.String()
	}
	return requests, wire
}

// connections returns what came over each.
func (w *wiretap) connections() (wires []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.wires {
		wires = append(wires, one.String())
	}
	return wires
}

// answers reads the statuses of a connection to its end.
func answers(c net.Conn) (statuses []int) {
	in := bufio.NewReader(c)
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		io.Copy(io.Discard, res.Body) // only the status counts
		statuses = append(statuses, res.StatusCode)
	}
}

// hidden is what somebody would like to get past us, and end is what an honest client sends
// next over the same connection.
const (
	hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"
	theEnd = "GET /end HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
)

// C097, what else there is of it: whatever a request looks like, the service gets it once and
// as we have understood it, or the client gets a 4xx or 501 and a closed connection. want is
// all that the service may hear, "" for nothing.
func TestNobodyIsSmuggledInAnyForm_C097(t *testing.T) {
	post := func(headers, body string) string {
		return "POST /p HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n\r\n" + body
	}
	get := func(headers string) string { return "GET /p HTTP/1.1\r\n" + headers + "\r\n\r\n" }
	const five, none = `POST /p of h, "hello" <nil>`, `POST /p of h, "" <nil>`
	const plain = `GET /p of h, "" <nil>`
	tap := newWiretap(t)
	w := start(t, tap.Addr().String(), nil)
	for name, c := range map[string]struct{ sent, want string }{
		"folded value":               {get("Host: h\r\nX: a\r\n b"), plain},
		"folded TE":                  {post("Transfer-Encoding:\r\n chunked", "5\r\nhello\r\n0\r\n\r\n"), five},
		"folded TE and a CL":         {post("Content-Length: 39\r\nTransfer-Encoding:\r\n chunked", "0\r\n\r\n"+hidden), none},
		"first header folded":        {"GET /p HTTP/1.1\r\n Host: h\r\nHost: h\r\n\r\n", ""},
		"TE xchunked":                {post("Transfer-Encoding: xchunked", hidden), ""},
		"TE chunked, identity":       {post("Transfer-Encoding: chunked, identity", "0\r\n\r\n"+hidden), ""},
		"TE identity, chunked":       {post("Transfer-Encoding: identity, chunked", "0\r\n\r\n"+hidden), ""},
		"TE gzip, chunked":           {post("Transfer-Encoding: gzip, chunked", "0\r\n\r\n"+hidden), ""},
		"TE with a vertical tab":     {post("Transfer-Encoding: \x0bchunked", "0\r\n\r\n"+hidden), ""},
		"TE with a parameter":        {post("Transfer-Encoding: chunked;q=1", "0\r\n\r\n"+hidden), ""},
		"TE in capitals and a CL":    {post("Content-Length: 39\r\nTRANSFER-ENCODING: CHUNKED", "0\r\n\r\n"+hidden), none},
		"space before the colon":     {post("Content-Length: 5\r\nTransfer-Encoding : chunked", "hello"), ""},
		"tab before the colon":       {post("Content-Length\t: 34", hidden), ""},
		"CL 0x5":                     {post("Content-Length: 0x5", "hello"), ""},
		"CL 5, 5":                    {post("Content-Length: 5, 5", "hello"), ""},
		"CL 005":                     {post("Content-Length: 005", "hello"), five},
		"CL empty":                   {post("Content-Length:", hidden), ""},
		"CL with a space in it":      {post("Content-Length: 3 4", hidden), ""},
		"CL -0":                      {post("Content-Length: -0", hidden), ""},
		"CL with a dot":              {post("Content-Length: 5.0", "hello"), ""},
		"CL in other digits":         {post("Content-Length: \xd9\xa5", "hello"), ""},
		"chunk of size 0x5":          {post("Transfer-Encoding: chunked", "0x5\r\nhello\r\n0\r\n\r\n"+hidden), ""},
		"chunk of size +5":           {post("Transfer-Encoding: chunked", "+5\r\nhello\r\n0\r\n\r\n"+hidden), ""},
		"chunk of size -1":           {post("Transfer-Encoding: chunked", "-1\r\nhello\r\n0\r\n\r\n"+hidden), ""},
		"chunk without a size":       {post("Transfer-Encoding: chunked", "\r\nhello\r\n0\r\n\r\n"+hidden), ""},
		"chunk longer than its size": {post("Transfer-Encoding: chunked", "5\r\nhello!\r\n0\r\n\r\n"+hidden), ""},
		"LF in a chunk extension":    {post("Transfer-Encoding: chunked", "5;a\nb\r\nhello\r\n0\r\n\r\n"), ""},
		"extension as a request":     {post("Transfer-Encoding: chunked", "5;\r\nhello\r\n0;a=\"GET /hidden HTTP/1.1\"\r\n\r\n"), five},
		"trailers that say a length": {post("Transfer-Encoding: chunked\r\nTrailer: Content-Length", "5\r\nhello\r\n0\r\nContent-Length: 99\r\nHost: evil\r\n\r\n"), ""},
		"a CR for a line end":        {"GET /p HTTP/1.1\rHost: h\r\r" + "\r\n\r\n", ""},
		"a CR in a value":            {get("Host: h\r\nX: a\rb"), ""},
		"no colon":                   {get("Host: h\r\nnonsense"), ""},
		"no name":                    {get("Host: h\r\n: x"), ""},
		"a space in a name":          {get("Host: h\r\nX Y: 1"), ""},
		"NUL in a name":              {get("Host: h\r\nX\x00Y: 1"), ""},
		"absolute form":              {"GET http://h/p HTTP/1.1\r\nHost: other\r\n\r\n", plain},
		"absolute form with a user":  {"GET http://evil@h/p HTTP/1.1\r\nHost: h\r\n\r\n", plain},
		"two hosts, one empty":       {get("Host:\r\nHost: h"), ""},
		"host with a path":           {get("Host: h/../evil"), ""},
		"host with a space":          {get("Host: h evil"), ""},
		"host with NUL":              {get("Host: h\x00"), ""},
		"host with an angle bracket": {get("Host: h<evil>"), ""},
		"HTTP/1.2":                   {"GET /p HTTP/1.2\r\nHost: h\r\n\r\n", plain},
		"HTTP/2.0":                   {"GET /p HTTP/2.0\r\nHost: h\r\n\r\n", ""},
		"HTTP/1.10":                  {"GET /p HTTP/1.10\r\nHost: h\r\n\r\n", ""},
		"HTTP/0.9":                   {"GET /p\r\n", ""},
		"http in small letters":      {"GET /p http/1.1\r\nHost: h\r\n\r\n", ""},
		"two spaces":                 {"GET  /p HTTP/1.1\r\nHost: h\r\n\r\n", ""},
		"a space in the path":        {"GET /p x HTTP/1.1\r\nHost: h\r\n\r\n", ""},
		"a control in the path":      {"GET /p\x01 HTTP/1.1\r\nHost: h\r\n\r\n", ""},
		"an escape that is none":     {"GET /p%zz HTTP/1.1\r\nHost: h\r\n\r\n", ""},
		"a method that is none":      {"GE(T /p HTTP/1.1\r\nHost: h\r\n\r\n", ""},
		"a newline in an escape":     {"GET /p%0d%0aHost:%20evil HTTP/1.1\r\nHost: h\r\n\r\n", `GET /p%0d%0aHost:%20evil of h, "" <nil>`},
	} {
		tap.forget()
		statuses := answers(w.raw(c.sent + theEnd))
		w.settle("idle", idle)
		requests, wire := tap.heard()
		got := strings.Join(requests, " + ")
		refused := len(statuses) > 0 && (statuses[len(statuses)-1] == 501 || statuses[len(statuses)-1]/100 == 4 || statuses[len(statuses)-1] == 505)
		switch {
		case got == "" && (refused || len(statuses) == 0): // strict is always right
			if c.want != "" {
				t.Errorf("%s: %v, but it is a request", name, statuses)
			}
		case got != c.want:
			t.Errorf("%s: %v, and the service heard %s", name, statuses, got)
		}
		for what, found := range map[string]bool{
			"hidden":       strings.Contains(got, "hidden") || strings.Contains(wire, "GET /hidden"),
			"another host": strings.Contains(wire, "\r\nHost: other") || strings.Contains(wire, "\r\nHost: evil"),
			"a bare LF":    strings.Contains(strings.ReplaceAll(wire, "\r\n", ""), "\n"),
			"a bare CR":    strings.Contains(strings.ReplaceAll(wire, "\r\n", ""), "\r"),
			"a fold":       strings.Contains(wire, "\r\n ") || strings.Contains(wire, "\r\n\t"),
		} {
			if found {
				t.Errorf("%s: the service was sent %s:\n%q", name, what, wire)
			}
		}
	}
	if s := w.settle("idle", idle); s.Outcomes[goodput.Failed] != 0 {
		t.Errorf("counted against the service: %v", s.Outcomes)
	}
}
