package goodputhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
)

// slowFor is how slow clients may be in these tests; what is honest waits for
// several times as long.
const slowFor = 100 * time.Millisecond

// C095 (dolthub/doltlite#1761), the bodies that cannot be read in advance: they
// need a slot to be read, and one that trickles loses it, however often it sends
// a byte.
func TestC095SlowClientsLoseTheirSlot(t *testing.T) {
	for name, head := range map[string]string{
		"large":    "Content-Length: 8388608\r\n\r\n",
		"chunked":  "Transfer-Encoding: chunked\r\n\r\n800000\r\n",
		"grpc":     "Content-Type: application/grpc\r\nContent-Length: 8388608\r\n\r\n",
		"continue": "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			const slots = 4
			lim := limiter(slots, goodput.Config{})
			got := make(chan error, slots)
			s := &Server{Limiter: one(lim), SlowClient: slowFor, MaxPreread: NoPreread, Next: http.HandlerFunc(
				func(_ http.ResponseWriter, r *http.Request) {
					_, err := io.Copy(io.Discard, r.Body)
					got <- err
				})}
			srv := start(t, s)
			stop := make(chan struct{})
			defer close(stop)
			for range slots {
				c := dial(t, srv, "POST / HTTP/1.1\r\nHost: x\r\n"+head)
				go trickle(c, slowFor/5, stop)
			}
			for range slots {
				if err := receive(t, "the handler's body ends", got); !errors.Is(err, ErrSlowClient) {
					t.Errorf("the handler got %v", err)
				}
			}
			settled(t, lim)
			if n := s.Stats().SlowClients; n != slots {
				t.Errorf("%d slow clients counted", n)
			}
		})
	}
}

// trickle writes a byte at a time until it cannot or is told to stop.
func trickle(w io.Writer, every time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
		}
	}
}

// The same over HTTP/2, where a body may be of unknown length.
func TestC095SlowHTTP2BodyLosesItsSlot(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	got := make(chan error, 1)
	srv := start(t, &Server{Limiter: one(lim), SlowClient: slowFor, Next: http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			got <- err
		})})
	body, w := io.Pipe()
	stop := make(chan struct{})
	defer close(stop)
	go trickle(w, slowFor/5, stop)
	r, err := http.NewRequest(http.MethodPost, srv.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if res, err := clients(t)["h2c"].Do(r); err == nil {
			res.Body.Close()
		}
		w.Close()
	}()
	if err := receive(t, "the handler's body ends", got); !errors.Is(err, ErrSlowClient) {
		t.Errorf("the handler got %v", err)
	}
	settled(t, lim)
}

// A client that does not read a response larger than the buffers on the way.
func TestSlowReaderLosesItsSlot(t *testing.T) {
	kilobyte := strings.Repeat("x", 1<<10)
	for name, send := range map[string]func(w http.ResponseWriter) error{
		"write": func(w http.ResponseWriter) error {
			_, err := w.Write([]byte(kilobyte))
			return err
		},
		"large": func(w http.ResponseWriter) error {
			_, err := w.Write(make([]byte, 1<<20))
			return err
		},
		"string": func(w http.ResponseWriter) error {
			_, err := io.WriteString(w, kilobyte)
			return err
		},
		"flush": func(w http.ResponseWriter) error {
			if _, err := w.Write([]byte(kilobyte)); err != nil {
				return err
			}
			return http.NewResponseController(w).Flush()
		},
		"copy": func(w http.ResponseWriter) error {
			_, err := io.Copy(w, io.LimitReader(zeros{}, 1<<20))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			s := &Server{Limiter: one(lim), SlowClient: slowFor, Next: http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					for send(w) == nil {
					}
				})}
			c := dial(t, start(t, s), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			_ = c.SetReadBuffer(4 << 10)
			until(t, "it is cut off", func() bool { return s.Stats().SlowClients == 1 })
			if st := settled(t, lim); st.Outcomes[goodput.Abandoned] != 1 {
				t.Errorf("outcomes %v", st.Outcomes)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// What the handler waits for elsewhere is not the client's: a stream of events
// that is silent most of the time is kept, and so is a body that the handler is
// slow to read.
func TestSlowServiceIsNotASlowClient(t *testing.T) {
	for name, client := range clients(t) {
		t.Run(name, func(t *testing.T) {
			lim := limiter(1, goodput.Config{})
			s := &Server{Limiter: one(lim), SlowClient: slowFor, MaxPreread: NoPreread, Next: http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					_ = http.NewResponseController(w).EnableFullDuplex()
					b := make([]byte, 100_000)
					for range 3 {
						<-time.After(2 * slowFor) // the service's pace
						if _, err := io.ReadFull(r.Body, b); err != nil {
							fmt.Fprint(w, err)
							return
						}
						_, _ = w.Write(b)
						_ = http.NewResponseController(w).Flush()
					}
				})}
			r, err := http.NewRequest(http.MethodPost, start(t, s).URL, io.LimitReader(zeros{}, 300_000))
			if err != nil {
				t.Fatal(err)
			}
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(text(t, res)); got != 300_000 || s.Stats().SlowClients != 0 {
				t.Errorf("%d bytes, %d slow clients", got, s.Stats().SlowClients)
			}
			outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Completed: 1})
		})
	}
}

// The knob: as slow as they like.
func TestPatientClient(t *testing.T) {
	lim := limiter(1, goodput.Config{})
	got := make(chan error, 1)
	s := &Server{Limiter: one(lim), SlowClient: PatientClient, MaxPreread: NoPreread, Next: http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			got <- err
		})}
	c := dial(t, start(t, s), post(3))
	for range 3 {
		<-time.After(2 * slowFor) // the client's pace
		fmt.Fprint(c, "x")
	}
	if err := receive(t, "the body ends", got); err != nil {
		t.Error(err)
	}
}

// Allowance grows with what went through, and a ring that comes late looks again.
func TestPace(t *testing.T) {
	cut := 0
	p := &pace{allowed: time.Hour, cut: func(*response) { cut++ }}
	p.begin(64 << 10)
	if got := p.left().Round(time.Millisecond); got != time.Hour+4*time.Second {
		t.Errorf("%v left with 64 KiB on their way", got)
	}
	p.ring()
	if p.end(64<<10) || cut != 0 {
		t.Error("cut although there was time left")
	}
	if p.spent != 0 {
		t.Errorf("%v spent: credit must not pile up", p.spent)
	}
	p.ring() // nothing waits
	p.allowed = -time.Hour
	p.begin(0)
	p.ring()
	if !p.end(0) || cut != 1 {
		t.Errorf("cut %d times after its time", cut)
	}
	p.stop()
	p.over = false
	p.begin(0)
	p.ring()
	if p.end(0) || cut != 1 {
		t.Error("cut after it was stopped")
	}
}
