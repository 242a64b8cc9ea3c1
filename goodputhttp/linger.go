package goodputhttp

import (
	"io"
	"net/http"
	"time"
)

// A server that closes a connection with unread bytes in it sends a reset, and
// a reset that arrives while the client still writes destroys the answer before
// the client has read it. Many clients write all of a body before they read. So
// after an early refusal the rest of the body is read and dropped, within
// bounds in bytes, in time and in number; net/http then half-closes and waits
// another 500 ms itself if something is left.
const (
	// lingerBytes is twice a photo from a phone. A body that is declared longer
	// is not read at all: its client would not get to the end of it anyway.
	lingerBytes = 4 << 20

	// lingerTime is for 4 MiB at 16 Mbit/s. nginx gives 30 s.
	lingerTime = 2 * time.Second

	// lingerMost connections read 8 KiB at a time: 8 MiB for all of them.
	lingerMost = 1024
)

// linger sends the answer and reads what the client still sends. The answer has
// said that the connection closes, so the read deadline hurts nobody.
func (v *visit) linger() {
	control := http.NewResponseController(v.w)
	if control.SetReadDeadline(time.Now().Add(lingerTime)) != nil || control.Flush() != nil {
		return
	}
	if v.r.ContentLength > lingerBytes {
		return
	}
	lingering := &v.server.books().lingering
	if lingering.Add(1) <= lingerMost {
		_, _ = io.CopyN(io.Discard, v.r.Body, lingerBytes)
	}
	lingering.Add(-1)
}
