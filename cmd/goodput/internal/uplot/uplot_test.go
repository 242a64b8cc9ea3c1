package uplot

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The files of uPlot are those that its README says.
func TestVendoredFiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"uPlot.iife.min.js": JS, "uPlot.min.css": CSS} {
		if want := fmt.Sprintf("| %s | %x |", name, sha256.Sum256([]byte(content))); !strings.Contains(string(readme), want) {
			t.Errorf("the README does not say %s", want)
		}
	}
	if !strings.Contains(JS, "uPlot (v1.6.32)") || !strings.HasPrefix(string(readme), "# uPlot 1.6.32\n") {
		t.Error("the version is not the one of the README")
	}
}
