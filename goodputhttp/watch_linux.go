package goodputhttp

import (
	"encoding/binary"
	"syscall"
)

// States of a TCP connection, include/net/tcp_states.h.
const (
	tcpClose     = 7 // reset
	tcpCloseWait = 8 // the peer has sent its last byte
)

// peerLeft reports whether the peer of a TCP connection has closed or reset it.
// tcpi_state is the first byte of the struct that TCP_INFO returns, and the
// kernel cuts the struct to the four bytes that GetsockoptInt has room for.
func peerLeft(conn syscall.RawConn) (left bool) {
	err := conn.Control(func(fd uintptr) {
		info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
		if err != nil {
			return // not TCP
		}
		var b [4]byte
		binary.NativeEndian.PutUint32(b[:], uint32(info))
		left = b[0] == tcpClose || b[0] == tcpCloseWait
	})
	return left || err != nil // it was closed at our side
}
