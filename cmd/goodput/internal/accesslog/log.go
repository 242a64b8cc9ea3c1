package accesslog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"
)

// A Log is what Open has read. It is not for use by several goroutines.
type Log struct {
	summary Summary
	sorted  *sorter
}

// Open reads all files, plain or gzip, and sorts their requests by arrival. The
// file "-" is Options.Stdin. An error says which file, and which line of it; an
// empty file among others is a warning. Close must be called unless there is an
// error.
func Open(files []string, o Options) (*Log, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if len(files) == 0 || len(files) > maxFiles {
		return nil, fmt.Errorf("%d log files are given: 1 to %d can be read at once", len(files), maxFiles)
	}
	k, err := newMaker(&o)
	if err != nil {
		return nil, err
	}
	l := &Log{sorted: &sorter{max: cmp.Or(o.MaxPending, DefaultMaxPending), dir: o.TempDir, keep: o.KeepDuplicates}}
	rd := newReader(&o, k, l.sorted)
	for _, name := range files {
		f, err := rd.readFile(name)
		switch {
		case errors.Is(err, errEmpty) && len(files) > 1:
			l.warn("%s is empty", name)
		case err != nil:
			what := shown(name)
			var path *os.PathError
			if errors.As(err, &path) && path.Path == name {
				what, err = "cannot read "+name, path.Err
			}
			return nil, errors.Join(fmt.Errorf("%s: %w", what, err), l.Close())
		}
		l.summary.Files = append(l.summary.Files, f)
		l.sorted.keepWithin = append(l.sorted.keepWithin, f.Format == CSV || f.Format == Trace)
	}
	l.sorted.classes, l.sorted.tenants = rd.classes.names, rd.tenants.names
	if err := l.finish(rd); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// readFile reads one file by name.
func (rd *reader) readFile(name string) (File, error) {
	f := File{Name: shown(name)}
	var r io.Reader = rd.o.Stdin
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return f, err
		}
		defer opened.Close()
		r = opened
	} else if r == nil {
		return f, errors.New("there is no standard input")
	}
	err := rd.read(r, &f)
	return f, err
}

func shown(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// longGap is a pause that is worth a word: a minute's rate means nothing if the
// log spans a night that it does not have.
const longGap = time.Hour

// finish sorts, and counts what one walk over the result shows.
func (l *Log) finish(rd *reader) error {
	if err := l.sorted.finish(); err != nil {
		return err
	}
	s := &l.summary
	l.sorted.duplicates = make([]int64, len(s.Files))
	var longest, before int64
	for r, err := range l.Records() {
		if err != nil {
			return err
		}
		if s.Used++; s.Used == 1 {
			s.First, s.Last = r.Arrival, r.Arrival
		}
		if gap := r.Arrival - s.Last; gap > longest {
			longest, before = gap, s.Last
		}
		s.Last = r.Arrival
		if _, ok := r.Sample(); ok {
			s.Samples++
		}
	}
	for i := range s.Files {
		f := &s.Files[i]
		f.Duplicates = l.sorted.duplicates[i]
		s.Lines += f.Lines
		s.OutOfOrder += f.OutOfOrder
		s.Duplicates += f.Duplicates
		for v, n := range f.Verdicts {
			if !Verdict(v).Arrives() {
				s.Skipped += n
			}
		}
		s.Warnings = append(s.Warnings, f.warnings()...)
	}
	l.sorted.duplicates = nil
	if longest >= int64(longGap) && longest > (s.Last-s.First)/2 {
		l.warn("nothing arrives for %v after %s, which is more than half of the time: a stamp is wrong, or a file is missing",
			time.Duration(longest).Round(time.Second), time.Unix(0, before).UTC().Format(time.RFC3339))
	}
	if rd.classes.dropped {
		l.warn("more than %d classes are named: the later ones are taken together as %q", maxClasses, otherClass)
	}
	if rd.tenants.dropped {
		l.warn("more than %d tenants are named: the later ones are taken together as %q", maxTenants, otherClass)
	}
	return nil
}

func (l *Log) warn(format string, args ...any) {
	l.summary.Warnings = append(l.summary.Warnings, fmt.Sprintf(format, args...))
}

// Summary returns what was read.
func (l *Log) Summary() *Summary { return &l.summary }

// Records walks over the arrivals in their order. It can be walked as often as
// wanted, each time the same. An error, of the temporary file, comes last.
func (l *Log) Records() iter.Seq2[Record, error] { return l.sorted.walk }

// Close removes what was stored.
func (l *Log) Close() error { return l.sorted.close() }
