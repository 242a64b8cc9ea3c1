package live

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// Each field that a Knob may name, as its source has them, has its key, and each key is one of a
// policy file.
func TestEveryKnobHasItsKey(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../knob.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, is := n.(*ast.BasicLit); is && s.Kind == token.STRING {
			for _, name := range field.FindAllString(strings.ReplaceAll(s.Value, "KMGTP", ""), -1) { // units
				named[name] = true
			}
		}
		return true
	})
	delete(named, "B") // so is that
	if !named[drained] || !named["Objective"] {
		t.Fatalf("the names in the source are not to be trusted: %v", named)
	}
	for name := range named {
		if keysOf[name] == "" && name != drained {
			t.Errorf("a Knob may name %s, which has no key", name)
		}
	}
	schema, err := json.Marshal(config.Schema())
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range keysOf {
		if !named[name] {
			t.Errorf("no Knob names %s", name)
		}
		for _, part := range strings.Split(key, ".") {
			if !strings.Contains(string(schema), `"`+part+`":`) || !regexp.MustCompile(`(?m)^[ -]*`+part+`:`).MatchString(config.Reference()) {
				t.Errorf("%s is called %s, and %q is no key of a policy file", name, key, part)
			}
		}
	}
}
