package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/goodput/goodput"

// A tree is the source of the repository, nested modules included.
type tree struct {
	fsys  fs.FS
	fset  *token.FileSet
	files []*file
	std   types.Importer
}

// A file is one Go file.
type file struct {
	*ast.File
	path  string // slashes, relative to the root
	dir   string // "." for the root
	test  bool
	lines int
	skip  bool // a build constraint leaves it out here
}

// load parses every Go file of fsys but those in testdata and hidden folders.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fsys: fsys, fset: token.NewFileSet(), std: importer.Default()}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != "." && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		a, err := parser.ParseFile(t.fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		t.files = append(t.files, &file{
			File: a, path: p, dir: path.Dir(p), skip: excluded(a),
			test:  strings.HasSuffix(name, "_test.go"),
			lines: bytes.Count(src, []byte("\n")),
		})
		return nil
	})
	return t, err
}

// excluded reports whether a build constraint leaves the file out of a plain
// build on this machine.
func excluded(f *ast.File) bool {
	for _, g := range f.Comments {
		for _, c := range g.List {
			if x, err := constraint.Parse(c.Text); err == nil && c.Pos() < f.Package {
				return !x.Eval(func(tag string) bool {
					return tag == runtime.GOOS || tag == runtime.GOARCH || tag == "unix" || strings.HasPrefix(tag, "go1.")
				})
			}
		}
	}
	return false
}

// say is a violation at a position.
func (t *tree) say(pos token.Pos, format string, args ...any) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}

// code returns the files that are no tests, in the folders for which in is true.
func (t *tree) code(in func(dir string) bool) []*file {
	var out []*file
	for _, f := range t.files {
		if !f.test && in(f.dir) {
			out = append(out, f)
		}
	}
	return out
}

// within reports whether dir is root or below it.
func within(dir, root string) bool {
	return dir == root || root == "." || strings.HasPrefix(dir, root+"/")
}

// local returns the folder of an import path of this repository.
func local(importPath string) (dir string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// standard reports whether an import path is of the standard library: its first
// element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// imported returns the path of an import.
func imported(s *ast.ImportSpec) string {
	p, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		panic(err) // the parser took it
	}
	return p
}

// name returns the identifier by which f knows the package with this path, or "".
func (f *file) name(importPath string) string {
	for _, s := range f.Imports {
		switch {
		case imported(s) != importPath:
		case s.Name != nil:
			return s.Name.Name
		default:
			base := path.Base(importPath)
			if base == "v2" {
				base = path.Base(path.Dir(importPath))
			}
			return base
		}
	}
	return ""
}

// uses calls each for every name that f takes from a package.
func (f *file) uses(importPath string, each func(s *ast.SelectorExpr)) {
	name := f.name(importPath)
	if name == "" {
		return
	}
	ast.Inspect(f.File, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
				each(s)
			}
		}
		return true
	})
}

// A checker type-checks packages of the tree from source and takes the standard
// library from the compiler's export data.
type checker struct {
	t    *tree
	info *types.Info
	done map[string]*types.Package
}

// Import is called by go/types.
func (c *checker) Import(importPath string) (*types.Package, error) {
	dir, ok := local(importPath)
	if !ok {
		return c.t.std.Import(importPath)
	}
	if p := c.done[dir]; p != nil {
		return p, nil
	}
	var files []*ast.File
	for _, f := range c.t.code(func(d string) bool { return d == dir }) {
		if !f.skip {
			files = append(files, f.File)
		}
	}
	conf := types.Config{Importer: c}
	p, err := conf.Check(importPath, c.t.fset, files, c.info)
	c.done[dir] = p
	return p, err
}

// typesOf returns the type of every expression in the given folders.
func (t *tree) typesOf(dirs []string) (map[ast.Expr]types.TypeAndValue, error) {
	c := &checker{t: t, done: map[string]*types.Package{}, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	for _, d := range dirs {
		if !slices.ContainsFunc(t.files, func(f *file) bool { return f.dir == d && !f.test }) {
			continue
		}
		if _, err := c.Import(module + "/" + d); err != nil {
			return nil, err
		}
	}
	return c.info.Types, nil
}
