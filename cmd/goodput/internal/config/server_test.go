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
