package goodputhttp

import (
	"net/netip"
	"net/url"
	"strings"
)

// maxHost is the longest name of a host: 253 of DNS and a port.
const maxHost = 253 + len(":65535")

// hostOf names the host of a URL, by one name for all spellings that are dialled alike: else
// who chooses the URLs would have as many limiters for a host as it has spellings. It is in
// lower case, without the dot of the root, with the port as a number unless it is the one of
// the scheme, and an address of IPv6 is as in RFC 5952, or of IPv4 if it is one in IPv6.
//
// It is not "" unless there is no host, and is "" for a name that is not ASCII, for which
// net/http dials a name in punycode that many spellings have.
func hostOf(u *url.URL) string {
	if u == nil {
		return "" // Base says so
	}
	if isPlain(u.Host) {
		return u.Host
	}
	name, port := u.Hostname(), u.Port()
	for i := range len(name) {
		if name[i] >= 0x80 {
			return ""
		}
	}
	name = strings.ToLower(name)
	if len(name) > 1 {
		name = strings.TrimSuffix(name, ".")
	}
	if strings.Contains(name, ":") {
		if addr, err := netip.ParseAddr(name); err == nil {
			name = addr.Unmap().String()
		}
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if port != "" {
		port = strings.TrimLeft(port[:len(port)-1], "0") + port[len(port)-1:]
	}
	switch {
	case port == "", u.Scheme == "http" && port == "80", u.Scheme == "https" && port == "443":
		return name
	case u.Host[:min(len(name), len(u.Host))] == name && u.Host[len(name):] == ":"+port:
		return u.Host // as it is, so nothing is allocated
	}
	return name + ":" + port
}

// isPlain reports whether name has only one spelling.
func isPlain(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '.' && i < len(name)-1:
		default:
			return false
		}
	}
	return true
}
