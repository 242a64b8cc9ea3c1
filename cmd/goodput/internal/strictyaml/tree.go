package strictyaml

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A tree is a value of the file: what the parser's syntax tree says, and no more.
type tree struct {
	kind kind
	at   position
	path []string // keys from the root, and the numbers of items, from 1

	text   string // of a scalar
	quoted bool   // it was written as text, so it is no number
	keys   []*key // of a mapping, in the order of the file
	items  []*tree
}

type key struct {
	name  string
	at    position
	value *tree
	asked bool // somebody knows this key
}

type kind uint8

const (
	null kind = iota
	scalar
	mapping
	list
)

func (k kind) String() string {
	return [...]string{"nothing", "a value", "a mapping", "a list"}[k]
}

// parse fills f.root. The library is recovered from, since it reads what anybody
// wrote and a panic in it is one more sentence.
func (f *File) parse(tokens token.Tokens) {
	defer func() {
		if r := recover(); r != nil {
			f.fail(position{}, "this is not YAML: the parser gave up (%v)", r)
		}
	}()
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if syntax := (*yaml.SyntaxError)(nil); errors.As(err, &syntax) {
		p := position{syntax.Token.Position.Line, syntax.Token.Position.Column}
		if deeper, ok := f.tooDeep(p); ok && strings.Contains(syntax.Message, misplacedKey) {
			f.fail(deeper, "this is not YAML: a key where none can be: it is indented deeper than the key above it, which has a value already")
			return
		}
		f.fail(p, "this is not YAML: %s", plain(syntax.Message))
		return
	}
	if err != nil {
		f.fail(position{}, "this is not YAML: %v", err)
		return
	}
	var body ast.Node
	for _, d := range file.Docs {
		switch {
		case d.Body == nil:
		case body != nil:
			f.fail(start(d.Body), "a second document: a file holds one")
			return
		default:
			body = d.Body
		}
	}
	if body == nil {
		f.fail(position{}, "the file is empty: it has comments only")
		return
	}
	f.root = f.build(body, nil)
	if f.root.kind != mapping {
		f.fail(f.root.at, "the file is %s: it has to be keys with values, such as version: 1", f.root.kind)
	}
}

// misplacedKey is how the parser says that a key stands where the text of a value goes on.
const misplacedKey = "mapping value is not allowed"

// tooDeep returns where the key is that the parser took for more of the value that begins at p,
// as text that goes on in the next line does if it is indented. The parser blames the value.
func (f *File) tooDeep(p position) (position, bool) {
	if p.line < 1 || p.line > len(f.lines) {
		return p, false
	}
	above := f.lines[p.line-1]
	if hasKey(above[min(max(p.column-1, 0), len(above)):]) {
		return p, false // a: b: c
	}
	for i := p.line; i < len(f.lines); i++ {
		text := strings.TrimSpace(string(f.lines[i]))
		if text == "" || text[0] == '#' {
			continue
		}
		if indent(f.lines[i]) <= indent(above) {
			break
		}
		if hasKey(f.lines[i]) {
			return position{i + 1, indent(f.lines[i]) + 1}, true
		}
	}
	return p, false
}

// indent is in which column, from 0, the key of a line begins.
func indent(line []rune) int {
	return len(line) - len([]rune(strings.TrimLeft(string(line), " -")))
}

func hasKey(line []rune) bool {
	text, _, _ := strings.Cut(string(line), " #") // a comment
	text = strings.TrimRight(text, " ")
	return strings.Contains(text, ": ") || strings.HasSuffix(text, ":")
}

// sentences translate what the parser says into what a writer did.
var sentences = []struct{ has, say string }{
	{misplacedKey, "a key where none can be: check the indentation, and put text that has \": \" in quotes"},
	{"sequence end token", "the [ is not closed"},
	{"could not find flow mapping end", "the { is not closed"},
	{"could not find flow map content", "the { is not closed"},
	{"could not find end character of", "the quote is not closed"},
	{"non-map value is specified", "no key: every line of a mapping is \"key: value\""},
	{"unexpected key name", "a line without \": \", or with a wrong indentation"},
	{"value is not allowed in this context", "a value where none can be: check the indentation"},
	{"found an invalid key", "keys are words"},
}

func plain(message string) string {
	for _, s := range sentences {
		if strings.Contains(message, s.has) {
			return s.say
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	return message
}

func start(n ast.Node) position {
	t := n.GetToken()
	switch n := n.(type) {
	case *ast.MappingNode:
		if n.IsFlowStyle {
			t = n.Start
		} else if len(n.Values) > 0 {
			t = n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		t = n.Key.GetToken()
	case *ast.SequenceNode:
		t = n.Start
	}
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{t.Position.Line, t.Position.Column}
}

// visible moves a position past the blanks that the parser counts to a value.
func (f *File) visible(at position) position {
	if at.line > len(f.lines) {
		return at
	}
	line := f.lines[at.line-1]
	for at.column >= 1 && at.column < len(line) && (line[at.column-1] == ' ' || line[at.column-1] == '\t') {
		at.column++
	}
	return at
}

func (f *File) build(n ast.Node, path []string) *tree {
	t := &tree{at: f.visible(start(n)), path: path}
	if len(path) > maxDepth {
		f.fail(t.at, "nested more than %d deep", maxDepth)
		return t
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		t.kind = mapping
		f.entries(t, n.Values)
	case *ast.MappingValueNode:
		t.kind = mapping
		f.entries(t, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		t.kind = list
		for i, v := range n.Values {
			t.items = append(t.items, f.build(v, join(path, strconv.Itoa(i+1))))
		}
	case *ast.NullNode:
	case *ast.LiteralNode:
		t.kind, t.text, t.quoted = scalar, n.Value.Value, true
	case ast.ScalarNode:
		t.kind, t.text = scalar, n.GetToken().Value
		typ := n.GetToken().Type
		t.quoted = typ == token.SingleQuoteType || typ == token.DoubleQuoteType
	default:
		f.fail(t.at, "this is not YAML that a file may have (%s)", n.Type())
	}
	return t
}

// entries adds the keys of a mapping and reports those that are there twice.
func (f *File) entries(t *tree, values []*ast.MappingValueNode) {
	first := map[string]*key{}
	for _, v := range values {
		tok := v.Key.GetToken()
		k := &key{name: tok.Value, at: f.visible(start(v))}
		k.value = f.build(v.Value, join(t.path, k.name))
		if k.value.kind == null {
			k.value.at = k.at // an empty value is nowhere; its key is
		}
		if before := first[k.name]; before != nil {
			p := f.fail(k.at, "%s is given twice", k.name)
			p.Other = append(p.Other, Place{before.at.line, before.at.column})
			continue
		}
		first[k.name] = k
		if k.name == "name" {
			f.names[strings.Join(t.path, ".")] = k.value.text
		}
		t.keys = append(t.keys, k)
	}
}

func join(path []string, name string) []string {
	return append(path[:len(path):len(path)], name)
}
