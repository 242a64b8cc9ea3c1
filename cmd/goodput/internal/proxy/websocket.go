package proxy

import "encoding/binary"

// A WebSocket that we are about to close deserves a word: 1001, going away, after which a
// browser connects again, elsewhere. The word is a frame, and it may stand between two
// frames of the service and nowhere else, so we have to know where those end. Nothing else of them
// is read, and nothing is changed.

// frames follows one direction of a WebSocket. The zero value is at its beginning, which is
// a boundary.
type frames struct {
	head [10]byte // of the frame that is coming, as far as its length goes
	have int      // bytes of head
	skip int      // of the mask, which is behind the length
	left uint64   // bytes of the payload that are still to come

	// closing: a frame that closes the WebSocket has begun. None may follow it (RFC 6455,
	// 5.5.1).
	closing bool
}

// boundary reports whether a frame may stand here.
func (f *frames) boundary() bool { return f.have == 0 && f.skip == 0 && f.left == 0 }

// next takes bytes off p up to the end of the frame that they belong to. It returns how
// many, and whether the frame ends there: then f is at a boundary.
func (f *frames) next(p []byte) (n int, ends bool) {
	for n < len(p) {
		switch {
		case f.skip > 0:
			k := min(f.skip, len(p)-n)
			n, f.skip = n+k, f.skip-k
		case f.left > 0:
			k := min(f.left, uint64(len(p)-n))
			n, f.left = n+int(k), f.left-k
		default:
			f.head[f.have] = p[n]
			n, f.have = n+1, f.have+1
			if f.have < f.need() {
				continue
			}
			f.begin()
		}
		if f.boundary() {
			return n, true
		}
	}
	return n, false
}

// Of the first two bytes (RFC 6455, 5.2).
const (
	opcodeBits  = 0x0f
	opcodeClose = 0x08
	maskBit     = 0x80
	lengthBits  = 0x7f
	length16    = 126 // the length is in the two bytes that follow
	length64    = 127 // in the eight
)

// need returns how many bytes of head there are before the mask, as far as they tell.
func (f *frames) need() int {
	if f.have < 2 {
		return 2
	}
	switch f.head[1] & lengthBits {
	case length16:
		return 4
	case length64:
		return 10
	}
	return 2
}

// begin reads a head that is complete.
func (f *frames) begin() {
	switch short := f.head[1] & lengthBits; short {
	case length16:
		f.left = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case length64:
		f.left = binary.BigEndian.Uint64(f.head[2:])
	default:
		f.left = uint64(short)
	}
	if f.head[1]&maskBit != 0 {
		f.skip = 4
	}
	if f.head[0]&opcodeBits == opcodeClose {
		f.closing = true
	}
	f.have = 0
}

// goingAwayFrame closes a WebSocket with status 1001, "going away, such as a server going
// down" (RFC 6455, 7.4.1). A server does not mask.
var goingAwayFrame = []byte{0x80 | opcodeClose, 2, 1001 >> 8, 1001 & 0xff}
