package load

import "runtime"

// ballast is what Undisturbed adds to the heap.
const ballast = 128 << 20

// Undisturbed makes the garbage collector of this process run rarely, until its result is
// called. Whoever runs a load calls it once for all runs of a process.
//
// While the collector marks, it uses every moment in which nothing else can run, and on one
// core it does not look at the clock for up to 10 ms: what is due then is late. That is no
// matter if it happens once in some seconds. But it happens whenever the heap has doubled,
// and the heap of a generator is small and its garbage much: 27 MB/s at 10,000/s of HTTP/2, 60
// MB/s at 3,000/s of HTTP/1.1 that are not answered, so 10 times a second. With 128 MB that
// stay, it doubles every 2 s or more, and at the most 0.5 % of the requests are late for that.
//
// These 128 MB are never written to: the system does not spend memory on them. The garbage that
// may pile up is memory, as much again.
func Undisturbed() (back func()) {
	weight := make([]byte, ballast)
	return func() { runtime.KeepAlive(weight) }
}
