package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// probe sends one request to path and returns nil for an answer of 2xx or 3xx, which is not
// followed, and for a refusal by an overloaded server: it is alive, and to take it out would
// bury the others. It does not pass a limiter.
func (s *server) probe(ctx context.Context, path string) error {
	u, err := url.Parse(path)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	r.URL = &url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	r.Header.Set("User-Agent", "goodput-health-check")
	pr := httputil.ProxyRequest{Out: r}
	pr.SetURL(s.target)
	res, err := s.back.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	// A short rest is read, so that the connection can be used again.
	if _, err := io.CopyN(io.Discard, res.Body, maxProbed); err != nil && err != io.EOF {
		return err
	}
	if res.StatusCode/100 == 2 || res.StatusCode/100 == 3 || isShed(res) {
		return nil
	}
	return fmt.Errorf("the check of %s was answered %s", path, res.Status)
}

// maxProbed is how much of the body of a check is read: what others say in such a body is a
// few hundred bytes.
const maxProbed = 64 << 10

// isShed reports whether res is a refusal by a server that is well and has too much to do: one of the
// statuses for that, with one of the marks that tell it from a server that cannot serve at all.
func isShed(res *http.Response) bool {
	if res.StatusCode != http.StatusServiceUnavailable && res.StatusCode != http.StatusTooManyRequests {
		return false
	}
	for _, mark := range marks {
		if res.Header[mark] != nil {
			return true
		}
	}
	return false
}

var marks = []string{
	"Goodput-Rejected", "Retry-After", "X-Envoy-Overloaded", "Finagle-Http-Nack", "Finagle-Http-Nonretryable-Nack", "Admission-Control",
}

// connect opens a connection and closes it.
func (s *server) connect(ctx context.Context) error {
	c, err := s.pool.dial(ctx, "tcp", net.JoinHostPort(s.url.Hostname(), port(s.url)))
	if err != nil {
		return err
	}
	defer c.Close()
	if s.url.Scheme == "https" {
		return tls.Client(c, &tls.Config{ServerName: s.url.Hostname()}).HandshakeContext(ctx)
	}
	return nil
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
