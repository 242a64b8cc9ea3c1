// Package build says what the running binary was built from. Go records it, so
// there is nothing to pass to the linker and nothing to forget.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Info describes the binary.
type Info struct {
	Version  string `json:"version"`    // of the module, "devel" for a build from a work tree
	Revision string `json:"revision"`   // commit, "unknown" outside a repository
	Modified bool   `json:"modified"`   // the work tree had changes on top of Revision
	Go       string `json:"go_version"` // of the compiler
}

// Read returns what Go recorded.
func Read() Info {
	i := Info{Version: "devel", Revision: "unknown", Go: runtime.Version()}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	if v := b.Main.Version; v != "" && v != "(devel)" {
		i.Version = v
	}
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Revision = s.Value
		case "vcs.modified":
			i.Modified = s.Value == "true"
		}
	}
	return i
}

// String returns one line: "goodput devel (commit 1a2b3c4d, modified) go1.26.0".
func (i Info) String() string {
	commit := i.Revision
	if len(commit) > 12 {
		commit = commit[:12]
	}
	if i.Modified {
		commit += ", modified"
	}
	return fmt.Sprintf("goodput %s (commit %s) %s", i.Version, commit, i.Go)
}
