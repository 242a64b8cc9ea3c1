package proxy

import "io"

// A tunnel lives for hours and says little, and io.Copy would keep 32 KiB for each of its
// directions. So a tunnel copies by itself: it begins with a buffer for what a message has,
// and has a larger one once a read has filled that.
const (
	leastCopied = 2 << 10
	mostCopied  = bufferSize // a read of more saves next to nothing
)

// WriteTo is what io.Copy calls to copy from the client.
func (t *tunnel) WriteTo(w io.Writer) (int64, error) { return relay(w, t) }

// ReadFrom is what io.Copy calls to copy to the client.
func (t *tunnel) ReadFrom(r io.Reader) (int64, error) { return relay(t, r) }

// relay copies until r ends, or either fails.
func relay(w io.Writer, r io.Reader) (written int64, err error) {
	buf := make([]byte, leastCopied)
	for {
		n, end := r.Read(buf)
		if n > 0 {
			m, err := w.Write(buf[:n])
			written += int64(m)
			if err != nil {
				return written, err
			}
		}
		switch {
		case end == io.EOF:
			return written, nil
		case end != nil:
			return written, end
		case n == len(buf) && n < mostCopied:
			buf = make([]byte, 2*n)
		}
	}
}
