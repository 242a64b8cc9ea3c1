package rules

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// A rule finds what breaks it in a tree.
type rule struct {
	name  string
	check func(*tree) []string

	// broken are trees that break the rule, each a list of "path: source", with
	// a piece of the sentence that must say so.
	broken []breach

	// fine is a tree near the edge, on the allowed side.
	fine []string
}

type breach struct {
	tree []string
	says string
}

var table = []rule{
	{
		name:  "pure packages import arithmetic and purer packages",
		check: checkPureImports,
		broken: []breach{
			{[]string{`admission/a.go: package admission; import "sync"`}, `may not import "sync"`},
			{[]string{`admission/a.go: package admission; import "context"`}, `may not import "context"`},
			{[]string{`admission/a.go: package admission; import "maps"`}, `may not import "maps"`},
			{[]string{`limit/a.go: package limit; import _ "math"`}, `say the name`},
			{[]string{`limit/a.go: package limit; import "` + module + `/admission"`}, `limit is pure and may not import`},
			{[]string{`internal/sim/a.go: package sim; import "` + module + `"`}, `internal/sim is pure and may not import`},
			{[]string{`internal/plan/a.go: package plan; import "` + module + `/goodputhttp"`}, `may not import`},
		},
		fine: []string{
			`admission/a.go: package admission; import ("time"; "` + module + `/limit")`,
			`admission/a_test.go: package admission; import "sync"`,
		},
	},
	{
		name:  "goodput imports the core and the standard library",
		check: checkRuntimeImports,
		broken: []breach{
			{[]string{`a.go: package goodput; import "` + module + `/goodputhttp"`}, `may not import`},
			{[]string{`a.go: package goodput; import "` + module + `/internal/sim"`}, `may not import`},
		},
		fine: []string{
			`a.go: package goodput; import ("sync"; "` + module + `/admission")`,
			`a_test.go: package goodput_test; import "` + module + `/goodputhttp"`,
		},
	},
	{
		name:  "adapters import goodput",
		check: checkAdapterImports,
		broken: []breach{
			{[]string{`goodputhttp/a.go: package goodputhttp; import "` + module + `/admission"`}, `goodputhttp may not import`},
			{[]string{`pool/sub/a.go: package sub; import "` + module + `/fleet"`}, `pool may not import`},
			{[]string{`goodputsql/a.go: package goodputsql; import "` + module + `/retry"`}, `goodputsql may not import`},
		},
		fine: []string{
			`goodputhttp/a.go: package goodputhttp; import ("` + module + `"; "` + module + `/retry"; "` + module + `/goodputhttp/internal/x")`,
		},
	},
	{
		name:  "packages of the program meet in main",
		check: checkProgramImports,
		broken: []breach{
			{[]string{`cmd/goodput/internal/proxy/a.go: package proxy; import "` + module + `/cmd/goodput/internal/admin"`}, `main wires them`},
			{[]string{`fleet/a.go: package fleet; import "` + module + `/cmd/goodput/internal/admin"`}, `may not import the program`},
		},
		fine: []string{
			`cmd/goodput/a.go: package main; import "` + module + `/cmd/goodput/internal/admin"`,
			`cmd/goodput/internal/proxy/a.go: package proxy; import "` + module + `/cmd/goodput/internal/proxy/wire"`,
		},
	},
	{
		name:  "the root module imports the standard library",
		check: checkRootImports,
		broken: []breach{
			{[]string{`fleet/a_test.go: package fleet; import "golang.org/x/sync/errgroup"`}, `may not import "golang.org/x/sync/errgroup"`},
		},
		fine: []string{`bench/a.go: package bench; import "golang.org/x/sync/semaphore"`},
	},
	{
		name:   "every package of the root module has a layer",
		check:  checkPlaced,
		broken: []breach{{[]string{`internal/misc/a.go: package misc`}, `package internal/misc has no layer`}},
		fine:   []string{`retry/a.go: package retry`, `internal/misc/a_test.go: package misc`},
	},
	{
		name:  "of time only durations, of rand only seeds, nothing printed",
		check: checkPureNames,
		broken: []breach{
			{[]string{`admission/a.go: package admission; import "time"; var t = time.Now()`}, `time.Now in a pure package`},
			{[]string{`admission/a.go: package admission; import clock "time"; type c struct{ at clock.Time }`}, `time.Time in a pure package`},
			{[]string{`limit/a.go: package limit; import "math/rand/v2"; var n = rand.IntN(3)`}, `rand.IntN in a pure package`},
			{[]string{`limit/a.go: package limit; import "fmt"; func f() { fmt.Println() }`}, `fmt.Println in a pure package`},
		},
		fine: []string{
			`limit/a.go: package limit; import ("math/rand/v2"; "time"); func f(r *rand.Rand, d time.Duration) bool { return d.Seconds() > float64(3*time.Second) && r.IntN(2) == 0 }`,
			`a.go: package goodput; import "time"; var t = time.Now()`,
		},
	},
	{
		name:  "pure packages start nothing and wait for nothing",
		check: checkPureSyntax,
		broken: []breach{
			{[]string{`admission/a.go: package admission; func f() { go f() }`}, `a go statement`},
			{[]string{`admission/a.go: package admission; type t struct{ c chan int }`}, `a channel type`},
			{[]string{`admission/a.go: package admission; func f[C ~[]int](c C) { select {} }`}, `a select`},
			{[]string{`limit/a.go: package limit; func f(c T) { c <- 1 }`}, `a send`},
			{[]string{`limit/a.go: package limit; func f(c T) { <-c }`}, `a receive`},
		},
		fine: []string{`admission/a.go: package admission; func f() { defer f() }`, `a.go: package goodput; var c chan int`},
	},
	{
		name:  "pure packages loop in one order",
		check: checkPureRange,
		broken: []breach{
			{[]string{`admission/a.go: package admission; type set map[int]bool; func f(s set) { for range s { } }`}, `a loop over a map`},
			{[]string{
				`limit/a.go: package limit; var Laws = map[string]int{}`,
				`admission/a.go: package admission; import "` + module + `/limit"; func f() { for range limit.Laws { } }`,
			}, `admission/a.go:1: a loop over a map`},
			{[]string{`admission/a.go: package admission; func f(c <-chan int) { for range c { } }`}, `a loop over a channel`},
			{[]string{`admission/a.go: package admission; var x int = "no"`}, `cannot use`},
		},
		fine: []string{`admission/a.go: package admission; func f(m map[int][]int, n int) int { for range m[3] { n++ }; for range n { }; return len(m) }`},
	},
	{
		name:  "files and functions stay readable",
		check: checkSize,
		broken: []breach{
			{[]string{"fleet/a.go: package fleet" + strings.Repeat("\n", maxFile+1)}, `501 lines, at most 500`},
			{[]string{"fleet/a.go: package fleet; func f() {" + strings.Repeat("\n", maxFunc) + "}"}, `f has 71 lines, at most 70`},
		},
		fine: []string{
			"fleet/a.go: package fleet; func f() {" + strings.Repeat("\n", maxFunc-1) + "}" + strings.Repeat("\n", maxFile-maxFunc+1),
			"fleet/a_test.go: package fleet; func f() {" + strings.Repeat("\n", maxFile+1) + "}",
		},
	},
	{
		name:  "words",
		check: checkWords,
		broken: []breach{
			{[]string{`pool/a.go: package pool; type PoolManager struct{}`}, `exported PoolManager: "manager"`},
			{[]string{`pool/a.go: package pool; func (p *pool) ReleasePermits() {}`}, `exported ReleasePermits: "permit"`},
			{[]string{`pool/a.go: package pool; type T struct{ HTTPGate int }`}, `exported HTTPGate: "gate"`},
			{[]string{`pool/a.go: package pool; type T interface{ Token() }`}, `exported Token: "token"`},
			{[]string{`pool/a.go: package pool; const MaxChain = 3`}, `exported MaxChain: "chain"`},
			{[]string{`pool/str_utils.go: package pool`}, `file str_utils: "util"`},
			{[]string{`internal/common/a.go: package common`}, `package common: "common"`},
		},
		fine: []string{
			`pool/a.go: package pool; type Aggregate struct{ token, Delegate int }; func manager() {}`,
			`fleet/a.go: package fleet; type Token struct{}`,
			`retry/a.go: package retry; type LeaseToken struct{}`,
		},
	},
	{
		name:  "tests do not sleep",
		check: checkSleep,
		broken: []breach{
			{[]string{`pool/a_test.go: package pool; import "time"; func f() { time.Sleep(1) }`}, `a test sleeps on the wall clock`},
			{[]string{"pool/a_test.go: package pool; import \"time\"; func f() {\n// wall clock: \ntime.Sleep(1) }"}, `a test sleeps on the wall clock`},
		},
		fine: []string{
			`pool/a_test.go: package pool; import ("testing/synctest"; "time"); func f() { synctest.Wait(); time.Sleep(1) }`,
			"pool/b_test.go: package pool; import \"time\"; func f() {\n// wall clock: the kernel closes the socket\ntime.Sleep(1) }",
			`bench/a_test.go: package bench; import "time"; func f() { time.Sleep(1) }`,
		},
	},
	{
		name:  "modules",
		check: checkModules,
		broken: []breach{
			{modules("go.mod: module " + module + "\nrequire golang.org/x/sync v0.25.0\n"), `has a require line`},
			{modules("go.mod: module " + module + "\nrequire (\n\tgolang.org/x/sync v0.25.0\n)\n"), `has a require line`},
			{modules("bench/go.mod: "), `not named`},
			{modules("bench/go.mod: module " + module + "/bench\nrequire " + module + " v0.0.0\n"), `not replaced`},
			{modules("bench/go.mod: module " + module + "/bench\nrequire (\n\t" + module + " v0.0.0\n)\nreplace " + module + " => ./\n"), `not replaced`},
			{modules("extra/go.mod: module " + module + "/extra\n"), `extra/go.mod: this module is not in`},
			{modules("e2e/a_test.go: package e2e"), `e2e/go.mod is missing`},
			{modules("go.work: use ."), `go.work uses`},
			{modules("go.work: use (\n\t.\n\t./bench\n\t./cmd/goodput\n)\n"), `go.work uses`},
			{modules("goodputprom/go.mod: module " + module + "/goodputprom\n"), `go.work uses`},
			{[]string{"go.mod: module " + module, "go.work: use ."}, `tools/go.mod is missing`},
		},
		fine: modules("cmd/goodput/go.mod: module " + module + "/cmd/goodput\nrequire (\n\t" + module + " v0.0.0\n)\nreplace " + module + " => ../..\n"),
	},
}

// modules is a repository that is in order, with some files replaced.
func modules(replaced ...string) []string {
	return append([]string{
		"go.mod: module " + module + "\n\ngo 1.25.0\n",
		"go.work: go 1.26.0\n\nuse (\n\t.\n\t./cmd/goodput\n)\n",
		"bench/go.mod: module " + module + "/bench\n",
		"cmd/goodput/go.mod: module " + module + "/cmd/goodput\n",
		"tools/go.mod: module " + module + "/tools\n",
	}, replaced...)
}

// inMemory loads a tree from "path: source" lines; a later one replaces an
// earlier one of the same path.
func inMemory(t *testing.T, lines []string) *tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, l := range lines {
		path, src, ok := strings.Cut(l, ": ")
		if !ok {
			t.Fatalf("%q is not \"path: source\"", l)
		}
		fsys[path] = &fstest.MapFile{Data: []byte(src)}
	}
	tr, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestRepository(t *testing.T) {
	tr, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.files) < 10 {
		t.Fatalf("only %d Go files found: this is not the repository", len(tr.files))
	}
	for _, r := range table {
		t.Run(r.name, func(t *testing.T) {
			for _, v := range r.check(tr) {
				t.Error(v)
			}
		})
	}
	for _, f := range tr.files {
		if f.test && f.lines > maxFile {
			t.Logf("%s has %d lines: a test, so only a question", f.path, f.lines)
		}
	}
}

func TestEachRuleCanFail(t *testing.T) {
	for _, r := range table {
		t.Run(r.name, func(t *testing.T) {
			for _, b := range r.broken {
				got := r.check(inMemory(t, b.tree))
				if len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), b.says) {
					t.Errorf("%q:\n got  %q\n want %q", b.tree, got, b.says)
				}
			}
			for _, v := range r.check(inMemory(t, r.fine)) {
				t.Errorf("the rule refuses what it allows: %s", v)
			}
			if len(r.broken) == 0 || len(r.fine) == 0 {
				t.Error("a rule without both examples is not tested")
			}
		})
	}
}
