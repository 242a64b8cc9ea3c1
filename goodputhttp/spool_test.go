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
