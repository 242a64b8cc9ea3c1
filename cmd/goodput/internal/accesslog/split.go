package accesslog

import "bytes"

// A cursor cuts a line into words and quoted fields, from left to right, without
// copying.
type cursor struct {
	b []byte
	i int
}

// rest is what was not read.
func (c *cursor) rest() []byte { return c.b[c.i:] }

// done says whether all was read.
func (c *cursor) done() bool { return c.i >= len(c.b) }

// spaces passes blanks.
func (c *cursor) spaces() {
	for c.i < len(c.b) && c.b[c.i] == ' ' {
		c.i++
	}
}

// word returns what stands before the next blank, nothing at the end.
func (c *cursor) word() []byte {
	c.spaces()
	start := c.i
	if n := bytes.IndexByte(c.b[start:], ' '); n >= 0 {
		c.i = start + n
	} else {
		c.i = len(c.b)
	}
	return c.b[start:c.i]
}

// quoted returns the inside of the quotes that must come next. A backslash takes
// the meaning of the byte behind it.
func (c *cursor) quoted() (s []byte, ok bool) {
	c.spaces()
	if c.i == len(c.b) || c.b[c.i] != '"' {
		return nil, false
	}
	start := c.i + 1
	for from := start; ; {
		n := bytes.IndexByte(c.b[from:], '"')
		if n < 0 {
			return c.b[start:], false
		}
		end := from + n
		slashes := 0
		for k := end - 1; k >= start && c.b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			c.i = end + 1
			return c.b[start:end], true
		}
		from = end + 1
	}
}

// maxTarget is the longest target of a request that somebody means. Longer ones
// are counted as malformed: what sends them probes.
const maxTarget = 4096

// Why a request line cannot be read.
const (
	whyNoRequest = "the request is empty or not HTTP"
	whyCut       = "the request is cut"
	whyLong      = "the target is longer than 4 KiB"
	whyEscape    = "the target has an invalid percent escape"
)

// requestLine returns the path of `GET /path?query HTTP/1.1`, and why there is
// none. The target may contain blanks.
func requestLine(b []byte) (path []byte, why string) {
	n := bytes.IndexByte(b, ' ')
	if n <= 0 {
		return nil, whyNoRequest
	}
	for _, c := range b[:n] {
		if !(c >= 'A' && c <= 'Z' || c == '_' || c == '-' && n > 1 || c >= 'a' && c <= 'z') {
			return nil, whyNoRequest
		}
	}
	target := b[n+1:]
	end := bytes.LastIndexByte(target, ' ')
	switch {
	case end < 0: // HTTP/0.9, or the version is cut off
		return path, whyCut
	case !isVersion(target[end+1:]):
		return path, whyCut
	}
	target = target[:end]
	if len(target) == 0 || isDash(target) {
		return nil, whyNoRequest
	}
	return targetPath(target)
}

// isVersion says whether b is the protocol of a request line.
func isVersion(b []byte) bool {
	rest, ok := bytes.CutPrefix(b, []byte("HTTP/"))
	return ok && (len(rest) == 1 && isDigit(rest[0]) || len(rest) == 3 && isDigit(rest[0]) && rest[1] == '.' && isDigit(rest[2]))
}

// targetPath returns the path of a target: without scheme, host and query.
func targetPath(target []byte) (path []byte, why string) {
	path = target
	if path[0] != '/' {
		if n := bytes.Index(path, []byte("://")); n >= 0 && n < 8 {
			path = path[n+3:]
			if n = bytes.IndexByte(path, '/'); n < 0 {
				path = []byte("/")
			} else {
				path = path[n:]
			}
		}
	}
	if n := bytes.IndexByte(path, '?'); n >= 0 {
		path = path[:n]
	}
	switch {
	case len(target) > maxTarget:
		return path, whyLong
	case !escapesHold(target):
		return path, whyEscape
	}
	return path, ""
}

// escapesHold says whether two hexadecimal digits follow each percent sign.
func escapesHold(b []byte) bool {
	for {
		n := bytes.IndexByte(b, '%')
		if n < 0 {
			return true
		}
		if n+2 >= len(b) || !isHex(b[n+1]) || !isHex(b[n+2]) {
			return false
		}
		b = b[n+3:]
	}
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// fits says whether s is what pattern says, "*" standing for anything. It goes
// back to the last star only, which is enough, so it is O(len(s) x len(pattern)).
func fits(pattern string, s []byte) bool {
	p, i, star, from := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
