package rules

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxFile and maxFunc are lines. A file of 500 has two ideas in it; a
	// function of 70 does not fit a screen.
	maxFile = 500
	maxFunc = 70
)

// longFuncs are the functions that may be longer, with the reason.
var longFuncs = map[string]string{}

// checkSize: files and functions that are no tests stay readable.
func checkSize(t *tree) (bad []string) {
	for _, f := range t.code(func(string) bool { return true }) {
		if f.lines > maxFile {
			bad = append(bad, t.say(f.FileStart, "%d lines, at most %d", f.lines, maxFile))
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1; n > maxFunc && longFuncs[f.path+" "+fn.Name.Name] == "" {
				bad = append(bad, t.say(fn.Pos(), "%s has %d lines, at most %d", fn.Name.Name, n, maxFunc))
			}
		}
	}
	return bad
}

// banned are words that this project does not use for what it exports: each has
// a better one (a slot is not a permit), or says nothing.
var banned = []string{
	"permit", "token", "gate", "guard", "manager", "engine", "executor", "chain", "strategy",
	"helper", "util", "common",
}

// checkWords: no banned word in an exported name, a package or a file.
func checkWords(t *tree) (bad []string) {
	for _, f := range t.code(func(string) bool { return true }) {
		say := func(pos token.Pos, kind, name string) {
			if w := bannedIn(name, f.dir); w != "" {
				bad = append(bad, t.say(pos, "%s %s: %q is not a word of this project", kind, name, w))
			}
		}
		say(f.Package, "package", f.Name.Name)
		say(f.FileStart, "file", strings.TrimSuffix(path.Base(f.path), ".go"))
		for _, id := range exported(f.File) {
			say(id.Pos(), "exported", id.Name)
		}
	}
	return bad
}

// bannedIn returns the banned word in a name. A lease is a token.
func bannedIn(name, dir string) string {
	words := split(name)
	for _, w := range words {
		w = strings.TrimSuffix(w, "s")
		if w == "token" && (within(dir, "fleet") || slices.Contains(words, "lease")) {
			continue
		}
		if slices.Contains(banned, w) {
			return w
		}
	}
	return ""
}

// split returns the words of a name in lower case: "HTTPGate_util" is http,
// gate, util.
func split(name string) []string {
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		begins := unicode.IsUpper(c) && i > 0 &&
			(!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1]))
		if begins || c == '_' || c == '-' {
			b.WriteByte(' ')
		}
		if c != '_' && c != '-' {
			b.WriteRune(unicode.ToLower(c))
		}
	}
	return strings.Fields(b.String())
}

// exported returns the exported names that f declares: types, functions,
// methods, constants, variables, fields and methods of interfaces.
func exported(f *ast.File) (ids []*ast.Ident) {
	add := func(names ...*ast.Ident) {
		for _, id := range names {
			if id.IsExported() {
				ids = append(ids, id)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					add(s.Names...)
				case *ast.TypeSpec:
					add(s.Name)
					ast.Inspect(s.Type, func(n ast.Node) bool {
						if field, ok := n.(*ast.Field); ok {
							add(field.Names...)
						}
						return true
					})
				}
			}
		}
	}
	return ids
}

// sleepNote marks a sleep in a test that cannot be had otherwise, on its line or
// the one above, followed by the reason: "// wall clock: the kernel's timeout".
const sleepNote = "// wall clock: "

// checkSleep: a test waits for what it waits for, on a fake clock if it must
// wait. The tests of the program run processes and sockets, e2e runs services,
// bench runs rivals: those have no fake clock.
func checkSleep(t *tree) (bad []string) {
	for _, f := range t.files {
		real := within(f.dir, program) || within(f.dir, "e2e") || within(f.dir, "bench")
		if !f.test || real || f.name("testing/synctest") != "" {
			continue
		}
		noted := map[int]bool{}
		for _, g := range f.Comments {
			for _, c := range g.List {
				if len(c.Text) > len(sleepNote) && strings.HasPrefix(c.Text, sleepNote) {
					line := t.fset.Position(c.Pos()).Line
					noted[line], noted[line+1] = true, true
				}
			}
		}
		f.uses("time", func(s *ast.SelectorExpr) {
			if s.Sel.Name == "Sleep" && !noted[t.fset.Position(s.Pos()).Line] {
				bad = append(bad, t.say(s.Pos(), "a test sleeps on the wall clock: use testing/synctest, or say why with %q", sleepNote))
			}
		})
	}
	return bad
}
