package config

import (
	"net/url"
	"strings"
	"testing"
)

func TestCheckServer(t *testing.T) {
	for s, want := range map[string]string{
		"http://127.0.0.1:9000": "", "https://h/base": "", "h2c://[::1]:9000": "",
		"h:9000": "no scheme", "/x": "no scheme", "": "no scheme", "//h": "no scheme", "ftp://h": "scheme",
		"http://": "no host", "http://:9000": "no host", "http://u:secret@h": "user", "http://h?x": "query", "http://h?": "query", "http://h#f": "fragment",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckServer(u)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}

// What is wrong is said of the text as it was written.
func TestParseServer(t *testing.T) {
	for s, want := range map[string]string{
		"http://h:9000/$x": "", "${WEB}": `"${WEB}" has a variable`, "$WEB": `"$WEB" has a variable`, "http://${H}:80/": `"http://${H}:80/" has a variable`,
		"http://$(H)": "variable", "http://h:x": "is not a URL", "9000": "no scheme",
	} {
		u, err := ParseServer(s)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && u.String() != s {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}
