package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// lasting runs do in a world of each mode in which requests last.
func lasting(t *testing.T, upstream string, change func(*Config), do func(*world)) {
	for _, mode := range []config.Mode{config.Stream, config.Connection} {
		t.Run(mode.String(), func(t *testing.T) {
			w := start(t, upstream, func(c *Config, lc *goodput.Config) {
				c.Mode = mode
				lc.Limit, lc.Depth = limit.Fixed(4), goodput.NoQueue
				change(c)
			})
			do(w)
			w.eventually("nothing is in flight", func() bool { return w.proxy.Traffic()[0].Requests == 0 })
			if w.lim != nil {
				w.settle("idle", idle)
			}
		})
	}
}

func (w *world) both(do func(c *http.Client)) {
	for _, c := range []*http.Client{w.h1, w.h2} {
		do(c)
	}
}

// C082: each event is with the client before the next one is made, whatever the content type, and
// C083: what arrives is what was sent, to the byte.
func TestEventsPassAtOnce_C082(t *testing.T) {
	var heard chan struct{}
	kind := ""
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind = r.Header.Get("Accept"); kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		for i := range 10 {
			fmt.Fprintf(w, "data: event %2d of ten, forty bytes.....\n\n", i)
			http.NewResponseController(w).Flush()
			select {
			case <-heard: // a lump would hang here
			case <-r.Context().Done():
				return
			}
		}
	}))
	lasting(t, up, func(c *Config) { c.Idle = patience }, func(w *world) {
		w.both(func(c *http.Client) {
			for _, kind := range []string{"text/event-stream", "application/x-unknown"} {
				heard = make(chan struct{})
				r, _ := http.NewRequest(http.MethodGet, w.url, nil)
				r.Header.Set("Accept", kind)
				res, err := c.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				in := bufio.NewReader(res.Body)
				for i := range 10 {
					line, err := in.ReadString('\n')
					if err != nil || !strings.HasPrefix(line, fmt.Sprintf("data: event %2d", i)) {
						t.Fatalf("%s, event %d: %q, %v", kind, i, line, err)
					}
					in.ReadString('\n') // the empty line
					heard <- struct{}{}
				}
				if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
					t.Errorf("%q, %v", rest, err)
				}
				res.Body.Close()
			}
		})
	})
}

// C083: a large event in writes of odd sizes arrives as it was.
func TestLargeEventsAreWhole_C083(t *testing.T) {
	const seed = 83
	event := make([]byte, 80<<10)
	for i, r := 0, rand.New(rand.NewPCG(seed, 0)); i < len(event); i++ {
		event[i] = byte(r.Uint32())
	}
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for left, i := event, 1; len(left) > 0; i = i*7%8191 + 1 {
			n := min(i, len(left))
			w.Write(left[:n])
			http.NewResponseController(w).Flush()
			left = left[n:]
		}
	}))
	lasting(t, up, func(c *Config) { c.Idle = patience }, func(w *world) {
		w.both(func(c *http.Client) {
			if _, got := w.get(c, "/"); got != string(event) {
				t.Errorf("seed %d: %d bytes of %d, or others", seed, len(got), len(event))
			}
		})
	})
}

// A stream in which nothing moves is cut, and the service is told; the client can tell it
// from the end of the stream. One that lasts too long is as well, however much moves.
func TestStreamLimits(t *testing.T) {
	gone := make(chan struct{}, 10)
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first\n")
		http.NewResponseController(w).Flush()
		for r.URL.Path == "/busy" && r.Context().Err() == nil {
			io.WriteString(w, "more\n")
			http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	for _, c := range []struct {
		path        string
		idle, total time.Duration
		want        Traffic
	}{
		{"/silent", 50 * time.Millisecond, time.Minute, Traffic{CutIdle: 2}},
		{"/busy", time.Minute, 300 * time.Millisecond, Traffic{CutTotal: 2}}, // it keeps a processor, and the answer is to begin before that
	} {
		lasting(t, up, func(k *Config) { k.Idle, k.Total = c.idle, c.total }, func(w *world) {
			w.both(func(client *http.Client) {
				res, err := client.Get(w.url + c.path)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				got, err := io.ReadAll(res.Body)
				if err == nil || !bytes.HasPrefix(got, []byte("first\n")) {
					t.Errorf("%s: %.20q, %v", c.path, got, err)
				}
				<-gone
			})
			if got := w.proxy.Traffic()[0]; got.CutIdle != c.want.CutIdle || got.CutTotal != c.want.CutTotal {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			w.ended(goodput.Completed, 2) // they began in time, and the limit was ours
		})
	}
}

// A service that does not begin to answer is answered for, with a status.
func TestSilenceBeforeTheHeaderIs504(t *testing.T) {
	up := backend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	lasting(t, up, func(c *Config) { c.Idle = 50 * time.Millisecond }, func(w *world) {
		w.both(func(c *http.Client) {
			for _, body := range []string{"", "body"} {
				res, err := c.Post(w.url, "text/plain", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusGatewayTimeout || !strings.Contains(string(text), "within 50ms") {
					t.Errorf("%s %q", res.Status, text)
				}
			}
		})
		w.ended(goodput.Failed, 4)
	})
}

// A client that stops to take a stream does not keep it for ever.
func TestClientThatDoesNotReadIsIdle(t *testing.T) {
	gone := make(chan struct{}, 10)
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for block := make([]byte, 64<<10); r.Context().Err() == nil; {
			if _, err := w.Write(block); err != nil {
				break
			}
		}
		gone <- struct{}{}
	}))
	lasting(t, up, func(c *Config) { c.Idle, c.SlowClient = 200*time.Millisecond, time.Minute }, func(w *world) {
		w.raw("GET / HTTP/1.1\r\nHost: h\r\n\r\n") // and nothing is read
		res, err := w.h2.Get(w.url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		for range 2 {
			select {
			case <-gone:
			case <-time.After(patience):
				t.Fatal("the service still sends")
			}
		}
		w.eventually("both were cut", func() bool { return w.proxy.Traffic()[0].CutIdle == 2 })
		w.ended(goodput.Completed, 2)
	})
}

// C096: a device that sends a few bytes now and then, for longer than any limit of a
// request, is let: it moves. (10 minutes of 100 bytes each in the case; here each beat is a
// fourth of the idle limit, and all together are twice what a slow client of a request has.)
func TestSlowHonestStreamIsKept_C096(t *testing.T) {
	const idle, beats = time.Second, 8
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %v", len(all), err)
	}))
	lasting(t, up, func(c *Config) { c.Idle, c.SlowClient = idle, idle }, func(w *world) {
		answers := make(chan string, 2)
		w.both(func(c *http.Client) {
			body, device := io.Pipe()
			go func() {
				for range beats {
					time.Sleep(idle / 4) // wall clock: the device is slow
					device.Write(make([]byte, 100))
				}
				device.Close()
			}()
			go func() {
				res, err := c.Post(w.url, "text/plain", body)
				if err != nil {
					answers <- err.Error()
					return
				}
				defer res.Body.Close()
				text, _ := io.ReadAll(res.Body)
				answers <- string(text)
			}()
		})
		for range 2 {
			if got := <-answers; got != "800 <nil>" {
				t.Errorf("answered %q", got)
			}
		}
	})
}

// A stream of events in which something comes now and then is kept, for longer than it may
// be idle.
func TestSlowEventsKeepAStream(t *testing.T) {
	const idle, beats = time.Second, 6
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range beats {
			time.Sleep(idle / 4) // wall clock: the service is slow
			io.WriteString(w, ".")
			http.NewResponseController(w).Flush()
		}
	}))
	lasting(t, up, func(c *Config) { c.Idle = idle }, func(w *world) {
		if _, got := w.get(w.h1, "/"); len(got) != beats {
			t.Errorf("%q", got)
		}
	})
}

// Over both versions the answer of a stream begins before the request has ended, and each
// side hears the other while both go on.
func TestStreamsGoBothWays(t *testing.T) {
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if r.ProtoMajor == 1 {
			c.EnableFullDuplex()
		}
		c.Flush()
		for in := bufio.NewReader(r.Body); ; c.Flush() {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(w, strings.ToUpper(line))
		}
	}))
	lasting(t, up, func(c *Config) { c.Idle = patience }, func(w *world) {
		w.both(func(c *http.Client) {
			body, say := io.Pipe()
			r, _ := http.NewRequest(http.MethodPost, w.url, body)
			res, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(res.Body)
			for i := range 5 {
				fmt.Fprintf(say, "line %d\n", i)
				if got, err := in.ReadString('\n'); got != fmt.Sprintf("LINE %d\n", i) {
					t.Fatalf("%q, %v", got, err)
				}
			}
			say.Close()
			if rest, err := io.ReadAll(in); len(rest) != 0 || err != nil {
				t.Errorf("%q, %v", rest, err)
			}
			res.Body.Close()
		})
	})
}

// A service that ends its answer while the client still sends: nothing hangs, and what the
// client sends then is no request.
func TestServiceEndsFirst(t *testing.T) {
	var arrivals atomic.Int32
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrivals.Add(1)
		http.NewResponseController(w).EnableFullDuplex() // or net/http reads the body before it answers
		io.WriteString(w, "enough")
	}))
	lasting(t, up, func(c *Config) { c.Idle = patience }, func(w *world) {
		for _, head := range []string{"Content-Length: 100000", "Transfer-Encoding: chunked"} {
			arrivals.Store(0)
			c := w.raw("POST / HTTP/1.1\r\nHost: h\r\n" + head + "\r\n\r\n")
			if res, body := w.answer(c); res.StatusCode != 200 || body != "enough" || !res.Close {
				t.Errorf("%s %q %v", res.Status, body, res.Close)
			}
			io.WriteString(c, "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n") // fails, or nobody hears it
			if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("there was another answer, or the connection stays open: %v", err)
			}
			if n := arrivals.Load(); n != 1 {
				t.Errorf("%d requests arrived", n)
			}
		}
	})
}

// At a drain a stream has the time of the drain, and is cut then.
func TestDrainCutsStreams(t *testing.T) {
	up, entered, _ := held(t)
	lasting(t, up, func(*Config) {}, func(w *world) {
		got := w.ask(w.h1, "/")
		<-entered
		if err := w.proxy.Drain(0, 200*time.Millisecond, w.server); err == nil {
			t.Error("a stream that was cut is no error")
		}
		if r := <-got; r.err == nil {
			t.Errorf("%+v", r)
		}
	})
}

// A class of connections has no limit but that of its upgraded ones, counts what is in
// flight, and passes a deadline as it came.
func TestConnectionMode(t *testing.T) {
	release := make(chan struct{})
	up := backend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			shout(t).ServeHTTP(w, r)
			return
		}
		<-release
		io.WriteString(w, r.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms"))
	}))
	w := start(t, up, func(c *Config, _ *goodput.Config) { c.Mode, c.MaxUpgraded = config.Connection, 2 })
	const n = 100
	answers := make(chan string, n)
	for range n {
		go func() {
			r, _ := http.NewRequest(http.MethodGet, w.url, nil)
			r.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", "7777")
			res, err := w.h1.Do(r)
			if err != nil {
				answers <- err.Error()
				return
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			answers <- string(text)
		}()
	}
	w.eventually("all run at once", func() bool { return w.proxy.Traffic()[0].Requests == n })
	close(release)
	for range n {
		if got := <-answers; got != "7777" {
			t.Errorf("answered %q", got)
		}
	}
	one, _ := w.upgrade("websocket", "")
	w.upgrade("websocket", "")
	res, _ := w.answer(w.raw(upgradeRequest))
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Goodput-Rejected") != "unavailable" || res.Header.Get("Retry-After") == "" {
		t.Errorf("the third: %s %v", res.Status, res.Header)
	}
	one.Close()
	w.eventually("a place is free", func() bool { return w.proxy.Traffic()[0].Tunnels == 1 })
	w.eventually("and is taken", func() bool {
		res, err := http.ReadResponse(bufio.NewReader(w.raw(upgradeRequest)), nil)
		return err == nil && res.StatusCode == http.StatusSwitchingProtocols
	})
	if got := w.proxy.Traffic()[0]; got.Class != config.DefaultName || got.UpgradesRefused < 1 || got.TunnelsTotal != 3 || got.Mode != config.Connection {
		t.Errorf("%+v", got)
	}
}

// What a class counts goes on over a reload.
func TestTrafficGoesOnOverAReload(t *testing.T) {
	up, _ := hung(t)
	w := start(t, up, func(c *Config, _ *goodput.Config) { c.Mode, c.MaxUpgraded = config.Connection, 1 })
	c, _ := w.upgrade("echo", "")
	if err := w.proxy.Reconfigure(w.proxy.Config()); err != nil {
		t.Fatal(err)
	}
	if got := w.proxy.Traffic()[0]; got.Tunnels != 1 || got.Requests != 1 {
		t.Errorf("%+v", got)
	}
	if res, _ := w.answer(w.raw(upgradeRequest)); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a second one after the reload: %s", res.Status)
	}
	c.Close()
	w.noTunnels()
}

// One timer has both limits, and what moves puts off the first only.
func TestLimits(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		idle, total time.Duration
		moves       []time.Duration
		cut         ending
		at          time.Duration
	}{
		{10 * s, 0, nil, idled, 10 * s},
		{10 * s, 0, []time.Duration{1 * s, 9 * s, 18 * s}, idled, 28 * s},
		{10 * s, 25 * s, []time.Duration{9 * s, 18 * s, 24 * s}, expired, 25 * s},
		{10 * s, 60 * s, []time.Duration{9 * s}, idled, 19 * s},
		{0, 5 * s, []time.Duration{1 * s}, expired, 5 * s},
		{5 * s, 5 * s, nil, idled, 5 * s},
		{0, 0, nil, none, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l limits
			got := make(chan ending, 2)
			start := time.Now()
			l.start(c.idle, c.total, func(e ending) { got <- e })
			for _, at := range c.moves {
				time.Sleep(at - time.Since(start))
				l.move()
			}
			e := none
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			select {
			case e = <-got:
				if took := time.Since(start); took != c.at {
					t.Errorf("%+v: cut after %v", c, took)
				}
			case <-ctx.Done():
			}
			if e != c.cut || len(got) != 0 {
				t.Errorf("%+v: %v", c, e)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // stopped
		var l limits
		l.start(time.Second, time.Second, func(ending) { t.Error("cut after the end") })
		l.stop()
		time.Sleep(time.Minute)
		new(limits).stop()
	})
}
