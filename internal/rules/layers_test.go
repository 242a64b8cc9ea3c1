package rules

import (
	"slices"
	"strings"
)

// pure maps each pure package to the packages of ours that it may import.
var pure = map[string][]string{
	"limit":             nil,
	"internal/hist":     nil,
	"internal/theory":   nil,
	"admission":         {"limit", "internal/hist", "internal/theory"},
	"internal/attempts": nil,
	"internal/rivals":   {"limit"},
	"internal/sim":      {"admission", "limit", "internal/attempts", "internal/hist", "internal/theory"},
	"internal/plan":     {"admission", "limit", "internal/hist", "internal/theory", "internal/sim"},
}

func isPure(dir string) bool {
	_, ok := pure[dir]
	return ok
}

// purePackages returns their folders, sorted.
func purePackages() []string {
	var dirs []string
	for d := range pure {
		dirs = append(dirs, d)
	}
	slices.Sort(dirs)
	return dirs
}

// small is the part of the standard library that is arithmetic on its arguments.
// Package maps is not: it hands out the random order of a map.
var small = []string{
	"bytes", "cmp", "container/heap", "errors", "fmt", "iter", "math", "math/bits", "math/rand/v2",
	"slices", "sort", "strconv", "strings", "time", "unicode/utf8",
}

// runtimeImports are what package goodput stands on.
var runtimeImports = []string{"admission", "limit", "internal/hist"}

// adapters maps each adapter to what it may import beside package goodput. A
// client of a protocol may hand its retries to package retry, which brings a clock to
// what decides about them. An exporter shows a histogram bucket by bucket, and what retries
// and shares of a fleet count.
var adapters = map[string][]string{
	"goodputhttp": {"retry"},
	"goodputgrpc": {"retry"},
	"goodputsql":  nil,
	"goodputprom": {"internal/hist", "retry", "fleet"},
	"goodputotel": nil,
	"pool":        nil,
	"pressure":    nil,
	"fleet":       nil,
	"retry":       {"internal/attempts"},
}

// adapterOf returns the adapter that a folder belongs to.
func adapterOf(dir string) (name string, ok bool) {
	first, _, _ := strings.Cut(dir, "/")
	_, ok = adapters[first]
	return first, ok
}

// program is where the command lives, and its packages.
const program = "cmd/goodput"

// programImports lists the imports among the packages of the program that are
// wanted, "from > to", with the reason. Whatever is not here goes through main.
var programImports = map[string]string{
	"config > flags":      "a size and an address in a file are written as in a flag",
	"config > keys":       "a schema says what a file may have",
	"keys > strictyaml":   "a range is said as in an error",
	"policy > keys":       "the limiter part of the schema",
	"config > policy":     "a class has a limiter, which a file describes as a scenario does",
	"config > strictyaml": "a policy file is a file",
	"listen > config":     "what to listen on",
	"proxy > config":      "what to do",
	"proxy > policy":      "whether a limit is a number",
	"proxy > upstream":    "the way to the servers",
	"upstream > config":   "which servers",

	"admin > build":      "the version is a page",
	"admin > dashboard":  "the live page is a page",
	"admin > live":       "its events are those of the listener, with the state that it answers",
	"admin > metrics":    "the metrics are a page",
	"dashboard > uplot":  "it draws the charts",
	"demo > load":        "its arrivals are the generator's",
	"metrics > build":    "the version is a metric",
	"replay > accesslog": "a log is what it plays",
	"report > uplot":     "it draws the charts",
	"verify > load":      "what it offers is the generator's",
	"verify > uplot":     "its page draws charts",

	"builtin > strictyaml":  "a name that is not known is said as in a file",
	"policy > strictyaml":   "the limiter part of a file",
	"scenario > flags":      "a size in a criterion is written as in a flag",
	"scenario > policy":     "a scenario embeds the policy",
	"scenario > strictyaml": "a scenario is a file",
	"strictyaml > flags":    "a size in a file is written as in a flag",
	"topology > strictyaml": "a topology is a file",
}

// others are the remaining packages of the root module, with the reason to be.
var others = map[string]string{
	"internal/rules":   "tests of the source itself",
	"internal/mutants": "tests of the tests",

	"conformance": "what any limiter must do, for whoever writes one: of ours it knows nothing",
}

// checkPureImports: a pure package imports arithmetic and purer packages.
func checkPureImports(t *tree) (bad []string) {
	for _, f := range t.code(isPure) {
		for _, s := range f.Imports {
			p := imported(s)
			dir, ours := local(p)
			switch {
			case s.Name != nil && (s.Name.Name == "." || s.Name.Name == "_"):
				bad = append(bad, t.say(s.Pos(), "a pure package imports %q as %q: say the name", p, s.Name.Name))
			case ours && !slices.Contains(pure[f.dir], dir):
				bad = append(bad, t.say(s.Pos(), "%s is pure and may not import %s", f.dir, p))
			case !ours && !slices.Contains(small, p):
				bad = append(bad, t.say(s.Pos(), "%s is pure and may not import %q", f.dir, p))
			}
		}
	}
	return bad
}

// checkRuntimeImports: goodput imports the core and the standard library.
func checkRuntimeImports(t *tree) (bad []string) {
	for _, f := range t.code(func(dir string) bool { return dir == "." }) {
		for _, s := range f.Imports {
			if dir, ours := local(imported(s)); ours && !slices.Contains(runtimeImports, dir) {
				bad = append(bad, t.say(s.Pos(), "package goodput may not import %s: it is above or beside it", imported(s)))
			}
		}
	}
	return bad
}

// checkAdapterImports: an adapter sees package goodput and nothing else of ours.
func checkAdapterImports(t *tree) (bad []string) {
	for _, f := range t.code(func(string) bool { return true }) {
		name, ok := adapterOf(f.dir)
		if !ok {
			continue
		}
		for _, s := range f.Imports {
			dir, ours := local(imported(s))
			if !ours || dir == "." || within(dir, name) || slices.Contains(adapters[name], dir) {
				continue
			}
			bad = append(bad, t.say(s.Pos(), "adapter %s may not import %s: adapters know package goodput only", name, imported(s)))
		}
	}
	return bad
}

// checkProgramImports: the program's packages meet in main alone, and nothing
// imports the program.
func checkProgramImports(t *tree) (bad []string) {
	const prefix = program + "/internal/"
	for _, f := range t.code(func(string) bool { return true }) {
		from, inside := strings.CutPrefix(f.dir, prefix)
		from, _, _ = strings.Cut(from, "/")
		for _, s := range f.Imports {
			dir, ours := local(imported(s))
			if !ours || !within(dir, program) {
				continue
			}
			to := strings.TrimPrefix(dir, prefix)
			to, _, _ = strings.Cut(to, "/")
			switch {
			case !within(f.dir, program):
				bad = append(bad, t.say(s.Pos(), "%s may not import the program", f.dir))
			case inside && to != from && programImports[from+" > "+to] == "":
				bad = append(bad, t.say(s.Pos(), "%s may not import %s: main wires them", f.dir, dir))
			}
		}
	}
	return bad
}

// checkRootImports: the root module stands on the standard library, its tests
// included, so that it drags nothing into whoever imports it.
func checkRootImports(t *tree) (bad []string) {
	for _, f := range t.files {
		if nested(f.dir) != "" {
			continue
		}
		for _, s := range f.Imports {
			if p := imported(s); !standard(p) {
				if _, ours := local(p); !ours {
					bad = append(bad, t.say(s.Pos(), "the root module may not import %q: it requires nothing", p))
				}
			}
		}
	}
	return bad
}

// checkPlaced: every package of the root module is in one of the tables above.
func checkPlaced(t *tree) (bad []string) {
	seen := map[string]bool{}
	for _, f := range t.code(func(dir string) bool { return nested(dir) == "" }) {
		_, adapter := adapterOf(f.dir)
		if seen[f.dir] || f.dir == "." || isPure(f.dir) || adapter || others[f.dir] != "" {
			continue
		}
		seen[f.dir] = true
		bad = append(bad, t.say(f.Package, "package %s has no layer: give it one in layers_test.go, with the reason", f.dir))
	}
	return bad
}
