//go:build race

package conformance

// raced is whether the race detector runs, which bounds the goroutines that there may be.
const raced = true
