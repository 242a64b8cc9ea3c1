package config

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// Ranges of a listener.
const (
	shortest = time.Millisecond
	longest  = strictyaml.Day

	maxBacklog     = 1<<16 - 1 // Linux keeps it in 16 bits before 4.1, and somaxconn cuts it later
	maxConnections = 1 << 20   // descriptors of a process that was tuned for them
	maxStreams     = 1 << 20
	maxPause       = time.Second // beyond that a handshake in the backlog is sent again
	minHeader      = 4 << 10     // less, and cookies alone do not fit
	maxHeader      = 16 << 20    // what net/http keeps of each connection in the worst case
	maxSocketPath  = 107         // sun_path has 108 bytes with its zero
)

// listen reads the addresses: one, as text or with what there is beside it, or several.
func (r *reader) listen(n strictyaml.Node) {
	switch {
	case !n.Present():
		r.cfg.Listeners = []Listener{DefaultListener()}
		r.listening = []*strictyaml.Map{n.Map()}
	case n.IsList():
		for _, n := range n.List(maxListeners) {
			r.listener(n)
		}
	default:
		r.listener(n)
	}
}

func (r *reader) listener(n strictyaml.Node) {
	l := DefaultListener()
	at, m := n, n.Empty()
	if !n.IsText() {
		m = n.Map()
		at = m.Need("address", `":8443"`)
		listenerKeys(m, &l)
		defer m.Done()
	}
	if address(at, &l) {
		for i := range r.cfg.Listeners {
			if o := &r.cfg.Listeners[i]; o.Network == l.Network && o.Address == l.Address && !strings.HasSuffix(l.Address, ":0") {
				at.Fail("%s %q is listened on already, by the one above: one listener has one address", at.Name(), at.Raw())
			}
		}
	}
	r.cfg.Listeners = append(r.cfg.Listeners, l)
	r.listening = append(r.listening, m)
}

// address reads host:port, :port or unix:/path.
func address(n strictyaml.Node, l *Listener) bool {
	text := n.Text(maxText)
	if text == "" {
		return false
	}
	if socket, ok := strings.CutPrefix(text, "unix:"); ok {
		if !path.IsAbs(socket) || len(socket) > maxSocketPath {
			n.Fail("%s %q is not a socket: unix: and a path from the root, such as unix:/run/goodput.sock, of at most %d bytes", n.Name(), text, maxSocketPath)
			return false
		}
		l.Network, l.Address = "unix", socket
		return true
	}
	var a flags.Address
	if err := a.UnmarshalText([]byte(text)); err != nil || a == flags.Off {
		n.Fail("%s %q is not an address to listen on, such as 127.0.0.1:8080, [::1]:8080, :8080 or unix:/run/goodput.sock", n.Name(), text)
		return false
	}
	l.Network, l.Address = "tcp", text
	return true
}

func listenerKeys(m *strictyaml.Map, l *Listener) {
	if n := m.Get("tls"); n.Present() {
		m := n.Map()
		l.TLS = &TLS{
			Cert:     m.Need("cert", "/etc/goodput/tls.crt").Text(maxText),
			Key:      m.Need("key", "/etc/goodput/tls.key").Text(maxText),
			ClientCA: m.Get("client_ca").Text(maxText),
		}
		m.Done()
	}
	if n := m.Get("protocols"); n.Present() {
		spoken := words(n, "http1", "h2")
		l.HTTP1, l.HTTP2 = slices.Contains(spoken, "http1"), slices.Contains(spoken, "h2")
	}
	set(&l.Backlog, m.Get("backlog"), whole(1, maxBacklog))
	set(&l.MaxConnections, m.Get("max_connections"), whole(1, maxConnections))
	set(&l.MaxStreams, m.Get("max_streams"), whole(1, maxStreams))
	set(&l.PauseAccepts, m.Get("pause_accepts"), span(0, maxPause))
	set(&l.HeaderTimeout, m.Get("header_timeout"), span(shortest, longest))
	set(&l.IdleTimeout, m.Get("idle_timeout"), span(shortest, longest))
	set(&l.MaxHeader, m.Get("max_header"), func(n strictyaml.Node) int { return int(size(n, minHeader, maxHeader)) })
	if n := m.Get("max_streams"); n.Present() && !l.HTTP2 {
		n.Clash(m.Get("protocols"), "max_streams %s is about HTTP/2, and protocols has no h2", n.Raw())
	}
}

func whole(low, high int64) func(strictyaml.Node) int {
	return func(n strictyaml.Node) int { return int(n.Whole(low, high)) }
}

func span(low, high time.Duration) func(strictyaml.Node) time.Duration {
	return func(n strictyaml.Node) time.Duration { return n.Span(low, high) }
}

// size reads bytes from low to high.
func size(n strictyaml.Node, low, high int64) int64 {
	v := n.Size()
	if v != 0 && (v < low || v > high) {
		n.Fail("%s %q is out of range: %s to %s", n.Name(), n.Raw(), bytes(low), bytes(high))
		return 0
	}
	return v
}
