package accesslog

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// A Format is how a line is laid out.
type Format string

// The formats of Options.Format. Auto looks at the first lines of each file.
const (
	Auto       Format = "auto"
	Trace      Format = "trace"      // what goodput serve --record writes
	Goodput    Format = "goodput"    // what goodput serve --access-log writes
	Nginx      Format = "nginx"      // combined, then $request_time and $upstream_response_time
	Apache     Format = "apache"     // combined, then %D
	Envoy      Format = "envoy"      // the default format
	HAProxy    Format = "haproxy"    // option httplog or httpslog, with or without a syslog prefix
	ALB        Format = "alb"        // AWS Application and Classic Load Balancer
	CloudFront Format = "cloudfront" // standard logs, by their #Fields
	IIS        Format = "iis"        // W3C and Advanced Logging, by their #Fields
	GCP        Format = "gcp"        // Google Cloud load balancer, JSON lines
	JSON       Format = "json"       // any JSON lines, with Options.Columns
	CSV        Format = "csv"        // a header and rows, with Options.Columns
	Pattern    Format = "pattern"    // any line, with Options.Pattern
)

// Formats lists what Options.Format may be.
var Formats = []Format{Auto, Nginx, Apache, Envoy, HAProxy, ALB, CloudFront, IIS, GCP, JSON, CSV, Pattern, Trace, Goodput}

// The bounds and defaults of Options.
const (
	// DefaultMaxLine is 64 KiB: the four buffers of 8 KiB that nginx takes a
	// request line and headers in, doubled for what is escaped.
	DefaultMaxLine = 64 << 10
	minMaxLine     = 256
	maxMaxLine     = 16 << 20

	// DefaultMaxPending is 131,072 records of 88 bytes: 11.5 MB. More is slower:
	// they leave the cache of the processor.
	DefaultMaxPending = 1 << 17
	maxMaxPending     = 1 << 24

	// maxFiles is what fits the number of a file in a stored record.
	maxFiles = math.MaxUint16

	// maxClasses bounds the classes that a column may name; the later ones are
	// "other". A column of ids would otherwise be a class for each line.
	maxClasses = 1000
	otherClass = "other"

	// maxTenants bounds the names of tenants: 100,000 of up to 256 bytes. The later ones are
	// "other".
	maxTenants = 100_000
)

// Options say how to read. The zero value detects the format and reads what the
// formats themselves define.
type Options struct {
	// Format of all files; "" is Auto, or Pattern if there is a Pattern.
	Format Format

	// Columns maps fields of a Record to the columns of CSV, the fields of JSON
	// (dotted) or the groups of a Pattern:
	//
	//	arrival=TIMESTAMP,service=0.1ms*ContextTokens+20ms*GeneratedTokens
	//
	// The fields are arrival (or end, where the stamp is the end and there is a
	// total or a service), queue, service, total, status, class, path, cost, size.
	// A column of numbers is multiplied by its unit, "1ms*duration"; a column of
	// its own is a date ("2006-01-02 15:04:05.999", RFC 3339, or as nginx writes
	// it) or a duration with its unit ("12ms"). A list of attempts ("0.000, 0.016")
	// is summed. "-", "-1", null and nothing are absent. A sum of such terms and of
	// constants is a cost model. size and cost are sums of plain numbers. A name
	// with one of ,+*= in it stands in double quotes; #1 is the first column of a
	// CSV, and a CSV that is mapped by such numbers alone has no header.
	Columns string

	// Pattern is a regular expression (RE2) with named groups for lines that no
	// format fits. Without Columns, the groups are named like the fields, with
	// the unit behind durations: (?P<arrival>...), (?P<service_ms>...).
	Pattern string

	// Zone is where stamps without a zone were written; nil is UTC.
	Zone *time.Location

	// Unit is the unit of the last number of Apache lines; 0 is a microsecond,
	// which is Apache's %D. Tomcat before 10.1 writes milliseconds.
	Unit time.Duration

	// Classes give requests a class, a cost and a size by their path. The first
	// rule that fits decides; a column wins over it.
	Classes []Class

	// Only is the class whose requests are read from a trace or an access log of goodput, which
	// may have those of several: each has a limiter of its own. "": all.
	Only string

	// KeepDuplicates keeps identical lines. By default one line of those that two
	// log shippers delivered is enough.
	KeepDuplicates bool

	// Spread, if set, is the resolution of stamps that have no finer one: requests
	// of one stamp are spread over that time, by the hash of their line. Most
	// servers write whole seconds, and a thousand requests that arrive together at
	// the turn of each second are a load that nobody had. What is lost is bursts
	// shorter than that, which the log does not show. At most a minute.
	Spread time.Duration

	// MaxLine is the longest line in bytes; longer ones are counted and skipped.
	// 0 is DefaultMaxLine, allowed are 256 bytes to 16 MiB.
	MaxLine int

	// MaxPending is how many records are kept in memory to be sorted. 0 is
	// DefaultMaxPending, at most 16,777,216 (1.5 GB).
	MaxPending int

	// TempDir is where the other records go; "" is os.TempDir.
	TempDir string

	// Stdin is what a file named "-" stands for.
	Stdin io.Reader
}

// A Class is a rule that names a class by path.
type Class struct {
	Name string

	// Path is what the path without its query must be, "*" stands for anything:
	// "/search", "/api/*", "*.jpg".
	Path string

	// Cost and Size are those of each such request; 0 leaves them alone.
	Cost, Size int
}

// Validate states what is wrong with the options, one sentence each.
func (o *Options) Validate() error {
	switch {
	case o.Format != "" && !slices.Contains(Formats, o.Format):
		return fmt.Errorf("log format %q is not known: it is one of %s", o.Format, join(Formats))
	case o.MaxLine != 0 && (o.MaxLine < minMaxLine || o.MaxLine > maxMaxLine):
		return fmt.Errorf("the line length limit is %d bytes: it must be %d to %d", o.MaxLine, minMaxLine, maxMaxLine)
	case o.MaxPending < 0 || o.MaxPending > maxMaxPending:
		return fmt.Errorf("the number of records kept in memory is %d: it must be 1 to %d, or 0 for the default of %d", o.MaxPending, maxMaxPending, DefaultMaxPending)
	case o.Spread < 0 || o.Spread > time.Minute:
		return fmt.Errorf("stamps are spread over %v: it must be 0 to 1m", o.Spread)
	case o.Unit != 0 && o.Unit != time.Microsecond && o.Unit != time.Millisecond && o.Unit != time.Second:
		return fmt.Errorf("the unit of Apache's duration is %v: it must be 1us, 1ms or 1s", o.Unit)
	case o.Unit != 0 && o.Format != "" && o.Format != Auto && o.Format != Apache:
		return fmt.Errorf("a unit is given, but format %s has its own: a unit is for apache", o.Format)
	case o.Pattern != "" && o.Format != "" && o.Format != Auto && o.Format != Pattern:
		return fmt.Errorf("a pattern is given beside the format %s: give one of them", o.Format)
	case o.Pattern == "" && o.Format == Pattern:
		return fmt.Errorf("format pattern needs a pattern")
	case o.Columns == "" && (o.Format == CSV || o.Format == JSON):
		return fmt.Errorf("format %s needs columns: such as %q", o.Format, exampleColumns)
	case o.Columns != "" && !slices.Contains([]Format{"", Auto, CSV, JSON, Pattern}, o.Format):
		return fmt.Errorf("columns are given, but format %s has its own: columns are for csv, json and a pattern", o.Format)
	}
	for i, c := range o.Classes {
		switch {
		case c.Name == "":
			return fmt.Errorf("class rule %d has no name", i+1)
		case c.Path == "":
			return fmt.Errorf("class %q has no path: \"*\" fits all", c.Name)
		case c.Cost < 0 || c.Size < 0 || c.Cost > math.MaxInt32 || c.Size > math.MaxInt32:
			return fmt.Errorf("class %q has cost %d and size %d: they must be 0 to %d", c.Name, c.Cost, c.Size, math.MaxInt32)
		}
	}
	if len(o.Classes) > maxClasses {
		return fmt.Errorf("%d class rules are given: at most %d", len(o.Classes), maxClasses)
	}
	_, err := newMaker(o)
	return err
}

const exampleColumns = "arrival=time,service=1ms*duration_ms,status=status"

func join(formats []Format) string {
	var s []string
	for _, f := range formats {
		s = append(s, string(f))
	}
	return strings.Join(s, ", ")
}
