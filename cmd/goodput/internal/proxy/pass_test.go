package proxy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/goodput/goodput"
)

// Both protocols on both sides. h2c:// is HTTP/2 to the service; http:// is
// HTTP/1.1, except for gRPC that came over HTTP/2.
func TestProtocolsOnBothSides(t *testing.T) {
	addr := backend(t, echo)
	for _, c := range []struct{ scheme, client, contentType, want string }{
		{"http", "h1", "text/plain", "HTTP/1.1"},
		{"http", "h2", "text/plain", "HTTP/1.1"},
		{"http", "h2", "application/grpc", "HTTP/2.0"},
		{"http", "h2", "application/grpc+proto", "HTTP/2.0"},
		{"http", "h2", "application/grpc-web", "HTTP/1.1"},
		{"http", "h1", "application/grpc", "HTTP/1.1"},
		{"h2c", "h1", "text/plain", "HTTP/2.0"},
		{"h2c", "h2", "text/plain", "HTTP/2.0"},
	} {
		w := start(t, c.scheme+"://"+addr, nil)
		client := w.h1
		if c.client == "h2" {
			client = w.h2
		}
		res, err := client.Post(w.url, c.contentType, strings.NewReader("x"))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if got := line(string(body), "Proto"); got != c.want || res.StatusCode != 200 {
			t.Errorf("%+v: %s, and the service saw %s", c, res.Status, got)
		}
	}
}

// What gRPC needs: trailers, a body that streams both ways at once, and a
// header before the first message.
func TestTrailersAndBothWaysAtOnce(t *testing.T) {
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		w.(http.Flusher).Flush()
		in := bufio.NewReader(r.Body)
		for {
			text, err := in.ReadString('\n')
			if err != nil {
				break
			}
			io.WriteString(w, "re: "+text)
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "fine")
	}))
	for _, scheme := range []string{"http", "h2c"} {
		w := start(t, scheme+"://"+addr, nil)
		r, send := io.Pipe()
		req, _ := http.NewRequest("POST", w.url+"/svc/Method", r)
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("TE", "trailers")
		res, err := w.h2.Do(req) // returns on the header: no message was sent yet
		if err != nil {
			t.Fatal(err)
		}
		got := bufio.NewReader(res.Body)
		for i := range 10 {
			fmt.Fprintf(send, "message %d\n", i)
			if text, err := got.ReadString('\n'); err != nil || text != fmt.Sprintf("re: message %d\n", i) {
				t.Fatalf("%q, %v", text, err)
			}
		}
		send.Close()
		if rest, err := io.ReadAll(got); err != nil || len(rest) > 0 {
			t.Fatalf("%q, %v", rest, err)
		}
		res.Body.Close()
		if res.Trailer.Get("Grpc-Status") != "0" || res.Trailer.Get("Grpc-Message") != "fine" {
			t.Errorf("trailers: %v", res.Trailer)
		}
		w.settle("idle", idle)
	}
}

// C082: each event is through before the next is sent: the service waits for
// the client to confirm it. Also with a content type that says nothing.
func TestEventsArriveOneByOne_C082(t *testing.T) {
	seen := make(chan struct{})
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		for i := range 10 {
			fmt.Fprintf(w, "data: %032d\n\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-seen:
			case <-r.Context().Done():
				return
			}
		}
	}))
	w := start(t, addr, nil)
	for _, client := range []*http.Client{w.h1, w.h2} {
		for _, typ := range []string{"text/event-stream", "text/event-stream;charset=utf-8", "application/x-unknown"} {
			res, err := client.Get(w.url + "/?type=" + typ)
			if err != nil {
				t.Fatal(err)
			}
			events := bufio.NewReader(res.Body)
			for i := range 10 {
				for _, want := range []string{fmt.Sprintf("data: %032d\n", i), "\n"} {
					if got, err := events.ReadString('\n'); got != want || err != nil {
						t.Fatalf("%s %s: %q, %v", res.Proto, typ, got, err)
					}
				}
				seen <- struct{}{}
			}
			res.Body.Close()
		}
	}
}

// C083: one 80 KB event, written in odd pieces, arrives byte by byte the same.
func TestLargeEventIsNotCorrupted_C083(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	event := make([]byte, 80_000)
	for i := range event {
		event[i] = byte('a' + rng.IntN(26))
	}
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		pieces := rand.New(rand.NewPCG(9, 10))
		for rest := event; len(rest) > 0; {
			n := min(1+pieces.IntN(7919), len(rest))
			w.Write(rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	}))
	w := start(t, addr, nil)
	for _, client := range []*http.Client{w.h1, w.h2} {
		if _, body := w.get(client, "/"); sha256.Sum256([]byte(body)) != sha256.Sum256(event) {
			t.Errorf("%d bytes arrived, and not those that were sent", len(body))
		}
	}
}

// shout is a service that upgrades and answers each line in capitals.
func shout(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			http.Error(w, "upgrade expected", http.StatusUpgradeRequired)
			return
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
		for {
			text, err := buf.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(conn, strings.ToUpper(text))
		}
	})
}

const upgradeRequest = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"

// A WebSocket leaves the limiter's slot when it is open, is counted as an
// upgraded connection, and carries bytes both ways, also before h2c://.
func TestUpgradePassesAndLeavesTheSlot(t *testing.T) {
	addr := backend(t, shout(t))
	for _, scheme := range []string{"http", "h2c"} {
		w := start(t, scheme+"://"+addr, nil)
		c := w.raw(upgradeRequest)
		in := bufio.NewReader(c)
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != 101 || res.Header.Get("Sec-WebSocket-Accept") != "x" {
			t.Fatalf("%v, %v", res, err)
		}
		for range 3 {
			io.WriteString(c, "hello\n")
			if text, err := in.ReadString('\n'); text != "HELLO\n" || err != nil {
				t.Fatalf("%q, %v", text, err)
			}
		}
		w.settle("the slot is back while the connection is open", idle)
		if open, upgraded := w.proxy.Open(), w.proxy.Door().Upgraded; open != 0 || upgraded != 1 {
			t.Errorf("%d open, %d upgraded; want 0 and 1", open, upgraded)
		}
		c.Close()
		w.settle("the closed connection is not counted", func(goodput.Stats) bool { return w.proxy.Door().Upgraded == 0 })
	}
}

func TestBodiesPassUnchanged(t *testing.T) {
	sum := func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		fmt.Fprintf(w, "%d %x %v %d", n, h.Sum(nil), err, r.ContentLength)
	}
	w := start(t, backend(t, http.HandlerFunc(sum)), nil)
	for _, size := range []int{0, 1, 100, 64 << 10, 1 << 20, 5 << 20} {
		data := bytes.Repeat([]byte("goodput!"), size/8+1)[:size]
		for _, client := range []*http.Client{w.h1, w.h2} {
			for _, declared := range []bool{true, false} {
				body, length := io.Reader(bytes.NewReader(data)), size
				if !declared && size > 0 {
					body, length = io.MultiReader(body), -1
				}
				res, err := client.Post(w.url, "application/octet-stream", body)
				if err != nil {
					t.Fatal(err)
				}
				got, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if want := fmt.Sprintf("%d %x <nil> %d", size, sha256.Sum256(data), length); string(got) != want {
					t.Errorf("%s, %d bytes, declared %v: %s", res.Proto, size, declared, got)
				}
			}
		}
	}
}
