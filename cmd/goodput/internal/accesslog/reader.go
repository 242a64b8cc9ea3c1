package accesslog

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A reader turns files into entries and counts what it meets. It reads one file
// after the other.
type reader struct {
	o       *Options
	k       *maker
	to      *sorter
	classes classes
	tenants tenants
	file    uint16
	times   *hdrhistogram.Histogram // of the file
	max     time.Duration           // likewise
	row     row
}

// castagnoli and the IEEE polynomial make 64 bits of hash, both by instructions
// of the processor, and the same on each machine.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Why a line is of no use, whatever its format.
const (
	whyTooLong = "the line is longer than the limit"
	whyNoEnd   = "the last line has no end, so it may be cut"
	whyForeign = "the line is of another format"
	whyBlank   = "empty"
)

func newReader(o *Options, k *maker, to *sorter) *reader {
	return &reader{
		o: o, k: k, to: to, classes: newClasses(o.Classes), tenants: newTenants(),
		// 1 ns to a year at three digits, 400 KB.
		times: hdrhistogram.New(1, int64(maxSpan), 3),
	}
}

// A source is a file while it is read.
type source struct {
	*lines
	parser  parser
	foreign *foreigner
	f       *File
	latest  int64   // stamp
	fine    bool    // a stamp was finer than Options.Spread
	coarse  bool    // coarseLines stamps were not
	held    []entry // until one of the two is known
	notes   notes
}

// read reads one file into entries and f.
func (rd *reader) read(r io.Reader, f *File) error {
	l, err := newLines(r, cmp.Or(rd.o.MaxLine, DefaultMaxLine))
	if err != nil {
		rd.file++
		return err
	}
	s := &source{lines: l, f: f, latest: math.MinInt64}
	rd.times.Reset()
	rd.max = 0
	if err = rd.begin(s); err == nil {
		err = rd.rest(s)
	}
	if err == nil {
		err = rd.release(s)
	}
	rd.file++
	if err != nil {
		return err
	}
	f.Notes = s.notes.sorted()
	f.Rule = s.parser.rule()
	if t, ok := s.parser.(*traceParser); ok {
		f.Lost, f.endless = t.lost, t.begun && !t.whole
	}
	if f.Samples = rd.times.TotalCount(); f.Samples > 0 {
		f.Median = time.Duration(rd.times.ValueAtQuantile(50))
		f.P99 = time.Duration(rd.times.ValueAtQuantile(99))
		f.longest = rd.max
	}
	if l.cut != nil {
		f.cut = fmt.Sprintf("the compressed data ends early after line %d (%v): what came before is used", f.Lines, l.cut)
	}
	return s.verdict()
}

// verdict is an error if no line of the file made sense.
func (s *source) verdict() error {
	for v, n := range s.f.Verdicts {
		if Verdict(v).Arrives() && n > 0 {
			return nil
		}
	}
	i := slices.IndexFunc(s.f.Notes, func(n Note) bool { return n.Verdict == Malformed })
	if i < 0 {
		return nil // headers, messages of a start: nothing came
	}
	n := s.f.Notes[i]
	return fmt.Errorf("none of its %d lines is a request of format %s: line %d: %s", s.f.Lines, s.f.Format, n.First, n.Why)
}

// A kept line is one of the sample.
type kept struct {
	line        []byte
	long, whole bool
}

// begin decides the format by the first lines, and takes them.
func (rd *reader) begin(s *source) error {
	format := rd.o.Format
	if rd.k.pattern != nil {
		format = Pattern
	}
	if format != "" && format != Auto {
		s.f.Format, s.parser = format, rd.k.make(format)
		return nil
	}
	var head []kept
	var sample [][]byte
	tooLong := 0
	for size := 0; len(head) < sampleLines && size < sampleBytes; {
		line, long, whole, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		k := kept{bytes.Clone(line), long, whole}
		size += len(line)
		head = append(head, k)
		switch {
		case long:
			tooLong++
		case len(bytes.TrimSpace(line)) > 0:
			sample = append(sample, k.line)
		}
	}
	switch {
	case len(sample) == 0 && tooLong > 0:
		return fmt.Errorf("each of the %d first lines is longer than the limit of %d bytes", tooLong, s.max)
	case len(sample) == 0:
		return errEmpty
	}
	var err error
	if s.f.Format, err = rd.k.detect(sample); err != nil {
		return err
	}
	s.parser = rd.k.make(s.f.Format)
	if rd.k.columns == nil {
		s.foreign = &foreigner{k: rd.k, format: s.f.Format}
	}
	for _, k := range head {
		if err := rd.take(s, k.line, k.long, k.whole); err != nil {
			return err
		}
	}
	return nil
}

// rest takes the other lines.
func (rd *reader) rest(s *source) error {
	for {
		line, long, whole, err := s.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", s.f.Lines+1, err)
		}
		if err := rd.take(s, line, long, whole); err != nil {
			return err
		}
	}
}

// take reads one line.
func (rd *reader) take(s *source, line []byte, long, whole bool) error {
	s.f.Lines++
	r := &rd.row
	r.blank()
	why := ""
	switch {
	case long:
		r.Verdict, why = Malformed, whyTooLong
	case len(bytes.TrimSpace(line)) == 0:
		r.Verdict, why = Skip, whyBlank
	default:
		var err error
		if why, err = s.parser.parse(line, r); err != nil {
			return fmt.Errorf("line %d: %w", s.f.Lines, err)
		}
	}
	if !whole && r.Verdict.Arrives() && !looksWhole(line, s) {
		r.Verdict, why = Malformed, whyNoEnd
	}
	if r.Verdict == Malformed && !long && s.foreign != nil {
		if err := s.foreign.look(line, s.f.Lines); err != nil {
			return err
		}
	}
	if !whole && r.Verdict == Malformed {
		s.f.unfinished = true
	}
	s.f.Verdicts[r.Verdict]++
	switch why {
	case "":
	case whyOtherClass:
		s.f.OtherClass++
	case whyProbe:
		s.f.Probes++
	default:
		s.notes.add(r.Verdict, why, s.f.Lines, line)
	}
	if !r.Verdict.Arrives() {
		return nil
	}
	rd.count(s, r)
	return rd.store(s, rd.entry(line, r), r.stamp)
}

// coarseLines with whole stamps say that a file has no finer ones: by chance, stamps
// in milliseconds are all whole seconds for so many lines once in 10^96 files.
const coarseLines = 32

// store keeps an entry. Where stamps are to be spread, the first are held back until
// one of them shows how fine they are.
func (rd *reader) store(s *source, e entry, stamp int64) error {
	unit := int64(rd.o.Spread)
	whole := unit > 0 && stamp%unit == 0
	switch {
	case unit > 0 && !s.fine && !whole:
		s.fine = true
		if err := rd.release(s); err != nil {
			return err
		}
	case whole && !s.fine && !s.coarse:
		s.held = append(s.held, e)
		if len(s.held) < coarseLines {
			return nil
		}
		s.coarse = true
		return rd.release(s)
	}
	if whole && !s.fine {
		rd.spread(s, &e)
	}
	return rd.to.add(e)
}

// release stores what was held back.
func (rd *reader) release(s *source) error {
	for i := range s.held {
		if !s.fine {
			rd.spread(s, &s.held[i])
		}
		if err := rd.to.add(s.held[i]); err != nil {
			return err
		}
	}
	s.held = nil
	return nil
}

// spread moves an arrival within the time that its stamp stands for.
func (rd *reader) spread(s *source, e *entry) {
	within, _ := bits.Mul64(e.key, uint64(rd.o.Spread)) // 0 to Spread, as the hash is to 2^64
	e.arrival += int64(within)
	s.f.Spread++
}

// looksWhole says whether a last line without an end is complete: its last byte
// closes something, or it is the third decimal of nginx. A number that may have
// had more digits is no guess of ours. A table is written at once, not appended
// to, and often has no last line break.
func looksWhole(line []byte, s *source) bool {
	if s.lines.cut != nil {
		return false
	}
	last := line[len(line)-1]
	switch s.f.Format {
	case Nginx:
		c := cursor{b: line, i: bytes.LastIndexByte(line, ' ') + 1}
		return isSeconds(c.word())
	case CSV:
		return true
	}
	return last == '"' || last == '}'
}

// count adds a row to what is said of the file.
func (rd *reader) count(s *source, r *row) {
	f := s.f
	f.Outcomes[r.Outcome]++
	if r.Observed {
		f.Observed++
	}
	if r.stamp < s.latest {
		f.OutOfOrder++
	}
	s.latest = max(s.latest, r.stamp)
	d, ok := r.Sample()
	if !ok || r.ServiceAtLeast {
		return
	}
	if r.Service < 0 {
		f.totals++
	} else if r.Total >= 0 && !r.TotalAtLeast && r.Service > r.Total+reversed {
		f.reversed++
	}
	rd.max = max(rd.max, d)
	rd.times.RecordValue(int64(d)) // within a year: the parsers saw to it
}

// reversed is by how much a service time may exceed the total: nginx reads the
// clock once a turn of its loop.
const reversed = 10 * time.Millisecond

// entry makes what is stored of a row.
func (rd *reader) entry(line []byte, r *row) entry {
	class := rd.classes.of(r)
	e := entry{
		arrival: r.Arrival,
		key:     uint64(crc32.Checksum(line, castagnoli))<<32 | uint64(crc32.ChecksumIEEE(line)),
		queue:   int64(r.Queue), service: int64(r.Service), last: int64(r.LastService), total: int64(r.Total),
		budget: int64(r.Budget), tenant: rd.tenants.number(r.tenant), priority: r.priority,
		cost: int32(min(r.Cost, math.MaxInt32)), size: int32(min(r.Size, math.MaxInt32)),
		file: rd.file, class: class, attempts: uint16(min(r.Attempts, math.MaxUint16)),
		status: int16(r.Status), outcome: uint8(r.Outcome), verdict: uint8(r.Verdict),
	}
	if r.ServiceAtLeast {
		e.flags |= serviceAtLeast
	}
	if r.TotalAtLeast {
		e.flags |= totalAtLeast
	}
	if r.Observed {
		e.flags |= observed
	}
	return e
}
