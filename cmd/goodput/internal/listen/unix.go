package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// socketMode lets the owner and the group connect: a service and its proxy often run
	// as two users of one group.
	socketMode = 0o660

	// longestPath: sun_path has 108 bytes, the last of which is 0 (unix(7)).
	longestPath = 107

	// knock is how long a process that listens may take to be connected to: the kernel
	// does it, unless its accept queue is full, and then it is alive.
	knock = time.Second
)

// openUnix listens on a path. The file that a dead process has left there is replaced; that
// of a living one is an error, and so is a file that is no socket. A peer has no address.
func openUnix(path string) (net.Listener, error) {
	abstract := path != "" && path[0] == '@' // of Linux: has no file
	if len(path) > longestPath {
		return nil, fmt.Errorf("the path has %d bytes, and a socket at most %d", len(path), longestPath)
	}
	lc := &net.ListenConfig{}
	if !abstract {
		// Linux gives the file the mode of the socket, less the umask, so it is never more
		// open than this; then the umask is undone.
		lc.Control = func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), socketMode) }) // elsewhere an error, and chmod does it
		}
	}
	l, err := lc.Listen(context.Background(), "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && !abstract {
		if err := removeStale(path); err != nil {
			return nil, err
		}
		l, err = lc.Listen(context.Background(), "unix", path)
	}
	if err != nil || abstract {
		return l, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// removeStale removes the socket at path if nobody listens there.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist): // its process has removed it meanwhile
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return errors.New("there is a file that is no socket")
	}
	c, err := net.DialTimeout("unix", path, knock)
	switch {
	case err == nil:
		c.Close()
		return errors.New("another process listens there")
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("another process may listen there: %w", plain(err))
	}
	return os.Remove(path)
}
