package config

import (
	"fmt"
	"net/url"
	"strings"
)

// ParseServer reads where a server of an upstream listens; the error is one sentence that has
// the text as it was written.
func ParseServer(text string) (*url.URL, error) {
	if strings.Contains(text, "${") || strings.Contains(text, "$(") || strings.HasPrefix(text, "$") {
		return nil, fmt.Errorf("upstream %q has a variable: variables are not expanded, write the URL out", text)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("upstream %q is not a URL, such as http://127.0.0.1:9000", text)
	}
	return u, CheckServer(u)
}

// CheckServer returns one sentence about what is wrong with u as a server of an upstream,
// or nil.
func CheckServer(u *url.URL) error {
	const want = "say scheme and host, for example http://127.0.0.1:9000"
	switch {
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c":
		if u.Scheme == "" || u.Host == "" {
			return fmt.Errorf("upstream %q has no scheme: %s", u, want)
		}
		return fmt.Errorf("upstream %q has scheme %q: http, https or h2c", u.Redacted(), u.Scheme)
	case u.Hostname() == "":
		return fmt.Errorf("upstream %q has no host: %s", u.Redacted(), want)
	case u.User != nil:
		return fmt.Errorf("upstream %q has a user: credentials are the client's to send", u.Redacted())
	case u.RawQuery != "" || u.ForceQuery:
		return fmt.Errorf("upstream %q has a query: only a path may be put before the request's", u)
	case u.Fragment != "":
		return fmt.Errorf("upstream %q has a fragment: a server never sees it", u)
	}
	return nil
}
