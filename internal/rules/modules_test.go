package rules

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A nestedModule is a go.mod below the root.
type nestedModule struct {
	dir    string
	work   bool // in go.work
	wanted bool // it must be there; the others may come
}

// nestedModules are all the modules there may be. Those that are released, and
// the program, are in go.work, so that `go run ./cmd/goodput` works from the
// root. The others are not: a workspace selects one version of each dependency
// for all its modules, and the rivals of bench must not choose the program's.
var nestedModules = []nestedModule{
	{dir: "bench", wanted: true},
	{dir: "cmd/goodput", work: true, wanted: true},
	{dir: "e2e"},
	{dir: "goodputgrpc", work: true},
	{dir: "goodputotel", work: true},
	{dir: "goodputprom", work: true},
	{dir: "tools", wanted: true},
}

// nested returns the module below the root that a folder belongs to, or "".
func nested(dir string) string {
	for _, m := range nestedModules {
		if within(dir, m.dir) {
			return m.dir
		}
	}
	return ""
}

var (
	requireLine = regexp.MustCompile(`(?m)^require\b`)
	moduleLine  = regexp.MustCompile(`(?m)^module (\S+)$`)
	ownRequire  = regexp.MustCompile(`(?m)^(?:require)?\s+(` + regexp.QuoteMeta(module) + `\S*) v`)
	replaceLine = regexp.MustCompile(`(?m)^(?:replace)?\s*(\S+) => (\.\S*)$`)
	useLine     = regexp.MustCompile(`(?m)^(?:use)?\s+(\.\S*)$`)
)

// checkModules: the root requires nothing, each nested module is there, named by
// its folder, and builds against this tree.
func checkModules(t *tree) (bad []string) {
	root, err := fs.ReadFile(t.fsys, "go.mod")
	if err != nil {
		return []string{err.Error()}
	}
	if requireLine.Match(root) {
		bad = append(bad, "go.mod: the root module requires nothing, and this has a require line")
	}
	found, err := modFiles(t.fsys)
	if err != nil {
		return append(bad, err.Error())
	}
	for _, dir := range found {
		if !slices.ContainsFunc(nestedModules, func(m nestedModule) bool { return m.dir == dir }) {
			bad = append(bad, fmt.Sprintf("%s/go.mod: this module is not in modules_test.go", dir))
			continue
		}
		bad = append(bad, checkNested(t.fsys, dir)...)
	}
	for _, m := range nestedModules {
		_, err := fs.Stat(t.fsys, m.dir)
		if !slices.Contains(found, m.dir) && (m.wanted || err == nil) {
			bad = append(bad, fmt.Sprintf("%s/go.mod is missing: its packages would become the root module's", m.dir))
		}
	}
	return append(bad, checkWork(t.fsys, found)...)
}

// modFiles returns the folders below the root that have a go.mod.
func modFiles(fsys fs.FS) (dirs []string, err error) {
	err = fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.Name() == "go.mod" && p != "go.mod":
			dirs = append(dirs, path.Dir(p))
		}
		return nil
	})
	return dirs, err
}

// checkNested looks at one nested go.mod.
func checkNested(fsys fs.FS, dir string) (bad []string) {
	src, err := fs.ReadFile(fsys, dir+"/go.mod")
	if err != nil {
		return []string{err.Error()}
	}
	if m := moduleLine.FindSubmatch(src); m == nil || string(m[1]) != module+"/"+dir {
		bad = append(bad, fmt.Sprintf("%s/go.mod: the module is not named %s/%s", dir, module, dir))
	}
	replaced := map[string]string{}
	for _, m := range replaceLine.FindAllSubmatch(src, -1) {
		replaced[string(m[1])] = path.Join(dir, string(m[2]))
	}
	for _, m := range ownRequire.FindAllSubmatch(src, -1) {
		name := string(m[1])
		if want, _ := local(name); replaced[name] != want {
			bad = append(bad, fmt.Sprintf("%s/go.mod: %s is required and not replaced by this tree's", dir, name))
		}
	}
	return bad
}

// checkWork: go.work lists the root and the modules that belong there.
func checkWork(fsys fs.FS, found []string) (bad []string) {
	src, err := fs.ReadFile(fsys, "go.work")
	if err != nil {
		return []string{err.Error()}
	}
	var got []string
	for _, m := range useLine.FindAllSubmatch(src, -1) {
		got = append(got, path.Clean(string(m[1])))
	}
	want := []string{"."}
	for _, m := range nestedModules {
		if m.work && slices.Contains(found, m.dir) {
			want = append(want, m.dir)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		bad = append(bad, fmt.Sprintf("go.work uses %v, want %v", got, want))
	}
	return bad
}
