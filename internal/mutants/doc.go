// Package mutants breaks the code on purpose and requires that a named test
// notices. It has no code, only tests: a test that passes on broken code proves
// nothing about the real one.
//
// A mutant is a file in testdata: why the change is a bug, which package's test
// must fail, and what becomes of which lines.
//
//	A merge that loses the sum: every mean after it is wrong.
//
//	package: ./internal/hist
//	fails: ^TestMergeAddsAll$
//	=== internal/hist/hist.go
//		h.Sum += o.Sum
//	=== becomes
//		h.Sum = o.Sum
//
// The old lines must occur in the file exactly once, and several changes may
// follow each other. `race: yes` in the head runs the test with the race
// detector. Paths start at the root of the repository.
//
// The test runs with `go test -overlay`, so nothing in the tree is touched. It
// must pass without the change; with it, it must compile and fail. Running them
// takes seconds each, so it is done by `make mutants` (GOODPUT_MUTANTS=all); a
// plain `go test` only checks that each mutant still applies.
package mutants
