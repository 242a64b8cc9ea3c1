package conformance

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	kit "github.com/goodput/goodput/conformance"
)

var rewrite = flag.Bool("rewrite", false, "write docs/conformance.md")

// part is a quarter of the rounds, which the page says: the slot of a
// select that takes either of two is then met in 250 of 500 calls. patience is for those that
// hang, which is four checks; it is a hundred times what any other step takes.
const (
	part     = 4
	patience = 3 * time.Second
)

func run() (*table, *table) {
	ls := &table{findings: limiterFindings}
	for _, l := range limiters {
		ls.columns = append(ls.columns, column{l.name, l.what, l.path, kit.RunLimiter(l.of, kit.LimiterOptions{
			NoQueue: l.none, Skip: l.skip, Part: part, Patience: patience,
		})})
	}
	hs := &table{findings: handlerFindings}
	for _, h := range handlers {
		opts := h.opts
		opts.NoQueue, opts.Part, opts.Patience = h.none, part, patience
		hs.columns = append(hs.columns, column{h.name, h.what, h.path, kit.RunHandler(h.of, opts)})
	}
	return ls, hs
}

// The tables of docs/conformance.md are what a run gives.
func TestPublishedTables(t *testing.T) {
	ls, hs := run()
	for _, bad := range append(ls.judge(), hs.judge()...) {
		t.Error(bad)
	}
	mod, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	want := page(ls, hs, versions(string(mod)))
	file := filepath.Join("..", "..", "docs", "conformance.md")
	if *rewrite && !t.Failed() {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("docs/conformance.md is not what this run gives (%v): look, and run go test ./conformance -rewrite", err)
	}
}
