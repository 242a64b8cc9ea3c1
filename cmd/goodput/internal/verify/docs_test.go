package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var docsPage = filepath.Join("..", "..", "..", "..", "docs", "verify.md")

// docs/verify.md has the criteria and the figures as they are.
func TestDocHasTheCriteria(t *testing.T) {
	raw, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	s := Settings{Deadline: 2 * time.Second, Objective: 2 * time.Second, Attempts: 1}
	asked := "| name | what is asked for |\n|---|---|\n"
	for _, c := range criteria {
		asked += fmt.Sprintf("| `%s` | %s |\n", c.name, c.text(s))
	}
	figures := "| in tables | unit | key | criterion |\n|---|---|---|---|\n"
	for _, f := range allFigures {
		criterion := ""
		if f.criterion != "" {
			criterion = "`" + f.criterion + "`"
		}
		figures += fmt.Sprintf("| %s | %s | `%s` | %s |\n", strings.TrimSpace(f.name), f.unit.name, f.key, criterion)
	}
	for begin, want := range map[string]string{"<!-- criteria:": "\n" + asked + "\n", "<!-- figures:": "\n" + figures + "\n"} {
		head, rest, ok := strings.Cut(text, begin)
		comment, rest, _ := strings.Cut(rest, "\n")
		had, tail, end := strings.Cut(rest, "<!-- end -->")
		if !ok || !end {
			t.Fatalf("docs/verify.md has no part %s", begin)
		}
		if *rewrite {
			text = head + begin + comment + "\n" + want + "<!-- end -->" + tail
		} else if had != want {
			t.Errorf("docs/verify.md is not what it was; go test -run %s -rewrite. Of %s it has%swant%s", t.Name(), begin, had, want)
		}
	}
	if *rewrite {
		if err := os.WriteFile(docsPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
