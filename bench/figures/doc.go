// Package figures holds what a run of all comparisons measured, judges it by what goodput
// promises, and writes docs/benchmarks.md, which nobody edits: it says what the files of a run
// say, so it cannot drift from them.
//
// Each part of a run is a file of its own, so that parts may be measured on different
// occasions, and one that fails leaves the others alone. Command benchmarks measures and
// writes them; the last full run is in the folder run. What can only be had elsewhere is in
// peers.json, and never in a ratio.
package figures

import "embed"

// Published is the run that docs/benchmarks.md shows.
//
//go:embed run
var Published embed.FS
