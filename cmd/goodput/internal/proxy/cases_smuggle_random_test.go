package proxy

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Parts of requests that are wrong, odd or right, of which random ones are made.
var (
	oddLines = []string{
		"GET /p HTTP/1.1", "POST /p HTTP/1.1", "DELETE /p HTTP/1.1", "POST /p HTTP/1.0", "POST http://h/p HTTP/1.1", "GET  /p HTTP/1.1",
		"POST /p?a=%0d%0a HTTP/1.1", "POST /p\x00 HTTP/1.1", "OPTIONS /p HTTP/1.1", "HEAD /p HTTP/1.1", "POST /p HTTP/1.1 ",
	}
	oddHeaders = []string{
		"Host: h", "Host: h", "Host: h", "Host: evil", "Host:", "Host: h/x", "host:h",
		"Content-Length: 5", "Content-Length: 0", "Content-Length: +5", "Content-Length: 5, 5", "Content-Length: 005", "Content-Length : 5",
		"Content-Length: 500", "Content-Length: 0x5", "Content-Length: -1", "Content-Length: 34", "content-length:\t5\t",
		"Transfer-Encoding: chunked", "Transfer-Encoding: chunked ", "Transfer-Encoding:\x0bchunked", "Transfer-Encoding: identity", "Transfer-Encoding: chunked, chunked",
		"Transfer-Encoding: gzip", "transfer-encoding: CHUNKED", "Transfer_Encoding: chunked", "Transfer-Encoding: \"chunked\"", "X-Transfer-Encoding: chunked",
		"X: y", " folded", "\tfolded: chunked", "Connection: close", "Connection: Content-Length", "Connection: Transfer-Encoding", "Connection: keep-alive, X",
		"Expect: 100-continue", "Trailer: X", "TE: trailers", "Upgrade: h2c", "X: a\rb", "nonsense", ": x", "X Y: z", "Keep-Alive: 5", "Proxy-Connection: close",
	}
	oddBodies = []string{
		"", "", "hello", "5\r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n", "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n", "0\r\n\r\n" + hidden, hidden, "0x5\r\nhello\r\n0\r\n\r\n",
		"5\r\nhello!\r\n0\r\n\r\n", "fffffffffffffffff\r\n", "-1\r\n", "5\r\nhel", "00005\r\nhello\r\n0000\r\n\r\n", "5\r\nhello\r\n0\r\nContent-Length: 5\r\nHost: evil\r\n\r\n",
	}
)

func oddRequest(rng *rand.Rand) string {
	pick := func(of []string) string { return of[rng.IntN(len(of))] }
	end := func() string {
		if rng.IntN(20) == 0 {
			return "\n"
		}
		return "\r\n"
	}
	var b strings.Builder
	b.WriteString(pick(oddLines) + end() + "Host: h" + end())
	for range rng.IntN(3) {
		b.WriteString(pick(oddHeaders[3:]) + end())
	}
	b.WriteString(end() + pick(oddBodies))
	return b.String()
}

// field is a header line as the strictest of parsers takes it, and chunkSize a line before a
// part of a body.
var (
	field     = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\\x20-\\x7e]*$")
	chunkSize = regexp.MustCompile("^[0-9a-f]{1,8}$")
)

// strictly returns the paths of the requests that a service was sent over one connection, and
// the first thing of which another parser might think otherwise.
func strictly(wire string) (paths []string, err error) {
	for wire != "" {
		head, rest, ok := strings.Cut(wire, "\r\n\r\n")
		if !ok {
			return paths, errors.New("a header without an end")
		}
		lines := strings.Split(head, "\r\n")
		length, hosts, lengths := 0, 0, 0
		for _, l := range lines[1:] {
			if !field.MatchString(l) {
				return paths, fmt.Errorf("%q is no header line", l)
			}
			name, value, _ := strings.Cut(l, ": ")
			switch strings.ToLower(name) {
			case "host":
				hosts++
			case "content-length":
				lengths++
				if length, err = strconv.Atoi(value); err != nil || strconv.Itoa(length) != value {
					return paths, fmt.Errorf("%q is no length", value)
				}
			case "transfer-encoding":
				lengths++
				if length = -1; value != "chunked" {
					return paths, fmt.Errorf("it is %q", value)
				}
			}
		}
		parts := strings.Split(lines[0], " ")
		if len(parts) != 3 || parts[2] != "HTTP/1.1" || hosts != 1 || lengths > 1 {
			return paths, fmt.Errorf("%d hosts, %d lengths in %q", hosts, lengths, head)
		}
		paths = append(paths, parts[1])
		for length < 0 { // chunks
			size, more, ok := strings.Cut(rest, "\r\n")
			if !ok {
				return paths, errors.New("a body without an end")
			}
			bytes, err := strconv.ParseUint(size, 16, 32)
			if len(more) < int(bytes)+2 {
				return paths, errors.New("a body without an end")
			}
			if err != nil || !chunkSize.MatchString(size) || more[bytes:bytes+2] != "\r\n" {
				return paths, fmt.Errorf("%q for the size of a part", size)
			}
			if rest = more[bytes+2:]; bytes == 0 {
				length = 0
			}
		}
		if len(rest) < length {
			return paths, errors.New("a body without an end")
		}
		wire = rest[length:]
	}
	return paths, nil
}

// C097, the kind and not the inputs: of random requests, pipelined, the strictest parser that
// there could be at the service sees as many as were admitted, or the connection to it has
// ended in the middle of the last.
func TestNobodyIsSmuggledInAtRandom_C097(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	tap := newWiretap(t)
	w := start(t, tap.Addr().String(), nil)
	const rounds = 3000
	var sent [rounds]string
	var admitted [rounds]uint64 // requests, of each round
	for i := range rounds {
		before := w.lim.Stats()
		for range 1 + rng.IntN(3) {
			sent[i] += oddRequest(rng)
		}
		sent[i] = strings.ReplaceAll(sent[i]+theEnd, "GET /", "GET /p/") // also those that are hidden, and the end
		sent[i] = strings.ReplaceAll(strings.ReplaceAll(sent[i], "/p/p", "/p"), "/p", fmt.Sprintf("/p/%d", i))
		c := w.raw(sent[i])
		ends := time.AfterFunc(10*time.Millisecond, func() { c.(*net.TCPConn).CloseWrite() }) // what has no end by then has none
		io.Copy(io.Discard, c)                                                                // whatever is said of it
		ends.Stop()
		c.Close()
		after := w.settle("idle", idle)
		admitted[i] = after.Immediate + after.Dequeued - before.Immediate - before.Dequeued
	}
	passed := 0
	for _, wire := range tap.connections() {
		paths, err := strictly(wire)
		if err != nil && !strings.Contains(err.Error(), "without an end") {
			t.Errorf("the service was sent %v:\n%q", err, wire)
		}
		for _, path := range paths {
			var i int
			if n, _ := fmt.Sscanf(path, "/p/%d", &i); n != 1 {
				t.Errorf("the service was asked for %s", path)
				continue
			}
			passed++
			if admitted[i]--; int64(admitted[i]) < 0 {
				t.Errorf("more than were admitted of %q", sent[i])
			}
		}
	}
	t.Logf("%d requests have passed", passed)
	if passed == 0 {
		t.Error("nothing has passed: it was all nonsense")
	}
}

// The strictest parser is one.
func TestStrictly(t *testing.T) {
	head := "POST /p HTTP/1.1\r\nHost: h\r\n"
	for wire, want := range map[string]int{
		head + "\r\n" + head + "Content-Length: 5\r\n\r\nhello" + head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n": 3,
		head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                                                    -1,
		head + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello":                                                                 -1,
		head + "Content-Length: 05\r\n\r\nhello":                                                                                     -1,
		head + "Content-Length: 5\r\n\r\nhell":                                                                                       -1,
		head + "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n":                                                                         -1,
		head + "Transfer-Encoding: chunked\r\n\r\n5;a\r\nhello\r\n0\r\n\r\n":                                                         -1,
		head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n":                                                          -1,
		head + "Host: h\r\n\r\n": -1, head + "X:y\r\n\r\n": -1, head + "X: a\nY: b\r\n\r\n": -1, head + " X: y\r\n\r\n": -1, "POST /p HTTP/1.0\r\nHost: h\r\n\r\n": -1,
	} {
		if paths, err := strictly(wire); (err != nil) != (want < 0) || want > 0 && len(paths) != want {
			t.Errorf("%q: %v, %v", wire, paths, err)
		}
	}
}
