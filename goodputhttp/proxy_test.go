package goodputhttp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// proxied serves a reverse proxy behind lim, in front of backend.
func proxied(t *testing.T, lim *goodput.Limiter, backend string) *httptest.Server {
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{ExpectContinueTimeout: patience} // waits for the backend before it reads the body
	t.Cleanup(tr.CloseIdleConnections)
	return start(t, Handler(lim, &httputil.ReverseProxy{
		Transport: tr, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		Rewrite:      func(pr *httputil.ProxyRequest) { pr.SetURL(target) },
	}))
}

// C082 (golang/go#27816): events arrive one by one, not in lumps and not at the
// end. The backend sends the next only after the client has seen the last. The
// second content type is unknown, and chunked.
func TestC082EventsArriveOneByOne(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/x-unknown"} {
		for proto, client := range clients(t) {
			t.Run(kind+" "+proto, func(t *testing.T) {
				seen := make(chan struct{})
				backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", kind)
					for i := range 10 {
						fmt.Fprintf(w, "data: event %d %s\n\n", i, strings.Repeat("x", 20))
						w.(http.Flusher).Flush()
						select {
						case <-seen:
						case <-r.Context().Done():
							return
						}
					}
				}))
				defer backend.Close()
				lim := limiter(1, goodput.Config{})
				res, err := client.Get(proxied(t, lim, backend.URL).URL)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				lines := bufio.NewReader(res.Body)
				for i := range 10 {
					line, err := lines.ReadString('\n')
					if err != nil || !strings.HasPrefix(line, fmt.Sprintf("data: event %d ", i)) {
						t.Fatalf("event %d: %q %v", i, line, err)
					}
					_, _ = lines.ReadString('\n')
					seen <- struct{}{}
				}
				text(t, res)
				outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1})
			})
		}
	}
}

// C083 (stacklok/toolhive#2404): an event of 80 KB in odd writes with flushes in
// between has the same bytes at the other end.
func TestC083BytesAreTheSame(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	want := make([]byte, 80_000)
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	for proto, client := range clients(t) {
		srv := start(t, Handler(limiter(1, goodput.Config{}), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for rest := want; len(rest) > 0; {
				n := min(1+rng.IntN(7001), len(rest))
				switch rng.IntN(4) {
				case 0:
					_, _ = w.(io.StringWriter).WriteString(string(rest[:n]))
				case 1:
					_, _ = io.Copy(w, bytes.NewReader(rest[:n]))
				case 2:
					_, _ = w.Write(rest[:n])
				case 3:
					_, _ = w.Write(rest[:n])
					w.(http.Flusher).Flush()
				}
				rest = rest[n:]
			}
		})))
		res, err := client.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, res); got != string(want) {
			t.Errorf("%s: %d bytes differ from %d (seed %d)", proto, len(got), len(want), seed)
		}
	}
}

// C084 (stacklok/toolhive#4065): the backend dies after half a response. The
// client gets no extra byte and can tell that it is incomplete. That is a
// failure, since the client is still there.
func TestC084HalfAResponse(t *testing.T) {
	for _, head := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
		for proto, client := range clients(t) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				_, _ = http.ReadRequest(bufio.NewReader(c))
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%s\r\n\r\n5\r\nhalf.", head)
			}()
			lim := limiter(1, goodput.Config{})
			res, err := client.Get(proxied(t, lim, "http://"+ln.Addr().String()).URL)
			if err == nil {
				got, bodyErr := io.ReadAll(res.Body)
				res.Body.Close()
				if bodyErr == nil || len(got) > len("5\r\nhalf.") || !strings.HasSuffix("5\r\nhalf.", string(got)) {
					t.Errorf("%s %s: %q %v", proto, head, got, bodyErr)
				}
			}
			ln.Close()
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Failed: 1})
		}
	}
}

// C075 (golang/go#34902): the backend answers 401 without reading, the client
// sends Expect: 100-continue and 5 MB. The client gets its 401.
func TestC075ExpectAndEarlyAnswer(t *testing.T) {
	const rounds = 100 // 1000 in the case; two cores
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer backend.Close()
	lim := limiter(4, goodput.Config{Depth: 100})
	srv := proxied(t, lim, backend.URL)
	payload := make([]byte, 5_000_000)
	tr := &http.Transport{ExpectContinueTimeout: patience}
	defer tr.CloseIdleConnections()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range rounds / 4 {
				r, _ := http.NewRequest(http.MethodPut, srv.URL, bytes.NewReader(payload))
				r.Header.Set("Expect", "100-continue")
				res, err := tr.RoundTrip(r)
				if err != nil {
					t.Error(err)
					continue
				}
				text(t, res)
				if res.StatusCode != http.StatusUnauthorized {
					t.Error(res.StatusCode)
				}
			}
		})
	}
	wg.Wait()
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: rounds})
}

// C098 (envoyproxy/envoy#38697): the service answers 413 during an upload of
// 5 MB and reads no more. It is relayed and is no overload.
func TestC098EarlyAnswerIsRelayed(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	s := &Server{Limiter: one(lim), Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 10_000))
		http.Error(w, "too large for me", http.StatusRequestEntityTooLarge)
	})}
	srv := start(t, s)
	for proto, client := range clients(t) {
		res, err := client.Post(srv.URL, "", bytes.NewReader(make([]byte, 5_000_000)))
		if err != nil {
			t.Fatal(proto, err)
		}
		if got := text(t, res); res.StatusCode != 413 || got != "too large for me\n" || res.Header.Get("Goodput-Rejected") != "" {
			t.Errorf("%s: %d %q %v", proto, res.StatusCode, got, res.Header)
		}
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 2})
	if n := s.Stats().UpstreamShed; n != 0 {
		t.Errorf("%d taken for sheds", n)
	}
}

// A refusal from further down is passed on as it is, and is no service time.
func TestUpstreamShedPassesThrough(t *testing.T) {
	inner := limiter(1, goodput.Config{Depth: goodput.NoQueue})
	hold(t, inner, 1)
	backend := start(t, Handler(inner, http.NotFoundHandler()))
	lim := limiter(1, goodput.Config{})
	target, _ := url.Parse(backend.URL)
	s := &Server{Limiter: one(lim), Next: httputil.NewSingleHostReverseProxy(target)}
	res, err := http.Get(start(t, s).URL)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, res); res.StatusCode != 503 || res.Header.Get("Goodput-Rejected") != "queue_full" ||
		res.Header.Get("Retry-After") == "" || got != busy+"\n" {
		t.Errorf("%d %v %q", res.StatusCode, res.Header, got)
	}
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Failed: 1})
	if n := s.Stats().UpstreamShed; n != 1 {
		t.Errorf("%d sheds", n)
	}
	unsampled(t, lim)
}

// C097 (tinyproxy/tinyproxy#609): requests whose end is ambiguous. net/http
// answers 400 and closes, or takes exactly one request; the slots are right.
func TestC097AmbiguousLengths(t *testing.T) {
	const hello = "5\r\nhello\r\n0\r\n\r\n"
	for name, c := range map[string]struct {
		raw   string
		seen  int64 // requests that may reach the handler, at most
		close bool
	}{
		"CL and TE":          {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + hello, 1, true},
		"TE and CL":          {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + hello, 1, true},
		"two lengths":        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 0, true},
		"TE with a tab":      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\t\r\n\r\n" + hello, 1, true},
		"TE: identity":       {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n" + hello, 0, true},
		"two TE":             {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + hello, 0, true},
		"space before colon": {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello", 0, true},
		"negative length":    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\nhello", 0, true},
		"signed length":      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello", 0, true},
		"DELETE, chunked":    {"DELETE / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + hello, 1, true},
		"bare LF":            {"POST / HTTP/1.1\nHost: x\nContent-Length: 5\n\nhello", 1, true},
		"no host":            {"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			var mu sync.Mutex
			var bodies []string
			srv := start(t, Handler(lim, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				mu.Lock()
				bodies = append(bodies, string(b))
				mu.Unlock()
			})))
			conn := dial(t, srv, c.raw)
			_ = conn.CloseWrite()
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			got, err := io.ReadAll(conn)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			n := strings.Count(string(got), "HTTP/1.1 ")
			if err != nil || n > 1 || (n == 1 && c.seen == 0 && !strings.HasPrefix(string(got), "HTTP/1.1 400 ") && !strings.HasPrefix(string(got), "HTTP/1.1 501 ")) {
				t.Errorf("%q %v", got, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if int64(len(bodies)) > c.seen || (len(bodies) == 1 && bodies[0] != "hello") {
				t.Errorf("the handler saw %q", bodies)
			}
			st := settled(t, lim)
			if st.Arrivals > uint64(c.seen) {
				t.Errorf("%d offered", st.Arrivals)
			}
		})
	}
}
