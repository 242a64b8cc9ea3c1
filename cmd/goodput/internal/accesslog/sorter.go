package accesslog

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// An entry is a record as it is sorted and stored.
type entry struct {
	arrival                     int64
	key                         uint64 // hash of the line: orders ties, finds duplicates
	queue, service, last, total int64
	budget                      int64
	cost, size                  int32
	tenant                      uint32
	file, class, attempts       uint16
	status                      int16
	outcome, verdict, flags     uint8
	priority                    uint8
}

const (
	serviceAtLeast = 1 << iota
	totalAtLeast
	observed
)

// entrySize is an entry on disk: 80 bytes of the 80 in memory.
const entrySize = 7*8 + 3*4 + 4*2 + 4

// order sorts entries by arrival; ties by the hash, not by the place in the file,
// so that the order of the files and of their lines does not matter.
func order(a, b entry) int {
	switch {
	case a.arrival != b.arrival:
		return cmp.Compare(a.arrival, b.arrival)
	case a.key != b.key:
		return cmp.Compare(a.key, b.key)
	}
	return cmp.Compare(a.file, b.file)
}

// A sorter keeps entries and walks over them in order. Beyond a number of them
// it writes sorted runs to one temporary file, which a walk merges.
type sorter struct {
	max     int
	dir     string
	entries []entry
	file    *os.File
	name    string // of the file, while it has one
	runs    []run

	classes    []string
	tenants    []string
	keep       bool   // duplicates
	keepWithin []bool // by file: identical lines inside it are no duplicates
	// duplicates are counted by the first walk, by file.
	duplicates []int64
}

// A run is a sorted part of the temporary file, in entries.
type run struct{ start, n int64 }

// add takes an entry.
func (s *sorter) add(e entry) error {
	if len(s.entries) == s.max {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.entries = append(s.entries, e)
	return nil
}

// spill writes the entries in memory as a run.
func (s *sorter) spill() error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "goodput-replay-*")
		if err != nil {
			return fmt.Errorf("no temporary file for the records: %w", err)
		}
		s.file, s.name = f, f.Name()
		if os.Remove(s.name) == nil { // where the system allows it, nothing is left even by a kill
			s.name = ""
		}
	}
	slices.SortFunc(s.entries, order)
	start := int64(0)
	if n := len(s.runs); n > 0 {
		start = s.runs[n-1].start + s.runs[n-1].n
	}
	w := bufio.NewWriterSize(s.file, 1<<16)
	var b [entrySize]byte
	for i := range s.entries {
		s.entries[i].encode(&b)
		if _, err := w.Write(b[:]); err != nil {
			return fmt.Errorf("write records to the temporary file: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write records to the temporary file: %w", err)
	}
	s.runs = append(s.runs, run{start, int64(len(s.entries))})
	s.entries = s.entries[:0]
	return nil
}

// finish sorts what is left in memory, or writes it if there is a file.
func (s *sorter) finish() error {
	if len(s.runs) > 0 {
		err := s.spill()
		s.entries = nil
		return err
	}
	slices.SortFunc(s.entries, order)
	return nil
}

func (s *sorter) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	return err
}

// walk yields the records in order, without duplicates, and an error last.
func (s *sorter) walk(yield func(Record, error) bool) {
	err := s.each(func(e *entry) bool { return yield(e.record(s.classes, s.tenants), nil) })
	if err != nil {
		yield(Record{}, err)
	}
}

// each hands out the entries that are no duplicates until it is told to stop.
func (s *sorter) each(yield func(*entry) bool) error {
	twins := twins{s: s}
	if len(s.runs) == 0 {
		for i := range s.entries {
			if e := &s.entries[i]; twins.keeps(e) && !yield(e) {
				return nil
			}
		}
		return nil
	}
	// 64 KiB a run, less where there are so many that they would be 64 MB.
	buffer := max(1<<16/max(len(s.runs)/1024, 1), 4096)
	m := merge{}
	for _, r := range s.runs {
		c := &walker{r: bufio.NewReaderSize(io.NewSectionReader(s.file, r.start*entrySize, r.n*entrySize), buffer)}
		if ok, err := c.next(); err != nil {
			return err
		} else if ok {
			m = append(m, c)
		}
	}
	heap.Init(&m)
	for len(m) > 0 {
		if e := &m[0].e; twins.keeps(e) && !yield(e) {
			return nil
		}
		ok, err := m[0].next()
		switch {
		case err != nil:
			return err
		case ok:
			heap.Fix(&m, 0)
		default:
			heap.Pop(&m)
		}
	}
	return nil
}

// twins drops duplicates. Identical lines with one arrival are neighbours, in
// the order of their files. Of those in several files, as many are kept as the
// file with most of them has; inside one file each counts once, but for a table,
// whose rows do not name a request.
type twins struct {
	s              *sorter
	last           entry
	inFile, passed int
	any            bool
}

func (t *twins) keeps(e *entry) bool {
	same := t.any && t.last.arrival == e.arrival && t.last.key == e.key
	switch {
	case !same:
		t.inFile, t.passed = 1, 0
	case t.last.file != e.file:
		t.inFile = 1
	case t.s.keepWithin[e.file]:
		t.inFile++
	}
	t.last, t.any = *e, true
	if t.s.keep || t.inFile > t.passed {
		t.passed++
		return true
	}
	if t.s.duplicates != nil {
		t.s.duplicates[e.file]++
	}
	return false
}

// A walker reads a run.
type walker struct {
	r *bufio.Reader
	e entry
}

func (c *walker) next() (ok bool, err error) {
	b, err := c.r.Peek(entrySize)
	switch {
	case err == io.EOF && len(b) == 0:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read records from the temporary file: %w", err)
	}
	c.e.decode((*[entrySize]byte)(b))
	_, err = c.r.Discard(entrySize)
	return true, err
}

// merge is a heap of walkers by their entries.
type merge []*walker

func (m merge) Len() int           { return len(m) }
func (m merge) Less(i, j int) bool { return order(m[i].e, m[j].e) < 0 }
func (m merge) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(x any)        { *m = append(*m, x.(*walker)) }
func (m *merge) Pop() any {
	last := len(*m) - 1
	c := (*m)[last]
	*m = (*m)[:last]
	return c
}

func (e *entry) encode(b *[entrySize]byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], uint64(e.arrival))
	le.PutUint64(b[8:], e.key)
	le.PutUint64(b[16:], uint64(e.queue))
	le.PutUint64(b[24:], uint64(e.service))
	le.PutUint64(b[32:], uint64(e.last))
	le.PutUint64(b[40:], uint64(e.total))
	le.PutUint64(b[48:], uint64(e.budget))
	le.PutUint32(b[56:], uint32(e.cost))
	le.PutUint32(b[60:], uint32(e.size))
	le.PutUint32(b[64:], e.tenant)
	le.PutUint16(b[68:], e.file)
	le.PutUint16(b[70:], e.class)
	le.PutUint16(b[72:], e.attempts)
	le.PutUint16(b[74:], uint16(e.status))
	b[76], b[77], b[78], b[79] = e.outcome, e.verdict, e.flags, e.priority
}

func (e *entry) decode(b *[entrySize]byte) {
	le := binary.LittleEndian
	*e = entry{
		arrival: int64(le.Uint64(b[0:])),
		key:     le.Uint64(b[8:]),
		queue:   int64(le.Uint64(b[16:])),
		service: int64(le.Uint64(b[24:])),
		last:    int64(le.Uint64(b[32:])),
		total:   int64(le.Uint64(b[40:])),
		budget:  int64(le.Uint64(b[48:])),
		cost:    int32(le.Uint32(b[56:])),
		size:    int32(le.Uint32(b[60:])),
		tenant:  le.Uint32(b[64:]),
		file:    le.Uint16(b[68:]), class: le.Uint16(b[70:]), attempts: le.Uint16(b[72:]),
		status:  int16(le.Uint16(b[74:])),
		outcome: b[76], verdict: b[77], flags: b[78], priority: b[79],
	}
}

func (e *entry) record(classes, tenants []string) Record {
	return Record{
		Arrival: e.arrival,
		Queue:   time.Duration(e.queue), Service: time.Duration(e.service),
		LastService: time.Duration(e.last), Total: time.Duration(e.total),
		Class: classes[e.class], Cost: int(e.cost), Size: int(e.size),
		Budget: time.Duration(e.budget), Tenant: tenants[e.tenant], Priority: priorities[e.priority],
		Status: int(e.status), Attempts: int(e.attempts),
		Outcome: Outcome(e.outcome), Verdict: Verdict(e.verdict),
		ServiceAtLeast: e.flags&serviceAtLeast != 0, TotalAtLeast: e.flags&totalAtLeast != 0,
		Observed: e.flags&observed != 0,
	}
}
