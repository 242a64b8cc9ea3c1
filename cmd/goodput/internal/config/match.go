package config

import (
	"mime"
	"net/http"
	"net/textproto"
	"path"
	"slices"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"golang.org/x/net/http/httpguts"
)

// match reads which requests are of a class.
func match(n strictyaml.Node) (m Match) {
	if !n.Present() {
		return m
	}
	keys := n.Map()
	defer keys.Done()
	m.Hosts = texts(keys.Get("host"), host)
	m.Paths = texts(keys.Get("path"), prefix)
	m.Methods = texts(keys.Get("method"), method)
	m.ContentTypes = texts(keys.Get("content_type"), contentType)
	headers := keys.Get("header")
	h := headers.Map()
	for _, name := range h.Keys() {
		if !httpguts.ValidHeaderFieldName(name) || len(name) > maxName {
			h.At(name).Fail("header %q is not the name of a header, such as X-Plan", name)
		}
		value := h.Get(name).Text(maxText)
		if value == "*" {
			value = ""
		}
		m.Headers = append(m.Headers, Header{textproto.CanonicalMIMEHeaderKey(name), value})
	}
	if len(m.Headers) > maxList {
		headers.Fail("header has %d names, at most %d", len(m.Headers), maxList)
	}
	if n.IsMap() && len(keys.Keys()) == 0 {
		n.Fail("match is empty: leave it out, and the class takes every request")
	}
	return m
}

// texts reads one text or a list of them, each once.
func texts(n strictyaml.Node, read func(strictyaml.Node) string) (all []string) {
	for _, n := range items(n) {
		text := read(n)
		switch {
		case text == "": // reported
		case slices.Contains(all, text):
			n.Fail("%s has %q twice", n.Name(), text)
		default:
			all = append(all, text)
		}
	}
	return all
}

// host reads api.example.com, an address, or *.example.com.
func host(n strictyaml.Node) string {
	text := strings.ToLower(n.Text(maxText))
	if text == "" {
		return ""
	}
	name := strings.TrimPrefix(text, "*.")
	bad := strings.ContainsFunc(name, func(c rune) bool { return !isAlnum(c) && !strings.ContainsRune("-._:[]", c) })
	_, port, hasPort := strings.Cut(name, ":")
	switch ip6 := strings.HasPrefix(name, "["); {
	case bad || name == "" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, "."):
		n.Fail("host %q is not a name, such as api.example.com or *.example.com", n.Raw())
	case hasPort && !ip6 || ip6 && !strings.HasSuffix(name, "]"):
		n.Fail("host %q has a port (%s), or is an address without brackets: hosts are compared without ports", n.Raw(), port)
	default:
		return text
	}
	return ""
}

// patterns are what a path has that was meant for a pattern: of other programs' globs, of
// templates and of regular expressions. In a URL most of them cannot stand as they are
// (RFC 3986, 3.3), and a class with one would never get a request.
const patterns = `*?{}()|^[]\`

// pattern returns where the first part of a pattern is in a path, or -1. A $ is one at the
// end only: OData has /$metadata.
func pattern(text string) int {
	if at := strings.IndexAny(text, patterns); at >= 0 {
		return at
	}
	if strings.HasSuffix(text, "$") {
		return len(text) - 1
	}
	return -1
}

// prefix reads a path that stands for itself and for all below it.
func prefix(n strictyaml.Node) string {
	text := n.Text(maxText)
	at := pattern(text)
	if at < 0 {
		bare, _, _ := strings.Cut(text, ";")
		if clean := path.Clean(bare); text != "" && text[0] == '/' && (strings.TrimSuffix(text, "/") != strings.TrimSuffix(clean, "/") || strings.ContainsAny(text, `;\\`)) {
			n.Fail("path %q is not one that a request has once it is resolved: write it without dot segments, empty ones, semicolons and backslashes, such as %s", text, clean)
			return ""
		}
		return urlPath(n)
	}
	before := strings.TrimRight(text[:at], "/.")
	if before == "" || before[0] != '/' {
		before = "/" + before
	}
	n.Fail("path %q has a %c: a path matches itself and all below it, write %s", text, text[at], before)
	return ""
}

// probe reads a path that stands for itself.
func probe(n strictyaml.Node) string {
	text := n.Text(maxText)
	at := pattern(text)
	if at < 0 {
		return urlPath(n)
	}
	n.Fail("%s %q has a %c: each is one path and no pattern, such as /healthz", n.Name(), text, text[at])
	return ""
}

func method(n strictyaml.Node) string {
	text := n.Text(maxName)
	switch {
	case text == "":
	case !httpguts.ValidHeaderFieldName(text):
		n.Fail("method %q is not a method, such as GET", text)
	case text != strings.ToUpper(text):
		n.Fail("method %q is not in capitals: methods are told apart by them, write %s", text, strings.ToUpper(text))
	default:
		return text
	}
	return ""
}

func contentType(n strictyaml.Node) string {
	text := strings.ToLower(n.Text(maxText))
	if text == "" {
		return ""
	}
	kind, parameters, err := mime.ParseMediaType(text)
	if _, sub, _ := strings.Cut(kind, "/"); err != nil || sub == "" || len(parameters) > 0 || kind != text {
		n.Fail("content_type %q is not a type without parameters, such as application/json", n.Raw())
		return ""
	}
	return kind
}

// Covers reports whether m takes every request that o takes: then a class with o that is
// asked after one with m gets none. It may not see it where only several parts of m together
// do, and never says so wrongly.
func (m *Match) Covers(o *Match) bool {
	all := func(mine, others []string, covers func(a, b string) bool) bool {
		return len(mine) == 0 || len(others) > 0 && !slices.ContainsFunc(others, func(b string) bool {
			return !slices.ContainsFunc(mine, func(a string) bool { return covers(a, b) })
		})
	}
	for _, h := range m.Headers {
		if !slices.ContainsFunc(o.Headers, func(g Header) bool { return g.Name == h.Name && (h.Value == "" || h.Value == g.Value) }) {
			return false
		}
	}
	return all(m.Hosts, o.Hosts, hostCovers) && all(m.Paths, o.Paths, pathCovers) &&
		all(m.Methods, o.Methods, methodCovers) && all(m.ContentTypes, o.ContentTypes, typeCovers)
}

// Empty reports whether m takes every request.
func (m *Match) Empty() bool {
	return len(m.Hosts)+len(m.Paths)+len(m.Methods)+len(m.Headers)+len(m.ContentTypes) == 0
}

// grpc reports whether m takes gRPC and nothing else.
func (m *Match) grpc() bool {
	return len(m.ContentTypes) > 0 && !slices.ContainsFunc(m.ContentTypes, func(t string) bool { return !typeCovers("application/grpc", t) })
}

func hostCovers(a, b string) bool {
	domain, wild := strings.CutPrefix(a, "*")
	return a == b || wild && strings.HasSuffix(strings.TrimPrefix(b, "*"), domain)
}

func methodCovers(a, b string) bool { return a == b || a == http.MethodGet && b == http.MethodHead }

func pathCovers(a, b string) bool {
	a, b = strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/")
	rest, below := strings.CutPrefix(b, a)
	return below && (rest == "" || rest[0] == '/')
}

func typeCovers(a, b string) bool {
	rest, longer := strings.CutPrefix(b, a)
	return longer && (rest == "" || rest[0] == '+')
}
