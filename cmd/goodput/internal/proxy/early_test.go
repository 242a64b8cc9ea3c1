package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// C098: the service answers 413 without reading the body and closes. The 413 is
// relayed; the proxy invents nothing.
func TestEarlyAnswerIsRelayed_C098(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large")
				c.(*net.TCPConn).CloseWrite()                      // as a server lingers:
				c.SetReadDeadline(time.Now().Add(5 * time.Second)) // it reads on,
				io.Copy(io.Discard, io.LimitReader(c, 512<<10))    // but not to the end
			}()
		}
	}()
	w := start(t, l.Addr().String(), nil)
	for i := range 20 {
		// Go's client has the race between answer and failed write itself, so
		// this one reads whatever becomes of its writing.
		c := w.raw("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5242880\r\n\r\n")
		go io.CopyN(c, zeros{}, 5<<20)
		res, body := w.answer(c)
		if res.StatusCode != http.StatusRequestEntityTooLarge || body != "too large" {
			t.Fatalf("try %d: %s %s\n%s", i, res.Status, body, w.log)
		}
		c.Close()
	}
	s := w.settle("idle", idle)
	if s.Outcomes[goodput.Failed] != 0 || s.Outcomes[goodput.Rejected] != 0 {
		t.Errorf("counted against the service or as overload: %v", s.Outcomes)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// C075: Expect: 100-continue, and the service answers without reading: the
// client gets the answer; nobody reads the body after its handler has ended.
func TestExpectContinueWithEarlyAnswer_C075(t *testing.T) {
	addr := backend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	w := start(t, addr, nil)
	errs := make(chan error, 16)
	var wg sync.WaitGroup
	for range cap(errs) {
		wg.Go(func() {
			for range 1000 / cap(errs) {
				if err := expect401(w.addr); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	w.settle("idle", idle)
	if strings.Contains(w.log.String(), "panic") {
		t.Errorf("%s", w.log)
	}
}

func expect401(addr string) error {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience)) // TCP
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", 5<<20)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusUnauthorized {
		return errors.New(res.Status)
	}
	return nil
}
