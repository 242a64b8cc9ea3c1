package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/goodput/goodput/cmd/goodput/internal/flags"
	"github.com/goodput/goodput/cmd/goodput/internal/metrics"
	"github.com/goodput/goodput/cmd/goodput/internal/proxy"
	"github.com/goodput/goodput/cmd/goodput/internal/record"
)

// requestLogs are what serve writes of its requests: an access log and a record for replay,
// one, both or none.
type requestLogs struct {
	access *record.Access
	trace  *record.Trace
}

// leastRecord is room for eight files with a thousand requests each.
const leastRecord = 1 << 20

// validateLogs is the part of Validate that is about the flags of these.
func (c *serveCmd) validateLogs() error {
	switch {
	case c.AccessLogQuery && c.AccessLog == "":
		return errors.New("--access-log-query needs --access-log, which says where the lines go")
	case c.Record == "-":
		return errors.New("--record -: a record is kept in several files, the oldest of which is deleted: give the name of the first")
	case c.Record != "" && c.partOfRecord(c.AccessLog):
		return fmt.Errorf("--access-log %s is a file of --record %s, which has that and %s.1 to .%d: they are two", c.AccessLog, c.Record, c.Record, record.Files-1)
	case c.RecordSize < leastRecord:
		return fmt.Errorf("--record-size is less than 1MiB: it is that of all %d files of a record together", record.Files)
	}
	return nil
}

// partOfRecord reports whether path is, however it is written, one of the files of --record.
func (c *serveCmd) partOfRecord(path string) bool {
	if path == "" || path == "-" {
		return false
	}
	here, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	there, err := filepath.Abs(c.Record)
	if err != nil {
		return false
	}
	for i := range record.Files {
		part := there
		if i > 0 {
			part += "." + strconv.Itoa(i)
		}
		if part == here {
			return true
		}
	}
	return false
}

// openLogs opens what the flags ask for.
func (c *serveCmd) openLogs(stdout io.Writer, log *slog.Logger) (l requestLogs, err error) {
	if c.AccessLog != "" {
		if l.access, err = record.OpenAccess(c.AccessLog, c.AccessLogQuery, stdout, log); err != nil {
			return l, fmt.Errorf("--access-log: %w", err)
		}
	}
	if c.Record != "" {
		if l.trace, err = record.OpenTrace(c.Record, int64(c.RecordSize), log); err != nil {
			l.close(log)
			return l, fmt.Errorf("--record: %w", err)
		}
	}
	return l, nil
}

// options have the proxy tell them.
func (l requestLogs) options(log *slog.Logger) proxy.Options {
	o := proxy.Options{Logger: log, Servers: l.access != nil}
	switch {
	case l.access != nil:
		o.Ended = l.both
	case l.trace != nil:
		o.Ended = func(_ *http.Request, e proxy.Ended) { l.trace.Add(e.Ended) }
	}
	return o
}

func (l requestLogs) both(r *http.Request, e proxy.Ended) {
	if l.trace != nil {
		l.trace.Add(e.Ended)
	}
	where := record.Where{Class: e.Class, Upstream: e.Server()}
	if client := e.Client(); client.IsValid() {
		where.Remote = client.String()
	}
	l.access.Add(r, e.Ended, where)
}

// reopen reports whether there is an access log to open again.
func (l requestLogs) reopen() bool {
	if l.access != nil {
		l.access.Reopen()
	}
	return l.access != nil
}

// numbers are what was written: of a log that is not there nothing.
func (l requestLogs) numbers() []metrics.Log {
	all := []metrics.Log{{Name: "access"}, {Name: "record"}}
	if l.access != nil {
		n := l.access.Numbers()
		all[0].Lines, all[0].Dropped = n.Lines, n.Dropped
	}
	if l.trace != nil {
		n := l.trace.Numbers()
		all[1].Lines, all[1].Dropped = n.Lines, n.Dropped
	}
	return all
}

// close writes what is left.
func (l requestLogs) close(log *slog.Logger) {
	var errs []error
	if l.access != nil {
		errs = append(errs, l.access.Close())
	}
	if l.trace != nil {
		errs = append(errs, l.trace.Close())
	}
	if err := errors.Join(errs...); err != nil {
		log.Error("the end of a log was not written", "err", err)
	}
}

// logFiles are the flags of these.
type logFiles struct {
	AccessLog      string     `placeholder:"FILE" help:"Write a line of JSON for each request: when, who, what became of it and why, the time in the queue and in the service. - is stdout. SIGHUP opens the file again. What the file does not take in time is dropped and counted; no request waits."`
	AccessLogQuery bool       `help:"Have the lines of the access log contain the query of a URL too. It is left out otherwise, because secrets and names are in it."`
	Record         string     `placeholder:"FILE" help:"Record what goodput replay needs of each request: when it came, how long it held its slot, how long its caller waited. No path, no address, and a number for a tenant. Older parts are FILE.1 to FILE.7."`
	RecordSize     flags.Size `placeholder:"SIZE" default:"1GiB" help:"Bytes of all parts of a record; the oldest is deleted. A request is about 30 bytes (${default})."`
}
