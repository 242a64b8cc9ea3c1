package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// C073: what a server says about when to come back is read in one place, so that no two
// read it differently. Whoever writes such a header, or only looks whether there is one, is
// here with the reason; a file that is not has a second parser, or belongs here.
func TestHintsAreReadInOnePlace_C073(t *testing.T) {
	known := map[string]string{
		"retry/hint.go":                          "the parser",
		"retry/fault.go":                         "gives the header to the parser, and looks whether there is one",
		"goodputhttp/refuse.go":                  "writes them",
		"goodputhttp/refuse_deeper.go":           "deletes what is not true of another answer",
		"cmd/goodput/internal/upstream/probe.go": "looks whether there is one",
		"cmd/goodput/internal/load/client.go":    "keeps it as it came, to be judged: load.Answer.Wait is strict where the parser is lenient",
		"cmd/goodput/internal/verify/verify.go":  "the name of the criterion",
		"conformance/handler_answers.go":         "judges what a handler says, without a package of ours",
		"conformance/handler.go":                 "describes that check",
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path) // path begins with root
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || name == "bench" || name == "e2e" || name == "cmd/goodput/internal/verify/servers"): // measures rivals, and plays services
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mentions := false
		for _, header := range []string{`"Retry-After"`, `"Grpc-Retry-Pushback-Ms"`, `"grpc-retry-pushback-ms"`, `"retry-after"`} {
			mentions = mentions || strings.Contains(string(src), header)
		}
		if _, ok := known[name]; ok != mentions {
			t.Errorf("%s: has the header of a hint: %v; it is known for: %q", name, mentions, known[name])
		}
		delete(known, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range known {
		t.Errorf("%s is not there any more", name)
	}
}
