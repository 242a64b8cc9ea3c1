package record

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// docs/logs.md explains each field of the access log.
func TestFieldsAreExplained(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "logs.md"))
	if err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[line]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if name == "" || !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/logs.md has no `%s`", name)
		}
	}
}
