package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/logs.md explains each message.
func TestMessagesAreExplained(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "logs.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"shedding", "refused", "would refuse", "overload began", "overload ended", "derived depth"}
	for i := range turns {
		all = append(all, turns[i].over)
		if turns[i].began != "" {
			all = append(all, turns[i].began)
		}
	}
	for _, m := range all {
		if !strings.Contains(string(page), "`"+m+"`") {
			t.Errorf("docs/logs.md has no `%s`", m)
		}
	}
}
