package proxy

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// frame is one frame of a WebSocket with n bytes of payload; form is how many bytes of
// length it has beside the seven bits: 0, 2 or 8.
func frame(opcode byte, n, form int, masked bool) []byte {
	b := []byte{opcode, 0}
	switch form {
	case 0:
		b[1] = byte(n)
	case 2:
		b[1] = 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	case 8:
		b[1] = 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	if masked {
		b[1] |= 0x80
		b = append(b, 1, 2, 3, 4)
	}
	return append(b, bytes.Repeat([]byte{0x88}, n)...) // a payload that looks like close frames
}

// ends is the model of frames: it has everything at once, and says where each whole frame
// ends and which is the first that closes.
func ends(all []byte) (at map[int]bool, closing int) {
	at, closing = map[int]bool{}, -1
	for i := 0; ; {
		rest := all[i:]
		if len(rest) < 2 {
			return at, closing
		}
		n, head := uint64(rest[1]&0x7f), uint64(2)
		if n == 126 {
			head = 4
		} else if n == 127 {
			head = 10
		}
		if uint64(len(rest)) < head {
			return at, closing
		}
		if head == 4 {
			n = uint64(rest[2])<<8 | uint64(rest[3])
		} else if head == 10 {
			n = 0
			for _, b := range rest[2:10] {
				n = n<<8 | uint64(b)
			}
		}
		if rest[0]&0x0f == 8 && closing < 0 {
			closing = i
		}
		if rest[1]&0x80 != 0 {
			head += 4
		}
		if left := uint64(len(rest)); left < head || left-head < n {
			return at, closing
		}
		i += int(head + n)
		at[i] = true
	}
}

func TestFrames(t *testing.T) {
	var all []byte
	for _, f := range [][]byte{
		frame(0x82, 0, 0, false), frame(0x01, 125, 0, false), frame(0x80, 126, 2, false), frame(0x89, 5, 0, true),
		frame(0x82, 65536, 8, true), frame(0x82, 3, 8, false), frame(0x82, 0, 2, true), frame(0x88, 2, 0, false), frame(0x82, 1, 0, false),
	} {
		all = append(all, f...)
	}
	for _, piece := range []int{1, 2, 3, 7, 100, 4096, len(all)} {
		cut(t, all, func() int { return piece })
	}
}

// cut feeds all in pieces, and compares what is found with the model.
func cut(t *testing.T, all []byte, piece func() int) {
	t.Helper()
	want, closing := ends(all)
	got := map[int]bool{}
	var f frames
	for at := 0; at < len(all); {
		p := all[at:min(len(all), at+max(1, piece()))]
		for len(p) > 0 {
			n, ended := f.next(p)
			if n == 0 {
				t.Fatalf("stuck at %d", at)
			}
			if at += n; ended {
				got[at] = true
			}
			if ended != f.boundary() {
				t.Fatalf("at %d: ended %v, boundary %v", at, ended, f.boundary())
			}
			if head := at - closing; f.closing && (closing < 0 || head < 2) {
				t.Fatalf("at %d: closing, and the first that does is at %d", at, closing)
			}
			p = p[n:]
		}
	}
	for at := range want {
		if !got[at] {
			t.Fatalf("the end at %d was missed", at)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d ends, want %d", len(got), len(want))
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(frame(0x82, 300, 2, true), []byte{1, 5})
	f.Add(append(frame(0x88, 2, 0, false), frame(0x82, 9, 8, false)...), []byte{3})
	f.Add([]byte{0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3}, []byte{0, 200})
	f.Fuzz(func(t *testing.T, all, pieces []byte) {
		i := 0
		cut(t, all, func() int {
			if len(pieces) == 0 {
				return len(all)
			}
			i++
			return int(pieces[i%len(pieces)])
		})
	})
}

// taken is a client that keeps what it is sent.
type taken struct {
	net.Conn
	bytes.Buffer
}

func (c *taken) Write(p []byte) (int, error)      { return c.Buffer.Write(p) }
func (c *taken) Read([]byte) (int, error)         { return 0, nil }
func (c *taken) SetWriteDeadline(time.Time) error { return nil }
func (c *taken) Close() error                     { return nil }

// Whenever it is told to leave, and however the service writes: the client gets whole frames
// as they came, then ours, then nothing; or all of them, if the service closes first.
func FuzzGoingAway(f *testing.F) {
	var some []byte
	for _, w := range [][]byte{frame(1, 3, 0, false), frame(2, 200, 2, false), frame(0x89, 0, 0, false), frame(2, 70, 8, false)} {
		some = append(some, w...)
	}
	for _, at := range []uint16{0, 1, 5, 6, 100, 209, 211, 290, 300} {
		f.Add(some, []byte{3, 50}, at)
	}
	f.Add(append(frame(0x88, 2, 0, false), some...), []byte{3}, uint16(4))
	f.Fuzz(func(t *testing.T, all, pieces []byte, told uint16) {
		client := &taken{}
		tun := &tunnel{Conn: client, webSocket: true}
		tun.opened.Store(true)
		left := false
		for at, i := 0, 0; at < len(all); i++ {
			n := len(all)
			if len(pieces) > 0 {
				n = max(1, int(pieces[i%len(pieces)]))
			}
			if !left && at >= int(told) {
				left = true
				tun.leave()
			}
			p := all[at:min(len(all), at+n)]
			if n, err := tun.Write(p); n != len(p) || err != nil {
				t.Fatalf("wrote %d of %d, %v", n, len(p), err)
			}
			at += len(p)
		}
		if !left {
			tun.leave()
		}
		got := client.Bytes()
		whole, closing := ends(all)
		if !tun.spoken {
			if !bytes.Equal(got, all) {
				t.Fatal("without a word of ours, something else than what the service sent has arrived")
			}
			return
		}
		sent, ok := bytes.CutSuffix(got, goingAwayFrame)
		if !ok || !bytes.HasPrefix(all, sent) {
			t.Fatalf("the client got % x", got)
		}
		if at := len(sent); at > 0 && !whole[at] || closing >= 0 && closing < at {
			t.Fatalf("the close frame is at %d, behind half a frame or behind another that closes", at)
		}
	})
}

// Told before the answer to the upgrade is out, a tunnel speaks after it.
func TestNoFrameBeforeTheAnswer(t *testing.T) {
	client := &taken{}
	tun := &tunnel{Conn: client, webSocket: true}
	tun.leave()
	if client.Len() != 0 {
		t.Errorf("% x before the answer", client.Bytes())
	}
	tun.Read(make([]byte, 1))
	if !bytes.Equal(client.Bytes(), goingAwayFrame) {
		t.Errorf("% x after it", client.Bytes())
	}
	tun.Read(make([]byte, 1))
	tun.leave()
	if !bytes.Equal(client.Bytes(), goingAwayFrame) {
		t.Errorf("said more than once: % x", client.Bytes())
	}
	late := &tunnel{}
	(&tunnels{leaving: true}).add(late)
	if !late.told.Load() {
		t.Error("who comes when we are leaving is not told")
	}
}

// stuck is a client that does not read: a write waits for its deadline.
type stuck struct {
	taken
	writing, deadline chan time.Time
}

func (c *stuck) Write([]byte) (int, error) {
	c.writing <- time.Time{}
	<-c.deadline
	return 0, os.ErrDeadlineExceeded
}

func (c *stuck) SetWriteDeadline(at time.Time) error {
	c.deadline <- at
	return nil
}

// A client that does not read cannot keep us from leaving: what is being written to it then
// has the farewell as well.
func TestLeavingEndsAWrite(t *testing.T) {
	c := &stuck{writing: make(chan time.Time), deadline: make(chan time.Time, 1)}
	tun := &tunnel{Conn: c, webSocket: true}
	wrote := make(chan error, 1)
	go func() {
		_, err := tun.Write(frame(2, 100, 0, false))
		wrote <- err
	}()
	<-c.writing
	tun.leave() // waits for the write, and says nothing: where it ended nobody knows
	if err := <-wrote; err != os.ErrDeadlineExceeded {
		t.Error(err)
	}
}

// A WebSocket whose client does not react has the farewell, and another protocol the time
// of the drain.
func TestTunnelsEndAtADrain(t *testing.T) {
	for _, c := range []struct {
		webSocket  bool
		for_, want time.Duration
		cut        int
	}{
		{true, time.Minute, farewell, 0},
		{true, time.Second, time.Second, 1},
		{false, time.Minute, time.Minute, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var all tunnels
			ours, theirs := net.Pipe()
			tun := &tunnel{Conn: ours, of: &all, counts: new(traffic), webSocket: c.webSocket}
			tun.opened.Store(true)
			all.add(tun)
			go theirs.Read(make([]byte, 10))
			ctx, cancel := contextFor(c.for_)
			defer cancel()
			start := time.Now()
			cut := all.drain(ctx)
			if took := time.Since(start); took != c.want || cut != c.cut {
				t.Errorf("%+v: took %v and cut %d", c, took, cut)
			}
			if _, err := ours.Write(nil); err == nil {
				t.Error("the connection is open")
			}
		})
	}
	if n := new(tunnels).drain(t.Context()); n != 0 {
		t.Errorf("%d of none", n)
	}
}
