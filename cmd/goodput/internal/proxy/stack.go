package proxy

// room is what the deepest call below ServeHTTP takes of a stack, and more: 3.7 KiB with the
// transport of net/http at its end.
const room = 3 << 10

// grow makes the stack of the goroutine large enough at once, for what is called after it.
//
// A stream of HTTP/2 has a goroutine of its own, which begins with 2 KiB. On the way to the
// upstream it would grow twice, to 4 KiB and to 8, and each time the frames of all callers
// are adjusted, which was 6 % of all a pass over HTTP/2 costs. Here there are few callers
// yet, and one growth.
//
//go:noinline
func grow(i uint8) byte {
	var frame [room]byte
	return frame[i]
}
