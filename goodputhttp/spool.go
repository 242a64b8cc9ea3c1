package goodputhttp

// A spool is bytes in memory, in pieces: a buffer that is copied into a larger one leaves
// as much garbage as it held, and many bodies wait at once in an overload.
//
// Invariant: every piece but the last is full. The bytes before off in the first are given.
type spool struct {
	pieces [][]byte
	off    int
	left   int64 // bytes that were not given yet
	held   int64 // bytes of memory
}

// full reports whether there is no room.
func (s *spool) full() bool {
	n := len(s.pieces)
	return n == 0 || len(s.pieces[n-1]) == cap(s.pieces[n-1])
}

// grow makes room for n bytes more of one that is full.
func (s *spool) grow(n int64) {
	s.pieces = append(s.pieces, make([]byte, 0, n))
	s.held += n
}

// room is where the next bytes go, which add then counts. There must be some.
func (s *spool) room() []byte {
	last := s.pieces[len(s.pieces)-1]
	return last[len(last):cap(last)]
}

// add says that n bytes are in room.
func (s *spool) add(n int) {
	last := &s.pieces[len(s.pieces)-1]
	*last = (*last)[:len(*last)+n]
	s.left += int64(n)
}

// give moves as many bytes into p as there are and p takes.
func (s *spool) give(p []byte) (n int) {
	for n < len(p) && s.left > 0 {
		first := s.pieces[0]
		m := copy(p[n:], first[s.off:])
		n += m
		s.left -= int64(m)
		if s.off += m; s.off == len(first) {
			s.pieces, s.off = s.pieces[1:], 0
		}
	}
	return n
}
