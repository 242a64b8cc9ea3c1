package goodputhttp

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/iotest"
)

// A body that is read in advance in pieces is given as it came, whatever the sizes of the
// reads on both sides, and the memory that is counted is the memory that is held.
func TestSpooledBodyIsWhole(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		sent := make([]byte, 1+dice.IntN(40<<10))
		for i := range sent {
			sent[i] = byte(dice.Uint32())
		}
		declared := int64(len(sent))
		if dice.IntN(2) == 0 {
			declared = -1
		}
		s := &Server{MaxPreread: int64(1 + dice.IntN(60<<10)), MaxBuffered: int64(1 + dice.IntN(90<<10))}
		from := iotest.OneByteReader(bytes.NewReader(sent))
		if dice.IntN(3) > 0 {
			from = bytes.NewReader(sent)
		}
		v := &visit{server: s, r: &http.Request{ProtoMajor: 1, ContentLength: declared, Body: io.NopCloser(from)}}
		v.body = v.newBody()
		if err := v.fill(); err == io.EOF {
			v.body.end = io.EOF
		}
		in := int64(0)
		for _, p := range v.body.read.pieces {
			in += int64(cap(p))
		}
		if in != v.body.read.held || in != s.Stats().Buffered || in > s.maxBuffered() {
			t.Fatalf("%d bytes are held, %d are said to be and %d counted, of %d", in, v.body.read.held, s.Stats().Buffered, s.maxBuffered())
		}
		if most := max(2*v.body.read.left, 4<<10); in > most {
			t.Fatalf("%d bytes are held for %d that came", in, v.body.read.left)
		}
		var got []byte
		for {
			p := make([]byte, 1+dice.IntN(8<<10))
			n, err := v.body.Read(p)
			if got = append(got, p[:n]...); err != nil {
				break
			}
		}
		if !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes were sent, declared as %d, and %d given, or others", len(sent), declared, len(got))
		}
		v.forget()
		if n := s.Stats().Buffered; n != 0 {
			t.Fatalf("%d bytes are still counted", n)
		}
	}
}

// What HTTP/2 keeps of a body is kept until somebody has read that it is over, so a body that
// was read in advance is read that far: see body.last.
func TestBodyIsReadToItsEnd(t *testing.T) {
	from := &ender{left: 10 << 10}
	v := &visit{server: &Server{}, r: &http.Request{ProtoMajor: 2, ContentLength: 10 << 10, Body: from}}
	v.body = v.newBody()
	if err := v.fill(); err != io.EOF || !from.told || v.body.read.left != 10<<10 {
		t.Errorf("%v, told of the end: %v, %d bytes", err, from.told, v.body.read.left)
	}
	broken := &ender{left: 10 << 10, end: io.ErrUnexpectedEOF}
	v.r.Body = broken
	v.body = v.newBody()
	if err := v.fill(); err != io.ErrUnexpectedEOF {
		t.Errorf("%v of a stream that was reset behind its last byte", err)
	}
}

// An ender tells of its end behind the last byte, as a stream of HTTP/2 does.
type ender struct {
	left int
	end  error // nil: io.EOF
	told bool
}

func (e *ender) Read(p []byte) (int, error) {
	if e.left == 0 {
		e.told = true
		if e.end != nil {
			return 0, e.end
		}
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	e.left -= n
	return n, nil
}

func (e *ender) Close() error { return nil }
