package accesslog

import (
	"bytes"
	"errors"
	"fmt"
)

// What detection looks at: enough for a file that begins with the messages of a
// start, little enough to be parsed by all formats.
const (
	sampleLines = 1000
	sampleBytes = 256 << 10
)

// detectable are the formats in the order in which a tie is decided: a combined
// line without a number behind it is nginx as well as Apache.
var detectable = []Format{Trace, Goodput, Nginx, Apache, Envoy, HAProxy, ALB, CloudFront, IIS, GCP}

// resembles says whether a line looks like one of f at a glance, so that what
// does not fit can be named.
func resembles(f Format, line []byte) bool {
	has := func(s string) bool { return bytes.Contains(line, []byte(s)) }
	first, _, _ := bytes.Cut(line, []byte(" "))
	switch f {
	case Trace:
		return bytes.HasPrefix(line, []byte(traceMagic))
	case Goodput:
		return line[0] == '{' && has(`"queue_seconds"`)
	case Nginx, Apache:
		n := bytes.Index(line, []byte(`] "`))
		return n > 20 && bytes.IndexByte(line[:n], '[') >= 0 && line[max(n-15, 0)] == ':'
	case Envoy:
		return bytes.HasPrefix(line, []byte("[20")) && has(`] "`)
	case HAProxy:
		n := bytes.IndexByte(line, ']')
		return has("haproxy[") || n > 24 && line[n-4] == '.' && line[n-7] == ':' && line[n-24] == '['
	case ALB:
		switch string(first) {
		case "http", "https", "h2", "grpcs", "ws", "wss":
			return true
		}
		_, ok := readISO(first, nil)
		return ok && has(`"`)
	case CloudFront:
		return line[0] == '#' && has("x-edge-")
	case IIS:
		return line[0] == '#' && !has("x-edge-") && (has("cs-") || has("Microsoft") || has("sc-status") || has("c-ip"))
	case GCP:
		return line[0] == '{' && has("httpRequest")
	}
	return false
}

// detect returns the format of the first lines of a file.
func (k *maker) detect(sample [][]byte) (Format, error) {
	if k.columns != nil {
		switch {
		case k.pattern != nil:
			return Pattern, nil
		case len(sample) > 0 && sample[0][0] == '{':
			return JSON, nil
		}
		return CSV, nil
	}
	best, most := Format(""), 0
	var complaint error
	for _, f := range detectable {
		n, err := k.score(f, sample)
		if n > most {
			best, most = f, n
		}
		if complaint == nil {
			complaint = err
		}
	}
	switch {
	case best != "":
		return best, nil
	case complaint != nil:
		return "", complaint
	case len(sample) > 0 && sample[0][0] == '{':
		return "", fmt.Errorf("the lines are JSON, but not those of goodput or of a Google Cloud load balancer: say what their fields mean with columns, such as %q", exampleColumns)
	}
	return "", errors.New("no line of the first is of a known format: it is none of " + join(detectable) +
		"; a csv needs columns, any other log a pattern")
}

// score counts the lines that f reads, a header for less than a request. The
// error names what does not fit in the first line that resembles f.
func (k *maker) score(f Format, sample [][]byte) (n int, complaint error) {
	p := k.make(f)
	for i, line := range sample {
		var r row
		r.blank()
		why, err := p.parse(line, &r)
		switch {
		case err != nil:
			if resembles(f, line) {
				return 2, nil // the format is known, and the error comes again
			}
		case r.Verdict.Arrives():
			n += 2
		case r.Verdict == Header && resembles(f, line):
			n++
		case r.Verdict == Malformed && complaint == nil && resembles(f, line):
			complaint = fmt.Errorf("line %d resembles %s, but %s", i+1, f, why)
		}
	}
	return n, complaint
}

// A foreigner watches for lines of another format in a file whose format was
// detected.
type foreigner struct {
	k      *maker
	format Format

	// A cut line of nginx can look like Apache's, so those two are told apart by
	// many lines: more than siblings, and one in 100.
	sibling, first int64
}

const siblings = 3

// look returns an error if a malformed line is of another format.
func (w *foreigner) look(line []byte, number int64) error {
	for _, f := range detectable {
		if f == w.format || !resembles(f, line) {
			continue
		}
		var r row
		r.blank()
		if _, err := w.k.make(f).parse(line, &r); err == nil && r.Verdict != Header && !r.Verdict.Arrives() {
			continue
		}
		if f == Nginx || f == Apache {
			if w.format == Nginx || w.format == Apache {
				if w.sibling++; w.sibling == 1 {
					w.first = number
				}
				if w.sibling <= siblings || w.sibling*100 < number {
					continue
				}
				number = w.first
			}
		}
		return fmt.Errorf("line %d is %s, but most of the first lines are %s: split the file, or give the format that counts", number, f, w.format)
	}
	return nil
}
