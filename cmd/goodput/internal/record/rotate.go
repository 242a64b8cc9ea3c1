package record

import (
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// Files is how many files a trace has at most: the one that is written to, and seven older
// ones. The oldest is an eighth of what is kept, so never less than seven eighths are there.
const Files = 8

// rotated is the file of a trace that is written to. When it is full it becomes path.1, that
// becomes path.2, and so on; the last is deleted.
type rotated struct {
	state
	most   int64 // bytes of one file
	create func(path string) (handle, error)

	file handle // nil: it could not be opened, and is tried again
	size int64  // what of it is good
	base int64  // what its first line says
	torn bool   // behind size there is a piece of a line
}

// fits reports whether n bytes more may be in the file, with what ends it.
func (f *rotated) fits(n int) bool { return f.size+int64(n+len(end)) <= f.most }

// ready opens the file if it could not be opened before.
func (f *rotated) ready() error {
	if f.file != nil {
		return nil
	}
	err := f.next()
	f.is(err)
	return err
}

// turn ends the file, and begins another one. A file that cannot be ended goes on: to rename it
// for that would delete an older one each time.
func (f *rotated) turn() error {
	if err := f.end(); err != nil {
		return err
	}
	return f.ready()
}

// next moves what is at path out of the way, and opens a new file there.
func (f *rotated) next() error {
	f.file = nil
	if _, err := os.Lstat(f.path); err == nil {
		done, err := take(f.path)
		if err != nil {
			return err
		}
		defer done()
		if err := f.moveOn(); err != nil {
			return err
		}
	}
	file, err := f.create(f.path)
	if err != nil {
		return err
	}
	f.file, f.size, f.torn, f.base = file, 0, false, time.Now().UnixMicro()
	if err = f.write(appendHeader(nil, f.base)); err != nil {
		// It is not left there: the next try would take it for one that is to be kept, and move
		// the others on for it, again and again.
		_ = file.Close()
		_ = os.Remove(f.path)
		f.file = nil
	}
	return err
}

// moveOn makes room at path. A file without a request in it, which is what a start that failed
// leaves, is no reason to delete an older one: eight of those would leave nothing.
func (f *rotated) moveOn() error {
	if isBlank(f.path) {
		return os.Remove(f.path)
	}
	for i := Files - 1; i > 0; i-- {
		if err := os.Rename(f.name(i-1), f.name(i)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// isBlank reports whether a file of a trace has no line of a request, and none about those that
// are missing.
func isBlank(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 2*maxLine))
	head, rest, ok := strings.Cut(string(text), "\n")
	return err == nil && ok && strings.HasPrefix(head, magic) && (rest == columns || rest == columns+end)
}

func (f *rotated) name(i int) string {
	if i == 0 {
		return f.path
	}
	return f.path + "." + strconv.Itoa(i)
}

// write appends whole lines, or nothing: of what a full disk has taken a part of, that part is
// cut off again.
func (f *rotated) write(b []byte) error {
	if f.file == nil {
		return fs.ErrClosed
	}
	if f.torn {
		b = append([]byte{'\n'}, b...)
	}
	n, err := f.file.Write(b)
	f.is(err)
	if err == nil {
		f.size, f.torn = f.size+int64(n), false
		return nil
	}
	if n > 0 && f.file.Truncate(f.size) != nil {
		f.size, f.torn = f.size+int64(n), true
	}
	return err
}

// end says that the file is whole, and closes it.
func (f *rotated) end() error {
	if err := f.write([]byte(end)); err != nil {
		return err
	}
	err := f.file.Close()
	f.file = nil
	return err
}
