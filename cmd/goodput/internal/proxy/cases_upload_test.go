package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// full is a world whose one slot is taken, so that everybody else is refused at once.
func full(t *testing.T) *world {
	addr, entered, release := held(t)
	t.Cleanup(func() { close(release) })
	w := start(t, addr, func(_ *Config, lc *goodput.Config) { lc.Limit, lc.Depth = limit.Fixed(1), goodput.NoQueue })
	w.ask(w.h1, "/")
	<-entered
	return w
}

// C071: 10 MB are refused at once, while they are on their way. A client reads the status and
// the hint: Go's over both protocols, and curl over HTTP/1.1 where there is one. (Over HTTP/2
// curl 7.88 loses an answer that is complete before its upload is, which RFC 9113, 8.1, lets
// a server send.)
func TestRefusedUploadIsTold_C071(t *testing.T) {
	const size, rounds = 10 << 20, 20
	w := full(t)
	body := make([]byte, size)
	for range rounds {
		for _, use := range []*http.Client{w.h1, w.h2} {
			res, err := use.Post(w.url, "", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || res.Header.Get("Goodput-Rejected") != "queue_full" {
				t.Fatalf("%s %s %v", res.Proto, res.Status, res.Header)
			}
		}
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("the rest needs curl")
	}
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	for range rounds {
		out, err := exec.Command(curl, "--silent", "--show-error", "--max-time", "20", "--http1.1", "--data-binary", "@"+file, "--header", "Expect:",
			"--output", os.DevNull, "--write-out", "%{http_code} %header{retry-after}", w.url).CombinedOutput()
		if code, hint, _ := strings.Cut(string(out), " "); err != nil || code != "503" || hint == "" {
			t.Fatalf("%v: %q", err, out)
		}
	}
}

// C080: whoever writes 2 MB before reading anything reads the whole refusal, all but 1 in
// 1000 at the most.
func TestRefusalIsReadAfterTheUpload_C080(t *testing.T) {
	const size, rounds = 2 << 20, 200
	w := full(t)
	var lost atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range rounds / 4 {
				c, err := net.DialTimeout("tcp", w.addr, patience)
				if err != nil {
					t.Error(err)
					return
				}
				c.SetDeadline(time.Now().Add(patience))                                                                                    // TCP
				io.WriteString(c, fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", size)+strings.Repeat("x", size)) // it may be reset
				answer, err := io.ReadAll(c)
				if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 503 ")) || !bytes.Contains(answer, []byte("\r\n\r\nOverloaded: ")) {
					lost.Add(1)
					t.Logf("%v %.100q", err, answer)
				}
				c.Close()
			}
		})
	}
	all.Wait()
	if n := lost.Load(); n > rounds/1000 {
		t.Errorf("%d of %d have lost it", n, rounds)
	}
}

// trickle sends a byte now and then until it is told to stop or cannot.
func trickle(c net.Conn, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
		}
	}
}

// C095: as many uploads as there are slots trickle in. Small ones hold no slot; those that
// need one to be read lose it. Others are served all the while, or then.
func TestTricklingUploadsHoldNoSlots_C095(t *testing.T) {
	const slots = 4
	for _, c := range []struct {
		name, head string
		holds      bool
	}{
		{"small", "Content-Length: 1000", false},
		{"small of unknown length", "Transfer-Encoding: chunked\r\n\r\n3e8", false},
		{"large", "Content-Length: 8388608", true},
		{"after a 100", "Expect: 100-continue\r\nContent-Length: 1000", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			reader := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }) // whatever comes
			w := start(t, backend(t, reader), func(cc *Config, lc *goodput.Config) {
				lc.Limit, cc.SlowClient = limit.Fixed(slots), 500*time.Millisecond
			})
			stop := make(chan struct{})
			defer close(stop)
			for range slots {
				go trickle(w.raw("POST / HTTP/1.1\r\nHost: h\r\n"+c.head+"\r\n\r\n"), stop)
			}
			if c.holds {
				w.settle("they have all slots", func(s goodput.Stats) bool { return s.InUse == slots })
				w.settle("they have lost them", func(s goodput.Stats) bool { return s.InUse == 0 })
				if n := w.proxy.Door().SlowClients; n != slots {
					t.Errorf("%d clients were too slow", n)
				}
			} else {
				w.settle("they are read", func(goodput.Stats) bool { return w.proxy.Door().Buffered > 0 })
			}
			for range 2 * slots {
				if res, _ := w.get(w.h1, "/"); res.StatusCode != 200 {
					t.Errorf("somebody else: %s", res.Status)
				}
			}
			if s := w.lim.Stats(); s.InUse != 0 {
				t.Errorf("%d slots are held", s.InUse)
			}
		})
	}
}
