package verify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/load"
)

// A Target is where a run sends its requests: one address for all of them. The name is looked
// up once, redirects are not followed, and no proxy of the environment is asked, so that
// nothing that changes or answers meanwhile sends this load to somebody else.
type Target struct {
	URL   *url.URL
	Local bool // every address of it is of this machine

	addrs  []netip.Addr
	port   string
	pinned string // host:port; "" before Pin
}

// loggedIn is a user and a password in a URL, which no message repeats.
var loggedIn = regexp.MustCompile(`//.*@`)

// ParseURL reads the URL of a target.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	text = loggedIn.ReplaceAllString(text, "//")
	if path, _, ok := strings.Cut(text, "?"); ok { // it may have a secret, and be no query that can be read
		text = path + "?..."
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL, such as http://127.0.0.1:8080/search", text)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is not a URL that begins with http:// or https://", text)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%q has no host, such as http://127.0.0.1:8080/search", text)
	case u.User != nil:
		return nil, errors.New("the URL has a user or a password in it, which would be in the report and in the list of processes: send --header 'Authorization: ...'")
	case u.Fragment != "":
		return nil, fmt.Errorf("%q has a fragment, #%s, which no server is sent: leave it away", text, u.Fragment)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("port %s of the URL is out of range: 1 to 65535", port)
		}
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// Shown is u as a report has it: a parameter of its query whose name says that its value is a
// secret has "..." in place of that. Everything else is as it came.
func Shown(u *url.URL) string {
	shown := *u
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		raw, _, has := strings.Cut(part, "=")
		name, err := url.QueryUnescape(raw)
		if err != nil {
			name = raw
		}
		if has && Secret(name) {
			parts[i] = raw + "=..."
		}
	}
	shown.RawQuery = strings.Join(parts, "&")
	return shown.String()
}

// secrets are words in the name of a header or a parameter whose value is not for a report: those
// that log in, sign or name a session. innocent are names that have one of them for another reason.
var (
	secrets  = []string{"auth", "cookie", "credential", "jwt", "key", "pass", "pwd", "secret", "session", "signature", "token"}
	innocent = []string{"author", "authors", "keyword", "keywords"}
)

// Secret reports whether the value of a header or of a parameter of that name is a secret, as far
// as a name tells.
func Secret(name string) bool {
	name = strings.ToLower(name)
	if name == "sig" { // of a shared access signature
		return true
	}
	return !slices.Contains(innocent, name) && slices.ContainsFunc(secrets, func(word string) bool { return strings.Contains(name, word) })
}

// lookup is how long a name may take: what a resolver of libc gives it by default, 5 s, twice.
const lookup = 10 * time.Second

// Resolve looks up the host of u.
func Resolve(ctx context.Context, u *url.URL) (*Target, error) {
	ctx, cancel := context.WithTimeout(ctx, lookup)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil, fmt.Errorf("the target is not there: %w", err)
	}
	t := &Target{URL: u, addrs: addrs, port: u.Port()}
	if t.port == "" {
		t.port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	mine, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("which addresses are of this machine is not known: %w", err)
	}
	t.Local = allLocal(addrs, mine)
	return t, nil
}

// allLocal reports whether a connection to any of addrs ends on this machine.
func allLocal(addrs []netip.Addr, mine []net.Addr) bool {
	return !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return !isLocal(a.Unmap(), mine) })
}

// isLocal reports whether a connection to a ends on this machine.
func isLocal(a netip.Addr, mine []net.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() { // a connection to 0.0.0.0 is one to ourselves
		return true
	}
	for _, m := range mine {
		if n, ok := m.(*net.IPNet); ok && n.IP.Equal(net.IP(a.AsSlice())) {
			return true
		}
	}
	return false
}

// connecting is how long one connection may take: two lost packets of a handshake, 1 s and 2 s.
const connecting = 5 * time.Second

// Pin connects to the addresses in turn, and keeps the first that answers for the run.
func (t *Target) Pin(ctx context.Context) error {
	var failed error
	for _, a := range t.addrs {
		at := net.JoinHostPort(a.String(), t.port)
		d := net.Dialer{Timeout: connecting}
		c, err := d.DialContext(ctx, "tcp", at)
		if err == nil {
			c.Close()
			t.pinned = at
			return nil
		}
		failed = err
	}
	return fmt.Errorf("the target is not there: %w", failed)
}

// dial connects the client of a run, and says what it speaks. HTTP/2 needs a few connections,
// so auto takes it from whoever speaks it; HTTP/1.1 needs one for each request in flight.
func (c *Config) dial(ctx context.Context, again func() bool) (*load.Client, string, error) {
	h := load.HTTP{
		URL: c.Target.URL, Addr: c.Target.pinned, Method: c.Method, Header: c.Header, Body: c.Body,
		Budget: c.Deadline, HTTP2: c.HTTP == "2", Again: again,
	}
	if c.HTTP == "auto" {
		h.HTTP2 = load.Speaks(ctx, h)
	}
	client, err := load.Dial(ctx, h)
	if err != nil {
		return nil, "", fmt.Errorf("the target is not there: %w", err)
	}
	if h.HTTP2 {
		return client, "HTTP/2", nil
	}
	return client, "HTTP/1.1", nil
}
