package strictyaml

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// scan checks what can be checked before parsing and returns the words and signs of
// the text.
func (f *File) scan(src []byte) token.Tokens {
	whole := position{}
	switch {
	case len(src) > MaxBytes:
		f.fail(whole, "the file has %d bytes, at most %d are read", len(src), MaxBytes)
		return nil
	case strings.HasPrefix(string(src), "\xff\xfe") || strings.HasPrefix(string(src), "\xfe\xff"):
		f.fail(whole, "the file is in UTF-16: save it as UTF-8")
		return nil
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.TrimSpace(text) == "" {
		f.fail(whole, "the file is empty")
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if at, what := unprintable(line); what != "" {
			f.fail(whole, "this is not a text file: %s in line %d, column %d", what, i+1, at)
			return nil
		}
	}
	for _, line := range lines {
		f.lines = append(f.lines, []rune(line))
	}
	f.checkTabs(lines)
	if len(f.problems) > 0 {
		return nil
	}
	tokens := lexer.Tokenize(text)
	f.checkTokens(tokens)
	return tokens
}

// unprintable returns the column and the kind of the first character that no text
// has. Such lines are not shown: a terminal would obey them.
func unprintable(line string) (column int, what string) {
	for i, r := range line {
		switch {
		case r == utf8.RuneError && strings.HasPrefix(line[i:], string(utf8.RuneError)):
			// the character itself, written as such
		case r == utf8.RuneError:
			return utf8.RuneCountInString(line[:i]) + 1, "a byte that is not UTF-8"
		case r != '\t' && (unicode.IsControl(r) || r == '\ufeff' || unicode.Is(unicode.Bidi_Control, r)):
			return utf8.RuneCountInString(line[:i]) + 1, "a control character"
		}
	}
	return 0, ""
}

// checkTabs: YAML counts spaces, and a tab is no number of them. Where there is one there are many, as
// a rule, so the first one is shown, and the others are counted.
func (f *File) checkTabs(lines []string) {
	first, n := position{}, 0
	for i, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if at := strings.IndexByte(indent, '\t'); at >= 0 && len(indent) < len(line) {
			if n++; n == 1 {
				first = position{i + 1, at + 1}
			}
		}
	}
	switch {
	case n == 1:
		f.fail(first, "a tab in the indentation: YAML allows spaces only")
	case n > 1:
		f.fail(first, "a tab in the indentation of this line and %d more: YAML allows spaces only", n-1)
	}
}

// refused are the parts of YAML that no file of ours needs.
var refused = map[token.Type]string{
	token.AnchorType:     "an anchor (&): write the value where it is used",
	token.AliasType:      "an alias (*): write the value out, or put the text in quotes",
	token.MergeKeyType:   "a merge key (<<): write the keys out",
	token.TagType:        "a tag (!): types are known, or put the text in quotes",
	token.DirectiveType:  "a directive (%): there are none",
	token.MappingKeyType: "a complex key (?): keys are words",
}

// glued reports whether what follows a colon is part of a text with it, as in
// {servers: [http://127.0.0.1:9000]}: the lexer takes it for a key there, and in other places
// for text.
func (f *File) glued(t *token.Token) bool {
	before, next, line := t.Prev, t.Next, f.lines[t.Position.Line-1]
	if before == nil || next == nil || t.Position.Column >= len(line) {
		return false
	}
	switch before.Type {
	case token.SingleQuoteType, token.DoubleQuoteType:
		return false // as JSON has it
	}
	switch next.Type {
	case token.SequenceStartType, token.MappingStartType, token.CollectEntryType, token.SequenceEndType, token.MappingEndType, token.CommentType:
		return false
	}
	behind := line[t.Position.Column]
	return behind != ' ' && behind != '\t'
}

// checkTokens refuses what would be expensive to parse, or surprising.
func (f *File) checkTokens(tokens token.Tokens) {
	var keys, depth, entries, line int
	var begun bool
	var item token.Position // of the last token, if it begins an item of a list
	for _, t := range tokens {
		at := position{t.Position.Line, t.Position.Column}
		if t.Position.Line != line {
			line, entries = t.Position.Line, 0
		}
		switch t.Type {
		case token.CommentType:
			continue
		case token.DocumentHeaderType:
			if begun {
				f.fail(at, "a second document: a file holds one")
				return
			}
		case token.MappingValueType:
			keys++
			if f.glued(t) {
				f.fail(at, "a colon without a space behind it: put the text around it in quotes, or a space behind it")
			}
		case token.SequenceEntryType:
			entries++
			if at.line > item.Line && at.column <= item.Column {
				f.fail(position{item.Line, item.Column}, "an item of a list has no value")
				return // the parser's time grows with the square of these
			}
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
		begun, item = true, token.Position{}
		if t.Type == token.SequenceEntryType {
			item = *t.Position
		}
		switch why := refused[t.Type]; {
		case why != "":
			f.fail(at, "%s", why)
			if t.Type == token.DirectiveType {
				return // what follows is another document
			}
		case keys > maxKeys:
			f.fail(at, "more than %d keys", maxKeys)
			return
		case depth > maxDepth || entries > maxDepth:
			f.fail(at, "nested more than %d deep", maxDepth)
			return
		}
	}
}
