package scenario

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what Load says beside the files of testdata/wrong")

// What is wrong with a file is said in whole: the .txt beside each file of
// testdata/wrong is all of the message. Read them when they change: they are what
// somebody sees who has made a mistake.
func TestWrongFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Load(filepath.Base(name), src)
		if err == nil {
			t.Errorf("%s is accepted: %+v", name, f)
			continue
		}
		said := err.Error() + "\n"
		golden := strings.TrimSuffix(name, ".yaml") + ".txt"
		if *rewrite {
			if err := os.WriteFile(golden, []byte(said), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Error(err)
		}
		compareLines(t, golden, said, string(want))
	}
}
