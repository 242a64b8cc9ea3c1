package scenario

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every value of everything.yaml is where its key says: everything.txt has all that
// was read, one field a line.
func TestEverything(t *testing.T) {
	const golden = "testdata/everything.txt"
	var b strings.Builder
	dump(&b, "", reflect.ValueOf(*load(t, "everything.yaml")))
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	compareLines(t, golden, b.String(), string(want))
}

// dump writes the fields below v that are not zero, "Sim.Tiers[0].Slots 200".
func dump(b *strings.Builder, path string, v reflect.Value) {
	printed := v.Type().Implements(reflect.TypeFor[fmt.Stringer]()) && v.Kind() != reflect.Pointer
	switch {
	case v.IsZero() || v.Kind() == reflect.Func:
	case printed && v.Kind() != reflect.Struct:
		fmt.Fprintf(b, "%s %v\n", path, v)
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
		dump(b, path, v.Elem())
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if v.Index(i).IsZero() {
				fmt.Fprintf(b, "%s[%d] zero\n", path, i)
			}
			dump(b, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				dump(b, strings.TrimPrefix(path+"."+f.Name, "."), v.Field(i))
			}
		}
	default:
		fmt.Fprintf(b, "%s %v\n", path, v)
	}
}

// compareLines shows where two texts part.
func compareLines(t *testing.T, name, said, want string) {
	t.Helper()
	got, should := strings.Split(said, "\n"), strings.Split(want, "\n")
	for i := range max(len(got), len(should)) {
		if i >= len(got) || i >= len(should) || got[i] != should[i] {
			t.Errorf("%s, line %d: says\n%s\nwant\n%s", name, i+1,
				few(got, i), few(should, i))
			return
		}
	}
}

func few(lines []string, from int) string {
	return strings.Join(lines[min(from, len(lines)):min(from+6, len(lines))], "\n")
}
