package listen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// patience is how long a broken test takes, not how long a passing one does.
const patience = 10 * time.Second

func open(t *testing.T, change func(*config.Listener)) *Listener {
	t.Helper()
	cfg := config.DefaultListener()
	cfg.Address = "127.0.0.1:0"
	if change != nil {
		change(&cfg)
	}
	l, err := Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// accepts runs Accept until l is closed.
func accepts(l *Listener) <-chan net.Conn {
	got := make(chan net.Conn)
	go func() {
		defer close(got)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			got <- c
		}
	}()
	return got
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("never came: %s", what)
		panic("unreachable")
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) { // wall clock: the kernel moves connections
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

func dial(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := net.DialTimeout(l.Addr().Network(), l.Addr().String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// With one place and a backlog of one, the second connection and the third wait in the
// accept queue (Linux keeps one more than the backlog), the fourth finds it full, and the
// kernel counts that. Who waits is accepted in turn when a place is free.
func TestAcceptQueueOverflows(t *testing.T) {
	if _, _, ok := Overflows(); !ok {
		t.Skip("this kernel does not say")
	}
	l := open(t, func(c *config.Listener) { c.Backlog, c.MaxConnections = 1, 1 })
	got := accepts(l)
	dial(t, l)
	first := receive(t, "the first", got)
	queued := dial(t, l)
	io.WriteString(queued, "two") // it is connected: the kernel takes it
	dial(t, l)
	until(t, "two wait", func() bool { return l.Stats().Queue == 2 })
	before, _, _ := Overflows()
	ctx, giveUp := context.WithCancel(t.Context())
	dropped := make(chan error, 1)
	go func() {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		if err == nil {
			c.Close()
		}
		dropped <- err
	}()
	until(t, "the overflow is counted", func() bool { n, drops, _ := Overflows(); return n > before && drops >= n })
	giveUp()
	if err := receive(t, "the end of the dial", dropped); err == nil {
		t.Error("a fourth connection found a place")
	}
	if s := l.Stats(); s.Open != 1 || s.Accepted != 1 || s.Full != 1 || s.QueueLimit != 1 || s.FullFor <= 0 {
		t.Errorf("%+v", s)
	}
	first.Close()
	second := receive(t, "the one that waited", got)
	b := make([]byte, 3)
	if _, err := io.ReadFull(second, b); err != nil || string(b) != "two" {
		t.Errorf("%q, %v: the one that waited longest comes first", b, err)
	}
	second.Close()
	receive(t, "the last", got).Close()
	until(t, "nobody is there", func() bool { return l.Stats().Open == 0 })
}

func TestBacklog(t *testing.T) {
	l := open(t, func(c *config.Listener) { c.Backlog = 7 })
	s := l.Stats()
	if !s.QueueKnown {
		t.Skip("this kernel does not say")
	}
	if s.QueueLimit != 7 || s.Queue != 0 {
		t.Errorf("%+v, want a limit of 7", s)
	}
	if s := open(t, nil).Stats(); s.QueueLimit < 128 {
		t.Errorf("%+v without a word about the backlog: less than any Linux has", s)
	}
	if s := open(t, onPath(t)).Stats(); s.QueueKnown {
		t.Errorf("%+v for a unix socket", s)
	}
	l.Close()
	if s := l.Stats(); s.QueueKnown {
		t.Errorf("%+v after Close", s)
	}
}

// However often and from wherever connections are closed, each gives back one place.
func TestPlacesComeBackOnce(t *testing.T) {
	for _, change := range []func(*config.Listener){nil, onPath(t)} {
		l := open(t, func(c *config.Listener) {
			if change != nil {
				change(c)
			}
			c.MaxConnections = 3
		})
		got := accepts(l)
		for range 200 {
			dial(t, l).Close()
			c := receive(t, "a connection", got)
			if _, ok := c.(interface{ CloseWrite() error }); !ok {
				t.Fatalf("%T has no CloseWrite: half-closed connections would not pass", c)
			}
			if _, ok := c.(syscall.Conn); !ok {
				t.Fatalf("%T has no SyscallConn: nobody could see that the client left", c)
			}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { c.Close() })
			}
			all.Wait()
		}
		if s := l.Stats(); s.Open != 0 || s.Accepted != 200 {
			t.Errorf("%+v", s)
		}
		for range 4 {
			dial(t, l)
		}
		for range 3 {
			receive(t, "three have a place", got)
		}
		until(t, "the fourth waits", func() bool { return l.Stats().Open == 3 && l.Stats().Full > 0 })
		select {
		case <-got:
			t.Error("a fourth connection was accepted")
		default:
		}
	}
}

// Close ends Accept wherever it waits: for the kernel, for a place, for the end of a pause.
func TestCloseEndsAccept(t *testing.T) {
	l := open(t, nil)
	got := accepts(l)
	l.Close()
	l.Close()
	if c := receive(t, "the end", got); c != nil {
		t.Error("a connection")
	}

	l = open(t, func(c *config.Listener) { c.MaxConnections = 1 })
	got = accepts(l)
	dial(t, l)
	receive(t, "the one", got)
	until(t, "full", func() bool { return l.Stats().Full == 1 })
	l.Close()
	if c := receive(t, "the end", got); c != nil {
		t.Error("a connection")
	}

	l = open(t, func(c *config.Listener) { c.PauseAccepts = time.Second })
	l.Pause(true)
	start := time.Now()
	got = accepts(l)
	l.Close()
	receive(t, "the end", got)
	if p := l.Stats().Paused; p > time.Since(start) {
		t.Errorf("paused for %v", p)
	}
}

// flaky fails a few times, as when descriptors have run out.
type flaky struct {
	net.Listener
	errs []error
}

func (f *flaky) Accept() (net.Conn, error) {
	if len(f.errs) == 0 {
		return f.Listener.Accept()
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

// Whatever goes wrong is tried again, also what net/http would give up for, and is one line
// in the log.
func TestAcceptTriesAgain(t *testing.T) {
	var out bytes.Buffer
	l := open(t, nil)
	l.log = slog.New(slog.NewTextHandler(&out, nil))
	l.inner = &flaky{l.inner, []error{syscall.EMFILE, syscall.ENOBUFS, syscall.EPERM}}
	dial(t, l)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if s := l.Stats(); s.Errors != 3 || s.Open != 0 || s.Accepted != 1 {
		t.Errorf("%+v", s)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "too many open files") {
		t.Errorf("logged\n%s", got)
	}
}

func onPath(t *testing.T) func(*config.Listener) {
	path := filepath.Join(t.TempDir(), "s")
	return func(c *config.Listener) { c.Network, c.Address = "unix", path }
}

func TestUnixSocket(t *testing.T) {
	change := onPath(t)
	var cfg config.Listener
	change(&cfg)
	path := cfg.Address

	// A dead process leaves its file.
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	l := open(t, change)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o660 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	got := accepts(l)
	client := dial(t, l)
	c := receive(t, "a connection", got)
	if a := c.RemoteAddr().String(); strings.Contains(a, "/") {
		t.Errorf("the peer has an address: %q", a)
	}
	io.WriteString(client, "hello")
	client.(*net.UnixConn).CloseWrite()
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Errorf("%q, %v", b, err)
	}

	if _, err := Open(l.cfg, nil); err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("a second one: %v", err)
	}
	l.Close()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	busy := open(t, nil)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cfg  config.Listener
		says string
	}{
		{config.Listener{Network: "tcp", Address: busy.Addr().String()}, "cannot listen on " + busy.Addr().String() + ": address already in use"},
		{config.Listener{Network: "unix", Address: file}, "a file that is no socket"},
		{config.Listener{Network: "unix", Address: "/" + strings.Repeat("x", 107)}, "has 108 bytes"},
		{config.Listener{Network: "unix", Address: "/nowhere/at/all"}, "no such file"},
		{config.Listener{Network: "udp", Address: ":1"}, `network "udp"`},
		{config.Listener{Network: "tcp", Address: "127.0.0.1:0", TLS: &config.TLS{Cert: "no.pem", Key: "no.key"}}, "cannot use the certificate no.pem"},
	} {
		_, err := Open(c.cfg, nil)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.says)
		}
	}
	if b, err := os.ReadFile(file); string(b) != "precious" {
		t.Errorf("%q, %v: a file was touched", b, err)
	}
}
