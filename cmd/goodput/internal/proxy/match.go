package proxy

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// A matcher says whether a request is of a class. It reads what the service behind us will
// read: whoever could be taken for cheap here and be expensive there would get past the
// limit of what is expensive. So a path is compared as a server resolves it, without dot
// segments, empty ones and escapes.
type matcher func(*request) bool

// A request is what matchers look at, each part taken once.
type request struct {
	*http.Request
	host, path string
}

func newRequest(r *http.Request) request {
	return request{Request: r, host: hostname(r.Host), path: resolve(r.URL.Path)}
}

// hostname returns a Host header without port and trailing dots, in lower case.
func hostname(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimRight(host, "."))
}

// resolve returns a path without dot segments and empty ones, and as those servers read it
// that are the most lenient: what follows a semicolon is a parameter of the segment
// (servlets), and a backslash is a slash (Windows). A server to which they are a part of the
// name, or that resolves nothing, reads another path: see table.class for when that matters.
func resolve(p string) string {
	if p == "" {
		return "/"
	}
	odd := strings.ContainsAny(p, `;\`)
	if odd {
		p = strings.ReplaceAll(p, `\`, "/")
		segments := strings.Split(p, "/")
		for i, s := range segments {
			segments[i], _, _ = strings.Cut(s, ";")
		}
		p = strings.Join(segments, "/")
	}
	if odd || p[0] != '/' || strings.Contains(p, "//") || strings.Contains(p, "/.") {
		return path.Clean("/" + p)
	}
	return p
}

// match returns the matcher of m; nil takes every request.
func match(m config.Match) matcher {
	var all []matcher
	add := func(n int, any matcher) {
		if n > 0 {
			all = append(all, any)
		}
	}
	hosts, kinds := lower(m.Hosts), lower(m.ContentTypes)
	add(len(hosts), func(r *request) bool {
		return slices.ContainsFunc(hosts, func(h string) bool { return hostIs(r.host, h) })
	})
	add(len(m.Paths), func(r *request) bool {
		return slices.ContainsFunc(m.Paths, func(p string) bool { return below(r.path, p) })
	})
	methods := m.Methods
	if slices.Contains(methods, http.MethodGet) {
		// What answers HEAD is what answers GET, without sending it: it is as dear.
		methods = append(slices.Clone(methods), http.MethodHead)
	}
	add(len(methods), func(r *request) bool { return slices.Contains(methods, r.Method) })
	for _, h := range m.Headers {
		name := http.CanonicalHeaderKey(h.Name)
		add(1, func(r *request) bool {
			return slices.ContainsFunc(r.Header[name], func(v string) bool { return h.Value == "" || v == h.Value })
		})
	}
	add(len(kinds), func(r *request) bool {
		kind := r.Header.Get("Content-Type")
		return slices.ContainsFunc(kinds, func(t string) bool { return typeIs(kind, t) })
	})
	if all == nil {
		return nil
	}
	return func(r *request) bool {
		for _, holds := range all {
			if !holds(r) {
				return false
			}
		}
		return true
	}
}

// lower returns words in lower case, as hostIs and typeIs want them: once for a class, and not
// with each request.
func lower(words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strings.ToLower(w)
	}
	return all
}

// hostIs reports whether host is want or, for *.want, a name below it; both in lower case.
func hostIs(host, want string) bool {
	if domain, ok := strings.CutPrefix(want, "*"); ok {
		return len(host) > len(domain) && strings.HasSuffix(host, domain)
	}
	return host == want
}

// below reports whether p is prefix or a path below it: /api is not a prefix of /apiary.
func below(p, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	rest, ok := strings.CutPrefix(p, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// typeIs reports whether a content type is want, in lower case, whatever its parameters;
// application/grpc is also application/grpc+proto.
func typeIs(kind, want string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	rest, ok := strings.CutPrefix(kind, want)
	return ok && (rest == "" || rest[0] == '+')
}
