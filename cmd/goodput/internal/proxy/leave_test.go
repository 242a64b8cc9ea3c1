package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// C007: clients that reset in the middle of a download leave no slot behind, no
// stack trace, and no blame on the service.
func TestResetsMidDownload_C007(t *testing.T) {
	const clients = 1000
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	w := start(t, addr, func(_ *Config, lc *goodput.Config) { lc.Limit = limit.Fixed(50) })
	var wg sync.WaitGroup
	turn := make(chan struct{}, 50)
	for range clients {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			c, err := net.DialTimeout("tcp", w.addr, patience)
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			c.SetReadDeadline(time.Now().Add(patience)) // TCP
			if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
				t.Error(err)
			}
			c.(*net.TCPConn).SetLinger(0) // Close sends a reset
			c.Close()
		})
	}
	wg.Wait()
	s := w.settle("every slot is back", idle)
	if s.Outcomes[goodput.Failed] != 0 || s.Outcomes[goodput.Abandoned] != clients {
		t.Errorf("%d abandoned and %d failed of %d; the service was not to blame: %v", s.Outcomes[goodput.Abandoned], s.Outcomes[goodput.Failed], clients, s.Outcomes)
	}
	if log := w.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "upstream failed") {
		t.Errorf("the log blames somebody:\n%.2000s", log)
	}
}

// C085: where the client leaves decides the outcome: in the queue, before the
// header, in the body. None is a failure of the service.
func TestClientLeaves_C085(t *testing.T) {
	entered := make(chan string, 10)
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
		}
		entered <- r.URL.Path
		<-r.Context().Done()
	}))
	w := start(t, addr, func(_ *Config, lc *goodput.Config) { lc.Limit = limit.Fixed(2) })
	get := func(path string) net.Conn { return w.raw("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n") }
	header := get("/header")
	<-entered
	body := get("/body")
	<-entered
	if _, err := http.ReadResponse(bufio.NewReader(body), nil); err != nil {
		t.Fatal(err)
	}
	queued := get("/queued")
	w.settle("one waits", func(s goodput.Stats) bool { return s.Waiting == 1 })

	queued.Close()
	w.settle("cancelled", func(s goodput.Stats) bool { return s.Waiting == 0 && s.Outcomes[goodput.Cancelled] == 1 })
	header.Close()
	w.settle("abandoned", func(s goodput.Stats) bool { return s.Outcomes[goodput.Abandoned] == 1 })
	body.Close()
	s := w.settle("abandoned", func(s goodput.Stats) bool { return s.Outcomes[goodput.Abandoned] == 2 })
	if s.Outcomes[goodput.Failed]+s.Outcomes[goodput.Completed]+s.Outcomes[goodput.Late] != 0 {
		t.Errorf("%v", s.Outcomes)
	}
	w.unsampled()
	for kind, n := range w.proxy.Failures() {
		if n != 0 {
			t.Errorf("%d failures of the service: %s", n, kind)
		}
	}
	if len(entered) != 0 {
		t.Error("the request that left the queue was executed")
	}
}
