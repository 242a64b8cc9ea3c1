package record

import (
	"errors"
	"os"
	"syscall"
)

// The file that is written to is locked, as flock(2) has it, because a second process with the same
// path would move it away and delete the older ones. The kernel unlocks it when it is closed,
// however the process ends. Where a file system knows no locks there is none.

var errTaken = errors.New("another process records there; give each a file of its own")

// lock locks an open file, unless another one has it.
func lock(f *os.File) error {
	if errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return errTaken
	}
	return nil
}

// take locks the file at path, so that it may be moved, until done is called. One that cannot be
// read is somebody else's, and not locked by a program like this one, which is who would read it.
func take(path string) (done func(), err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return func() {}, nil //nolint:nilerr // see above
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// endsInside reports whether the last line of what is at path has no end: the process before was
// killed in the middle of it.
func endsInside(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] != '\n'
}
