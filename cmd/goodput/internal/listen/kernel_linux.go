package listen

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// acceptQueue returns how many connections wait to be accepted and how many may. For a
// socket that listens, Linux puts them where TCP_INFO has the unacknowledged and the
// selectively acknowledged segments of others (net/ipv4/tcp.c, tcp_get_info).
func acceptQueue(l net.Listener) (queue, limit int, ok bool) {
	tcp, isTCP := l.(*net.TCPListener)
	if !isTCP {
		return 0, 0, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var info *unix.TCPInfo
	if raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
	}) != nil || err != nil {
		return 0, 0, false // closed
	}
	return int(info.Unacked), int(info.Sacked), true
}
