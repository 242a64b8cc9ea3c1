package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// some stands for the part of a message that is no literal.
const some = "…"

// The tables of docs/logs.md have every message that the source of the program writes to its
// log, and no other.
func TestMessagesAreInTheDocs(t *testing.T) {
	written := map[string]string{}
	files := map[string][]*ast.File{} // by directory
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		files[filepath.Dir(path)] = append(files[filepath.Dir(path)], f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range files {
		values := literals(all)
		for _, f := range all {
			ast.Inspect(f, func(n ast.Node) bool {
				if m := message(n); m != nil {
					for _, text := range texts(m, values) {
						written[text] = set.Position(n.Pos()).String()
					}
				}
				return true
			})
		}
	}
	delete(written, some) // a sentence that was made elsewhere
	if len(written) < 25 {
		t.Errorf("%d messages were found: the search is not to be trusted", len(written))
	}

	told := map[string]bool{}
	page := pages(t)[filepath.Join(docs, "logs.md")]
	for _, table := range strings.Split(page, "| message | when |\n")[1:] {
		table, _, _ = strings.Cut(table, "\n\n")
		for line := range strings.Lines(table) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				told[m[1]] = true
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(written)) {
		if !told[m] {
			t.Errorf("%s: docs/logs.md does not have the message %q", written[m], m)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(told)) {
		if written[m] == "" {
			t.Errorf("docs/logs.md has the message %q, which the program never writes", m)
		}
	}
}

// message is the argument of a call that is the message of a line of the log; nil: n is none. What
// has the methods of a logger is called log here, wherever it is.
func message(n ast.Node) ast.Expr {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || name(of.X) != "log" {
		return nil
	}
	switch of.Sel.Name {
	case "Debug", "Info", "Warn", "Error":
		return call.Args[0]
	case "Log": // a context and a level first
		return call.Args[2]
	}
	return nil
}

// name is the last word of an identifier or of a field.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literals are the texts that variables and fields of a package are given, by their name.
func literals(files []*ast.File) map[string][]string {
	all := map[string][]string{}
	add := func(to, value ast.Expr) {
		if text := texts(value, nil); len(text) == 1 && text[0] != some && text[0] != "" {
			all[name(to)] = append(all[name(to)], text[0])
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				add(n.Key, n.Value)
			case *ast.AssignStmt:
				for i := range min(len(n.Lhs), len(n.Rhs)) {
					add(n.Lhs[i], n.Rhs[i])
				}
			case *ast.ValueSpec:
				for i := range min(len(n.Names), len(n.Values)) {
					add(n.Names[i], n.Values[i])
				}
			}
			return true
		})
	}
	return all
}

// texts are what e may be.
func texts(e ast.Expr, values map[string][]string) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return []string{text}
		}
	case *ast.BinaryExpr:
		var all []string
		for _, a := range texts(e.X, values) {
			for _, b := range texts(e.Y, values) {
				all = append(all, a+b)
			}
		}
		return all
	case *ast.Ident, *ast.SelectorExpr:
		if all := values[name(e)]; all != nil {
			return all
		}
	}
	return []string{some}
}
