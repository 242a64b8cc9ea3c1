package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// durations are what a pure package may take from package time.
var durations = []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// seeded are what a pure package may take from math/rand/v2: generators that are
// handed in or start from a seed. The functions of the package draw from a
// source that no seed repeats.
var seeded = []string{"Rand", "Source", "New", "PCG", "NewPCG", "ChaCha8", "NewChaCha8", "Zipf", "NewZipf"}

// checkPureNames: of time only durations, of rand only seeded generators, and
// nothing is printed.
func checkPureNames(t *tree) (bad []string) {
	for _, f := range t.code(isPure) {
		f.uses("time", func(s *ast.SelectorExpr) {
			if !slices.Contains(durations, s.Sel.Name) {
				bad = append(bad, t.say(s.Pos(), "time.%s in a pure package: time is an argument", s.Sel.Name))
			}
		})
		f.uses("math/rand/v2", func(s *ast.SelectorExpr) {
			if !slices.Contains(seeded, s.Sel.Name) {
				bad = append(bad, t.say(s.Pos(), "rand.%s in a pure package: randomness is a *rand.Rand handed in", s.Sel.Name))
			}
		})
		f.uses("fmt", func(s *ast.SelectorExpr) {
			if n := s.Sel.Name; strings.HasPrefix(n, "Print") || strings.HasPrefix(n, "Scan") {
				bad = append(bad, t.say(s.Pos(), "fmt.%s in a pure package: it returns, it does not perform", n))
			}
		})
	}
	return bad
}

// checkPureSyntax: nothing that waits or runs beside.
func checkPureSyntax(t *tree) (bad []string) {
	for _, f := range t.code(isPure) {
		ast.Inspect(f.File, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "a go statement"
			case *ast.ChanType:
				what = "a channel type"
			case *ast.SendStmt:
				what = "a send"
			case *ast.SelectStmt:
				what = "a select"
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					what = "a receive"
				}
			}
			if what != "" {
				bad = append(bad, t.say(n.Pos(), "%s in a pure package: it decides and never waits", what))
			}
			return true
		})
	}
	return bad
}

// checkPureRange: no loop over a map, whose order differs from run to run, and
// none over a channel.
func checkPureRange(t *tree) (bad []string) {
	typed, err := t.typesOf(purePackages())
	if err != nil {
		return []string{err.Error()}
	}
	for _, f := range t.code(isPure) {
		ast.Inspect(f.File, func(n ast.Node) bool {
			r, ok := n.(*ast.RangeStmt)
			if !ok || typed[r.X].Type == nil {
				return true
			}
			switch typed[r.X].Type.Underlying().(type) {
			case *types.Map:
				bad = append(bad, t.say(r.Pos(), "a loop over a map in a pure package: its order is random"))
			case *types.Chan:
				bad = append(bad, t.say(r.Pos(), "a loop over a channel in a pure package: it decides and never waits"))
			}
			return true
		})
	}
	return bad
}
