// Package builtin has scenario files that are part of the program: one for each
// piece of arithmetic that is usually taught about queues, and one for each way in
// which an overload is usually made worse. Each says what the rule of thumb
// predicts and why it is right or wrong, and has criteria that check the numbers it
// names. To change one, print it into a file.
//
// This package knows bytes and names. What a file means, package scenario says.
package builtin

import (
	"embed"
	"fmt"
	"path"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

//go:embed scenarios/*.yaml
var files embed.FS

// names are in the order in which one reads them: first what a queue does in an
// overload, then how deep it should be, what else does not help, the world around
// it, and structure.
var names = []string{
	"overload-1.5x", "overload-3x", "overload-10x", "demo",
	"rule-of-thumb", "depth-ceiling", "expiry-only", "burst",
	"unbounded-minute", "limit-200", "tick-table", "bounded-queue",
	"raise-the-limit", "deepen-the-queue", "aimd-collapse", "oom-restart",
	"capacity-step", "metastable", "retry-budget", "retry-layers", "mixed-deadlines", "bimodal",
	"tenant-flood", "tenant-limiters", "random-ids", "quota", "priority-flood", "reserve", "cohorts", "latest-only",
	"lend", "shared-database", "layers", "fan-out",
}

// Names returns the names of all scenarios in the order of a list.
func Names() []string { return append([]string(nil), names...) }

// File returns the name and the content of the file of a scenario. The error is a
// sentence with the name that was probably meant, or all of them.
func File(name string) (file string, src []byte, err error) {
	file = name + ".yaml"
	src, err = files.ReadFile(path.Join("scenarios", file))
	if err != nil {
		return "", nil, fmt.Errorf("built-in scenario %q is unknown%s", name, strictyaml.Unknown(name, names))
	}
	return file, src, nil
}
