package virtual

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

var (
	tableFile = flag.String("table", "", "play everything and write the table to this file")
	seedCount = flag.Int("seeds", 3, "of the table: 1, 2 ...")
	sceneName = flag.String("scene", "", "of the table: only scenes whose names contain this")
)

// TestTable plays everything, if a file is given for it: see the comment of the package.
func TestTable(t *testing.T) {
	if *tableFile == "" {
		t.Skip("plays for minutes: say where to write with -table")
	}
	begun := time.Now() // outside of any bubble
	table := Table{Go: runtime.Version() + " " + runtime.GOARCH, Versions: versions(t)}
	for n := range *seedCount {
		table.Seeds = append(table.Seeds, uint64(n+1))
	}
	for _, c := range Contestants {
		table.Contestants = append(table.Contestants, c.Words)
	}
	for _, s := range Scenes() {
		if !strings.Contains(s.Name, *sceneName) {
			continue
		}
		table.Scenes = append(table.Scenes, s)
		top, err := s.ceiling(table.Seeds[0])
		if err != nil {
			t.Fatal(err)
		}
		table.Ceilings = append(table.Ceilings, top)
		for _, c := range s.players() {
			var runs []*Result
			for _, seed := range table.Seeds {
				runs = append(runs, inBubble(t, s, c, seed))
			}
			table.Rows = append(table.Rows, row(runs))
		}
		t.Logf("%v: %s", time.Since(begun).Round(time.Second), s.Name)
	}
	if err := os.WriteFile(*tableFile, lines(t, table), 0o644); err != nil {
		t.Fatal(err)
	}
}

// versions returns those of the rivals' modules, as go.mod has them: a test has no build
// information of its own.
func versions(t *testing.T) map[string]string {
	t.Helper()
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	v := map[string]string{}
	for _, path := range []string{"github.com/failsafe-go/failsafe-go", "golang.org/x/sync"} {
		_, after, ok := strings.Cut(string(mod), path+" ")
		if v[path], _, _ = strings.Cut(after, "\n"); !ok || !strings.HasPrefix(v[path], "v") {
			t.Fatalf("../go.mod does not require %s", path)
		}
	}
	return v
}

func TestVersions(t *testing.T) {
	if v := versions(t); len(v) != 2 {
		t.Errorf("%v", v)
	}
}

// lines is t as JSON with one element of a list a line, so that a difference can be read.
func lines(t *testing.T, table Table) []byte {
	t.Helper()
	var out bytes.Buffer
	fields := []struct {
		name  string
		value any
	}{
		{"go", table.Go},
		{"versions", table.Versions},
		{"seeds", table.Seeds},
		{"contestants", table.Contestants},
		{"scenes", table.Scenes},
		{"ceilings", table.Ceilings},
		{"rows", table.Rows},
	}
	for i, f := range fields {
		b, err := json.Marshal(f.value)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.ReplaceAll(b, []byte(`},{"`), []byte("},\n\t{\""))
		fmt.Fprintf(&out, "%s%q: %s", map[bool]string{true: "{\n", false: ",\n"}[i == 0], f.name, b)
	}
	out.WriteString("\n}\n")
	return out.Bytes()
}
