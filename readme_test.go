package goodput_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/limit"
)

// The snippets of the README, so that they compile and run as they stand there.

func Example_readmeHTTP() {
	http := http.NewServeMux()
	search := goodputhttp.Handler(goodput.New(goodput.Config{Limit: limit.Fixed(1)}), http)

	lim := goodput.New(goodput.Config{
		Limit:     limit.Fixed(60),        // what may run at once
		Objective: 400 * time.Millisecond, // p99 of wait + service that admitted work must meet
	})
	http.Handle("/search", goodputhttp.Handler(lim, search))
}

func Example_readmeDo() {
	ctx := context.Background()
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(0), Depth: goodput.NoQueue})
	query := func(context.Context, string) error { return nil }

	err := lim.Do(ctx, func(ctx context.Context) error {
		return query(ctx, "select pg_sleep(0.05)")
	})
	if rejection := (*goodput.Rejection)(nil); errors.As(err, &rejection) {
		fmt.Println("not executed:", rejection.Reason)
		if after := rejection.Jittered(); after > 0 { // 0: the same again could not win
			fmt.Println("retry after", after)
		}
	}
}

func Example_readmeShares() {
	ctx := context.Background()

	lim := goodput.New(goodput.Config{
		Limit:     limit.Fixed(60),
		Objective: 400 * time.Millisecond,
		Tenants: &goodput.Tenants{Rows: []goodput.Tenant{
			{ID: "acme", Weight: 3},
			{ID: "batch", MaxInUse: 20, Highest: goodput.Background},
		}}, // all others together are one tenant, in 64 buckets among themselves
		Reserve: goodput.Reserve{Default: 0.2}, // while critical work wants everything
	})
	slot, err := lim.AcquireWork(ctx, goodput.Work{Tenant: "acme", Cost: 2})
	defer slot.Release()
	fmt.Println(err, lim.Tenants(1)[0].ID, lim.Tenants(1)[0].InUse)
	// Output: <nil> acme 2
}

func Example_readmeDrain() {
	ctx := context.Background()
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	srv := &http.Server{}

	lim.Drain(ctx)    // until nothing waits or runs, or ctx is over
	srv.Shutdown(ctx) // then the connections
	st := lim.Stats()
	fmt.Println(st.State())
	// Output: drained
}

func Example_guideSemaphore() {
	ctx := context.Background()
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(60)})
	work := func() error {
		slot, err := lim.Acquire(ctx)
		if err != nil {
			return err // a *goodput.Rejection: the reason, the numbers, when to come back
		}
		defer slot.Release()
		return nil
	}
	fmt.Println(work())
	// Output: <nil>
}

// Every Go snippet of the README and of the guides stands in an example, line by line.
func TestSnippetsAreExamples(t *testing.T) {
	var examples strings.Builder
	files, _ := filepath.Glob("*_test.go")
	modules, _ := filepath.Glob("goodputprom/*_test.go")
	for _, f := range append(files, modules...) {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		examples.WriteString(trimmed(string(src)))
	}
	guides, _ := filepath.Glob("docs/*.md")
	further, _ := filepath.Glob("docs/*/*.md")
	guides = append(guides, further...)
	for _, page := range append(guides, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := fenced(string(text), "go")
		if want := map[string]int{"README.md": 3, "docs/redrive.md": 4, "docs/guides/coming-from.md": 1}[page]; len(blocks) < want {
			t.Errorf("%d Go snippets in %s, expected at least %d", len(blocks), page, want)
		}
		for _, b := range blocks {
			if !strings.Contains(examples.String(), trimmed(b)) {
				t.Errorf("no example has these lines of %s:\n%s", page, b)
			}
		}
	}
}

// trimmed drops indentation, which differs between the two.
func trimmed(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// fenced returns the blocks of a Markdown text that are marked with a language.
func fenced(text, lang string) (blocks []string) {
	for _, part := range strings.Split(text, "```"+lang+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}
