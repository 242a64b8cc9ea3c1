package builtin

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// Every file is listed, and everything listed is a file; the order is that of a
// reader, so nothing else would notice a scenario that was left out.
func TestEveryFileIsListed(t *testing.T) {
	paths, err := fs.Glob(files, "scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range paths {
		found = append(found, strings.TrimSuffix(strings.TrimPrefix(p, "scenarios/"), ".yaml"))
	}
	listed := Names()
	slices.Sort(listed)
	if slices.Sort(found); !slices.Equal(found, listed) {
		t.Errorf("files %q, listed %q", found, listed)
	}
	if Names()[0] = "changed"; names[0] == "changed" {
		t.Error("Names hands out its own list")
	}
}

// A criterion is only as good as its tolerance: each file says where that is from.
func TestEveryFileDerivesItsTolerances(t *testing.T) {
	for _, name := range Names() {
		file, src, err := File(name)
		if err != nil || file != name+".yaml" {
			t.Errorf("%s: %q, %v", name, file, err)
		}
		first, _, _ := strings.Cut(string(src), "version: 1\n")
		if !strings.Contains(first, "olerances") && !strings.Contains(first, "+-") {
			t.Errorf("%s does not begin with a comment that derives its tolerances:\n%s", file, first)
		}
	}
}

// The README says how many there are.
func TestReadmeCountsThem(t *testing.T) {
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d are built in", len(names)); !strings.Contains(string(readme), want) {
		t.Errorf("README.md does not say that %s", want)
	}
}

func TestUnknownName(t *testing.T) {
	for name, want := range map[string]string{
		"brust":         `built-in scenario "brust" is unknown, did you mean burst?`,
		"overload-2x":   "did you mean overload-3x?",
		"metastability": "did you mean metastable?",
		"../builtin.go": "is unknown: overload-1.5x, ",
		"":              `"" is unknown`,
	} {
		if file, src, err := File(name); err == nil || src != nil || file != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q %v, want %s", name, file, err, want)
		}
	}
}
