package goodputhttp

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// A kept body is that of a response which another attempt is to follow. It is read to its end
// beside the wait for that attempt, because until then the service sends and its slot is
// held, and so that the connection can be used again. What is longer or slower than
// refusals are is dropped with its connection, so that no slot is held for it through the
// wait: if the next attempt is not sent then, there is no response to return.
type kept struct {
	a     *attempt
	body  io.ReadCloser
	timer *time.Timer // of read, which stops it

	once    sync.Once
	done    chan struct{} // closed when the slot is back; the rest is for who has seen that
	dropped bool
	head    bytes.Buffer // all of body, unless it is dropped
	err     error        // how body ended
}

// What is kept of a response.
const (
	// settleBytes is more than an error page has. 1,000 calls that wait for another attempt
	// keep 64 MB at most.
	settleBytes = 64 << 10
	// settleTime is what a new connection costs at worst, over TLS to another continent.
	settleTime = 100 * time.Millisecond
)

func (k *kept) read() {
	n, err := int64(0), errPanicked // unless body returns
	defer func() {
		_ = recover() // Read reports it, as an error
		k.timer.Stop()
		if n > settleBytes {
			k.drop()
			return
		}
		k.once.Do(func() {
			k.err = err
			k.finish(err)
		})
	}()
	n, err = io.CopyN(&k.head, k.body, settleBytes+1)
}

// drop gives up the rest. read may still be in body, which is closed.
func (k *kept) drop() {
	k.once.Do(func() {
		k.dropped, k.err = true, errBroken
		defer k.finish(nil)
		defer func() { _ = recover() }() // nobody could do so here
		_ = k.body.Close()
	})
}

func (k *kept) finish(err error) {
	k.a.end(err)
	close(k.done)
}

func (k *kept) Read(p []byte) (int, error) {
	if k.head.Len() > 0 {
		return k.head.Read(p)
	}
	return 0, k.err
}

func (k *kept) Close() error { return k.body.Close() }
