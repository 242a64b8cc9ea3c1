// Package rules has no code, only tests: what the compiler cannot say about this
// repository and a reviewer should not have to.
//
// The layers, each importing only those below it:
//
//	cmd/goodput                           the program; main wires its internal packages
//	goodputhttp, retry, ...               adapters: they know package goodput, not each other
//	goodput                               the runtime: turns decisions into waiting
//	internal/plan, internal/sim           drive the core on a clock of their own
//	admission > limit, internal/hist      pure: decide, and never wait
//
// Purity is checked in the syntax as well as in the imports: of package time only
// durations, no goroutine, channel, select or random order. That is what makes a
// simulation or a replay take the decisions that production took.
//
// A rule is a function from a source tree to sentences about what breaks it, so
// each is run twice: on the repository, where it must find nothing, and on small
// trees that break it on purpose, where it must find just that.
package rules
