package pressure

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goodput/goodput"
)

// Largest returns a signal with the largest of the levels that are known, which is not
// known itself only if none of them is. Its line has those of all of them.
func Largest(signals ...goodput.Signal) goodput.Signal { return &largest{signals} }

type largest struct{ of []goodput.Signal }

// Validate returns what the first of them that is not valid says.
func (l *largest) Validate() error {
	if len(l.of) == 0 {
		return errors.New("the largest of no signals: name at least one")
	}
	for i, s := range l.of {
		if s == nil {
			return fmt.Errorf("signal %d of %d is nil", i+1, len(l.of))
		}
		if v, ok := s.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Level asks all of them, so that each goes on with its readings.
func (l *largest) Level() (level float64, ok bool) {
	for _, s := range l.of {
		if v, known := s.Level(); known && v >= 0 { // NaN is not
			level, ok = max(level, v), true
		}
	}
	return level, ok
}

func (l *largest) String() string {
	lines := make([]string, len(l.of))
	for i, s := range l.of {
		lines[i] = s.String()
	}
	return strings.Join(lines, "; ")
}
