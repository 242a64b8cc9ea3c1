package goodputhttp

import (
	"io"
	"os"
	"sync"
)

const (
	// sniffed is as much as net/http needs to see of a body to guess its type.
	sniffed = 512

	// fileChunk is how much of a file is sent before the pace is looked at: 16
	// seconds' worth, and few enough calls.
	fileChunk = 256 << 10
)

// ReadFrom lets net/http copy a file within the kernel. The first bytes take
// the way of Write, so that the header, and with it the service sample, is due
// when src has something and not when the copying starts. What is no file takes
// that way altogether: the time that src takes is not the client's.
func (f *readerFrom) ReadFrom(src io.Reader) (n int64, err error) {
	w := (*response)(f)
	if w.status == 0 {
		n, err = io.Copy(writeOnly{w}, io.LimitReader(src, sniffed))
		if err != nil || n < sniffed {
			return n, err
		}
	}
	var rest int64
	if limited, ok := src.(*io.LimitedReader); ok && isFile(limited.R) {
		rest, err = w.sendFile(limited)
	} else if isFile(src) {
		rest, err = w.sendFile(&io.LimitedReader{R: src, N: 1<<63 - 1})
	} else {
		buf := copyBuffers.Get().(*[32 << 10]byte)
		rest, err = io.CopyBuffer(writeOnly{w}, src, buf[:])
		copyBuffers.Put(buf)
	}
	return n + rest, err
}

var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func isFile(r io.Reader) bool {
	_, ok := r.(*os.File)
	return ok
}

func (w *response) sendFile(src *io.LimitedReader) (sent int64, err error) {
	to := w.ResponseWriter.(io.ReaderFrom)
	for src.N > 0 {
		chunk := io.LimitedReader{R: src.R, N: min(src.N, fileChunk)}
		asked := chunk.N
		paced := w.writing.allowed > 0
		if paced {
			w.writing.begin(asked)
		}
		n, err := to.ReadFrom(&chunk)
		if paced {
			w.writing.end(n)
		}
		src.N -= n
		w.written += n
		sent += n
		if err != nil || n < asked {
			return sent, err
		}
	}
	return sent, nil
}

// writeOnly hides ReadFrom from io.Copy.
type writeOnly struct{ io.Writer }
