package accesslog

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// lines cuts a plain or compressed stream into lines, in the memory of one.
type lines struct {
	r   *bufio.Reader
	max int

	// cut says why the stream ended early: compressed data that is truncated or
	// damaged. What came before it stands.
	cut error
}

const (
	readBuffer = 256 << 10 // a few system calls per megabyte
	headBytes  = 4096      // what is looked at to tell text from data
)

var (
	errEmpty = errors.New("the file is empty")
	gzMagic  = []byte{0x1f, 0x8b}
	bom      = []byte("\xef\xbb\xbf")
)

// newLines looks at the first bytes: gzip is known by its magic number, and what
// is no text is refused.
func newLines(r io.Reader, maxLine int) (*lines, error) {
	raw := bufio.NewReaderSize(r, readBuffer)
	l := &lines{r: raw, max: maxLine}
	if head, _ := raw.Peek(len(gzMagic)); bytes.Equal(head, gzMagic) {
		z, err := gzip.NewReader(raw) // reads all members
		if err != nil {
			return nil, fmt.Errorf("the file is not gzip, though it begins so: %w", err)
		}
		l.r = bufio.NewReaderSize(z, max(readBuffer, maxLine+2))
	} else if maxLine+2 > readBuffer {
		l.r = bufio.NewReaderSize(raw, maxLine+2)
	}
	head, err := l.r.Peek(headBytes)
	switch {
	case len(head) == 0 && err == io.EOF:
		return nil, errEmpty
	case len(head) == 0:
		return nil, err
	}
	if bytes.HasPrefix(head, bom) {
		l.r.Discard(len(bom))
		head = head[len(bom):]
	}
	return l, checkText(head)
}

// checkText refuses what is not text: a zero byte, or more than one control
// character in 20 (of random bytes it is one in 9).
func checkText(head []byte) error {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return errors.New("the file is UTF-16: convert it to UTF-8")
	}
	control := 0
	for i, c := range head {
		if c == 0 {
			return fmt.Errorf("the file is binary, not a log: byte %d is zero", i)
		}
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			control++
		}
	}
	if control*20 > len(head) {
		return fmt.Errorf("the file is binary, not a log: %d of its first %d bytes are control characters", control, len(head))
	}
	return nil
}

// next returns a line without its end. long says that the line was longer than
// allowed, and is cut; whole says that it has an end. The bytes are good until
// the next call.
func (l *lines) next() (line []byte, long, whole bool, err error) {
	line, err = l.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line, long = bytes.Clone(line[:min(len(line), maxExample)]), true
		for err == bufio.ErrBufferFull {
			_, err = l.r.ReadSlice('\n')
		}
	}
	switch {
	case err == nil:
		whole = true
		if !long {
			line = line[:len(line)-1]
			if n := len(line); n > 0 && line[n-1] == '\r' {
				line = line[:n-1]
			}
		}
	case err == io.EOF:
		if len(line) == 0 {
			return nil, false, false, io.EOF
		}
	case truncated(err):
		l.cut = err
		if len(line) == 0 {
			return nil, false, false, io.EOF
		}
	default:
		return nil, false, false, err
	}
	return line, long || len(line) > l.max, whole, nil
}

// truncated says whether err is about compressed data, not about the disk.
func truncated(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) ||
		errors.As(err, &corrupt)
}
