package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// Books is the access log, counted: requests by class and outcome. What was turned away
// before a limiter was asked has no outcome.
type Books struct {
	Lines    int                       `json:"lines"`
	Bad      int                       `json:"bad_lines"`
	Largest  int64                     `json:"largest_file_bytes"`
	Outcomes map[string]map[string]int `json:"outcomes"` // class -> outcome
}

// A ledger reads an access log as it grows. The file is bounded: rotated is called before it is
// opened anew, and what was read of the old one is deleted.
type ledger struct {
	file string
	in   *os.File
	all  lines
	read int64 // of in
	b    Books
}

func newLedger(file string) *ledger {
	l := &ledger{file: file, b: Books{Outcomes: map[string]map[string]int{}}}
	l.all.each = l.count
	return l
}

func (l *ledger) count(line []byte) {
	var entry struct{ Limiter, Outcome string }
	l.b.Lines++
	if err := json.Unmarshal(bytes.TrimSpace(line), &entry); err != nil {
		l.b.Bad++
		return
	}
	class := l.b.Outcomes[entry.Limiter]
	if class == nil {
		class = map[string]int{}
		l.b.Outcomes[entry.Limiter] = class
	}
	class[entry.Outcome]++
}

// catchUp reads what there is.
func (l *ledger) catchUp() error {
	if l.in == nil {
		in, err := os.Open(l.file)
		if err != nil {
			return err
		}
		l.in, l.read = in, 0
	}
	n, err := io.Copy(&l.all, l.in)
	l.read += n
	l.b.Largest = max(l.b.Largest, l.read)
	return err
}

// moved renames the file, as logrotate does before it sends SIGHUP; done reads the rest of
// it when the program writes to a new one, and deletes it. It is opened before, since under
// its name there will be the new one.
func (l *ledger) moved() error {
	if err := l.catchUp(); err != nil {
		return err
	}
	return os.Rename(l.file, l.file+".old")
}

func (l *ledger) done() error {
	if err := l.catchUp(); err != nil {
		return err
	}
	err := l.in.Close()
	l.in = nil
	if err == nil && len(l.all.begun) > 0 {
		err = fmt.Errorf("the access log ends in the middle of a line: %q", l.all.begun)
	}
	if err != nil {
		return err
	}
	return os.Remove(l.file + ".old")
}

// differs says where the log has other counts than the metrics, or either has what the other has
// not, of classes that have been there all the time. What the log has without an outcome was
// turned away before a limiter was asked, and the metrics of limiters do not have it.
func (b *Books) differs(s *scrape) []string {
	told := map[[2]string]int{}
	if len(s.by(ended, "limiter")) == 0 {
		return nil // there is nothing to compare with, which unseen says
	}
	s.each(ended, func(key string, v float64) {
		told[[2]string{label(key, "limiter"), label(key, "outcome")}] += int(v)
	})
	for class, outcomes := range b.Outcomes {
		for outcome := range outcomes {
			if outcome != "" {
				told[[2]string{class, outcome}] += 0 // the metrics may not have it
			}
		}
	}
	var wrong []string
	for key, n := range told {
		if class, outcome := key[0], key[1]; class != classExtra && b.Outcomes[class][outcome] != n {
			wrong = append(wrong, fmt.Sprintf("class %s: the access log has %d that are %s, the metrics %d", class, b.Outcomes[class][outcome], outcome, n))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// Sums of the access log as clients tell answers apart.
func (b *Books) good() int { return b.of("completed") + b.of("late") }

func (b *Books) bad() int { return b.of("rejected") + b.of("expired") + b.of("failed") + b.of("") }

func (b *Books) of(outcome string) (n int) {
	for _, class := range b.Outcomes {
		n += class[outcome]
	}
	return n
}

// disagrees says where the log and the clients cannot both be right. Each request that was
// answered is in the log, as what it was answered; of one that broke off, on either side, nobody
// but the server knows what it was, or whether it was one. So the log has at least what was
// answered, and at most as many more as broke off.
func (b *Books) disagrees(t Told) []string {
	var wrong []string
	for _, c := range []struct {
		what        string
		log, client int
	}{
		{"requests", b.Lines, t.OK + t.Refused + t.Failed},
		{"completed or late", b.good(), t.OK},
		{"refused or failed", b.bad(), t.Refused + t.Failed},
	} {
		if c.log < c.client || c.log > c.client+t.Open() {
			wrong = append(wrong, fmt.Sprintf("%s: the log has %d, clients were told so %d times, and %d broke off", c.what, c.log, c.client, t.Open()))
		}
	}
	return wrong
}
