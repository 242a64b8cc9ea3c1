package report

import (
	"os"
	"path/filepath"
	"testing"
)

// A pipe or a file is read by a program, or by somebody much later.
func TestWhatIsNoTerminalHasNoColour(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "report.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if width, colour := Terminal(f); width != Columns || colour {
		t.Errorf("%d columns, colour %v", width, colour)
	}
}
