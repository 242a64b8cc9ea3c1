package strictyaml

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// What is no file of ours is refused in one sentence, at its place.
func TestSyntax(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"empty", "", "f: the file is empty"},
		{"blank", " \n\n  \n", "f: the file is empty"},
		{"comments", "# nothing\n", "f: the file is empty: it has comments only"},
		{"begun", "---\n", "f: the file is empty: it has comments only"},
		{"list", "- a\n- b\n", "f:1:1: the file is a list: it has to be keys with values"},
		{"text", "hello world\n", "f:1:1: the file is a value"},
		{"null", "~\n", "f:1:1: the file is nothing"},
		{"binary", "\x7fELF\x02\x01\x00", "f: this is not a text file: a control character in line 1, column 1"},
		{"gzip", "\x1f\x8b\x08", "f: this is not a text file"},
		{"latin-1", "a: caf\xe9\n", "f: this is not a text file: a byte that is not UTF-8 in line 1, column 7"},
		{"UTF-16", "\xff\xfea\x00:\x00", "f: the file is in UTF-16: save it as UTF-8"},
		{"terminal", "a: \x1b[2J\n", "f: this is not a text file: a control character in line 1, column 4"},
		{"right to left", "a: \u202e1\n", "f: this is not a text file"},
		{"large", strings.Repeat("#", MaxBytes+1), "f: the file has 1048577 bytes, at most 1048576 are read"},
		{"tab", "a:\n\tb: 1\n", "f:2:1: a tab in the indentation: YAML allows spaces only\n    2 | \tb: 1\n      | ^"},
		{"tabs", "a:\n\tb: 1\n\tc: 1\n \td: 1\n", "f:2:1: a tab in the indentation of this line and 2 more: YAML allows spaces only\n    2 | \tb: 1\n      | ^"},
		{"tab after spaces", "a:\n  \tb: 1\n", "f:2:3: a tab in the indentation"},
		{"two documents", "a: 1\n---\nb: 2\n", "f:2:1: a second document: a file holds one\n    2 | ---\n      | ^"},
		{"after the end", "a: 1\n...\nb: 2\n", "f:3:1: a second document"},
		{"anchor", "a: &x 1\n", "f:1:4: an anchor (&)"},
		{"alias", "a: *x\n", "f:1:4: an alias (*)"},
		{"merge", "<<: {a: 1}\n", "f:1:1: a merge key (<<)"},
		{"tag", "a: !!int 1\n", "f:1:4: a tag (!)"},
		{"directive", "%YAML 1.2\n---\na: 1\n", "f:1:1: a directive (%)"},
		{"complex key", "? a\n: b\n", "f:1:1: a complex key (?)"},
		{"open list", "a: [1, 2\n", "f:1:4: this is not YAML: the [ is not closed"},
		{"open mapping", "a: {b: 1\n", "this is not YAML: the { is not closed"},
		{"open quote", "a: \"x\n", "f:1:4: this is not YAML: the quote is not closed"},
		{"key in a value", "a: b: c\n", "f:1:4: this is not YAML: a key where none can be"},
		{"key too deep", "a:\n  b: 10\n\n    e: 1\nf: 1\n", "f:4:5: this is not YAML: a key where none can be: it is indented deeper than the key above it, which has a value already\n    4 |     e: 1\n      |     ^"},
		{"key too deep behind a comment", "a:\n  b: 10 # as c: is\n    e: 1\n", "f:3:5: this is not YAML: a value where none can be: check the indentation"},
		{"key too deep in an item", "a:\n  - b: x\n      c: 1\n", "f:3:7: this is not YAML: a key where none can be: it is indented deeper"},
		{"key too deep in a text", "a: x\n  more of it\n  c:\n", "f:3:3: this is not YAML: a key where none can be: it is indented deeper"},
		{"key in a value behind a tab", "a: b:\tc\nd: 1\n", "f:1:4: this is not YAML: a key where none can be: check the indentation"},
		{"key in a value above a deeper line", "a: b: c\n  d: 1\n", "f:1:4: this is not YAML: a key where none can be: check the indentation"},
		{"colon in a text", "a: {b: [http://h:1/x]}\n", "f:1:17: a colon without a space behind it: put the text around it in quotes, or a space behind it"},
		{"colon in an address", "a: {b: [::1]}\n", "f:1:9: a colon without a space"},
		{"no key", "a: 1\nb\n", "f:2:1: this is not YAML: no key"},
		{"deep brackets", "a: " + strings.Repeat("[", 500_000), "nested more than 32 deep"},
		{"deep braces", "a: " + strings.Repeat("{a: ", 9_000), "nested more than 32 deep"},
		{"deep dashes", strings.Repeat("- ", 500_000) + "1", "nested more than 32 deep"},
		{"deep lines", stairs(40), "nested more than 32 deep"},
		{"empty items", "a:\n  -\n  - 1\n", "f:2:3: an item of a list has no value"},
		{"many keys", strings.Repeat("a: 1\n", maxKeys+1), "more than 10000 keys"},
	} {
		f, err := Parse("f", []byte(c.src))
		if err == nil {
			err = f.Err()
		}
		var all *Errors
		if !errors.As(err, &all) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s says\n%s\nwant\n%s", c.name, err, c.want)
		}
		if len(all.Problems) != 1 {
			t.Errorf("%s has %d problems, want one:\n%s", c.name, len(all.Problems), err)
		}
	}
}

// stairs is n mappings, each in the one before it.
func stairs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// What is a file of ours in spite of its looks.
func TestAccepted(t *testing.T) {
	for name, src := range map[string]string{
		"windows":       "a: 1\r\nb: text\r\n",
		"byte order":    "\ufeffa: 1\nb: text\n",
		"begun, ended":  "---\na: 1\nb: text\n...\n",
		"comments":      "# one\na: 1 # two\n\n# three\nb: text\n# four\n",
		"flow":          "{a: 1, b: text}",
		"no newline":    "a: 1\nb: text",
		"quotes":        "a: 1\n'b': \"text\"\n",
		"tab in a line": "a: 1\nb:\ttext\n",
		"folded":        "a: 1\nb: >\n  text\n",
	} {
		f, err := Parse("f", []byte(src))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m := f.Root()
		a, b := m.Get("a").Whole(0, 9), m.Get("b").Text(9)
		m.Done()
		if f.Err() != nil || a != 1 || b != "text" {
			t.Errorf("%s: a %d, b %q, %v", name, a, b, f.Err())
		}
	}
}

// The caret stands below the character that is meant, whatever comes before it.
func TestCaret(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ src, want string }{
		{"a: no", "f:1:4: a \"no\" is not a whole number of 0 to 9\n    1 | a: no\n      |    ^"},
		{"{a:   no}", "    1 | {a:   no}\n      |       ^"},
		{"é: 1\nb: {ü: 1, a: no}", "f:2:1: b is unknown"},
		{"\"b\": {}\na: no", "f:2:4: a"},
		{"a:\tno", "    1 | a:\tno\n      |   \t^"},
		{"{日本語: 1, 😀é: 2, a: no}", "    1 | {日本語: 1, 😀é: 2, a: no}\n      |  \u3000\u3000\u3000     \u3000         ^"}, // as wide as above
		{"a: " + long + " no", "    1 | a: " + long[:97] + "...\n      |    ^"},
		{"a:\n\n  # why\n  no", "f:4:3: a \"no\""},
		{"a: 'no'", "f:1:4: a \"no\" is text"},
		{"a:", "f:1:1: a has no value: a whole number of 0 to 9 is wanted\n    1 | a:\n      | ^"},
		{"a: [1]", "f:1:4: a is a list: a whole number"},
		{"a: {b: 1}", "f:1:4: a is a mapping: a whole number"},
	} {
		f, err := Parse("f", []byte(c.src))
		if err != nil {
			t.Errorf("%q: %v", c.src, err)
			continue
		}
		m := f.Root()
		m.Get("a").Whole(0, 9)
		m.Done()
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q says\n%v\nwant\n%s", c.src, err, c.want)
		}
	}
}

// However long a value is, the sentence about it says what is wrong and what is
// wanted, and not the value.
func TestLongValue(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 400_000), strings.Repeat("日本", 80_000)} {
		f, err := Parse("f", []byte("a: "+long+"\n"+long+": 1\n"))
		if err != nil {
			t.Fatal(err)
		}
		m := f.Root()
		m.Get("a").Whole(0, 9)
		m.Done()
		said := f.Err().Error()
		if len(said) > 4*maxSentence || !utf8.ValidString(said) || !strings.Contains(said, `" is not a whole number of 0 to 9`) || !strings.Contains(said, "is unknown: a") {
			t.Errorf("%d bytes: %.2000q", len(said), said)
		}
	}
}

// However many errors there are, the message is one that a terminal can show.
func TestManyErrors(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString("key" + strings.Repeat("x", i%50) + ": 1\n")
	}
	f, err := Parse("f", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	f.Root().Done()
	said := f.Err().Error()
	if n := strings.Count(said, "\n"); n > 4*maxShown || !strings.HasSuffix(said, "more problems") {
		t.Errorf("%d lines, ending in %q", n, said[len(said)-40:])
	}
}

// FuzzParse: whatever the bytes are, there is no panic and no endless loop, and an
// error has a sentence and lies in the file. What makes the parser slow is refused
// before it: TestSyntax has the cases.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"a: 1\n", "a: [1, {b: c}]\n", "a: |\n  x\n", "- a\n", "a: \"x\n", "? a\n: b\n", "a: &x 1\nb: *x\n", "<<: 1\n",
		"a: 1\n---\nb: 2\n", "{a: {b: [}", "a:\n  - b: 1\n    c: 2\n", "'a': \"\\u00e9\"\n", "a: >-\n\n  x\n # y\n", "[]: 1\n", "a: }\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) { parseAll(t, src) })
}

func parseAll(t *testing.T, src []byte) {
	f, err := Parse("f", src)
	if err == nil {
		m := f.Root()
		for _, k := range m.Keys() {
			n := m.Get(k)
			n.Span(0, Day)
			n.Text(10)
			n.Map().Done()
			n.List(3)
		}
		m.Blame("a b c")
		err = f.Err()
	}
	var all *Errors
	if !errors.As(err, &all) {
		t.Fatalf("%q: %v", src, err)
	}
	lines := strings.Count(string(src), "\n") + 1
	for _, p := range all.Problems {
		if p.Sentence == "" || p.Line < 0 || p.Line > lines {
			t.Errorf("%q: line %d of %d: %q", src, p.Line, lines, p.Sentence)
		}
	}
}
