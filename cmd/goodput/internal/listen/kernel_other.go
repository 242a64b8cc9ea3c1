//go:build !linux

package listen

import "net"

// acceptQueue: no other system says.
func acceptQueue(net.Listener) (queue, limit int, ok bool) { return 0, 0, false }
