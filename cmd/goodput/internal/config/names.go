package config

import (
	"fmt"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"golang.org/x/net/http/httpguts"
)

func isAlnum(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// isLabel reports whether text is a name that we give: part of a metric, of a log line and
// of a page.
func isLabel(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(c rune) bool {
		return !isAlnum(c) && !strings.ContainsRune("_-.", c)
	})
}

// label reads such a name.
func label(n strictyaml.Node) string {
	text := n.Text(maxName)
	if text != "" && !isLabel(text) {
		n.Fail("%s %q has other characters than letters, digits, _, - and .", n.Name(), text)
		return ""
	}
	return text
}

// headerName reads the name of a header, as net/http keeps it.
func headerName(n strictyaml.Node) string {
	text := n.Text(maxName)
	if text == "" {
		return ""
	}
	if !httpguts.ValidHeaderFieldName(text) {
		n.Fail("%s %q is not the name of a header, such as X-Tenant", n.Name(), text)
		return ""
	}
	return textproto.CanonicalMIMEHeaderKey(text)
}

// urlPath reads a path as it is after decoding, from the root.
func urlPath(n strictyaml.Node) string {
	text := n.Text(maxText)
	if text == "" {
		return ""
	}
	u, err := url.ParseRequestURI(text)
	if err != nil || text[0] != '/' || u.RawQuery != "" || u.ForceQuery || strings.ContainsAny(text, "#%") {
		n.Fail("%s %q is not a path from the root, without escapes and query, such as /healthz", n.Name(), text)
		return ""
	}
	return text
}

// bytes prints a size as a person writes it.
func bytes(n int64) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{50, "PiB"}, {40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d%s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}
