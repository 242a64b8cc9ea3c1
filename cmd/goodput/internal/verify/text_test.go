package verify

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var rewrite = flag.Bool("rewrite", false, "write the files of testdata anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what it was; if that is wanted, go test -run %s -rewrite:\n%s", name, t.Name(), got)
	}
}

func textOf(t *testing.T, r *Report, width int, colour bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b, width, colour); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextIsGolden(t *testing.T) {
	for name, r := range samples() {
		golden(t, name+".txt", []byte(textOf(t, r, minWidth, false)))
	}
}

// A line that is wider than the terminal breaks the table. The command alone may be: broken,
// a copy of it would be another.
func TestTextFits(t *testing.T) {
	for name, r := range samples() {
		for _, width := range []int{0, 80, 100, 160} {
			for _, l := range strings.Split(textOf(t, r, width, false), "\n") {
				if n := utf8.RuneCountInString(l); n > max(width, minWidth) && !strings.HasPrefix(l, "again:") {
					t.Errorf("%s: %d columns of %d: %q", name, n, width, l)
				}
			}
		}
	}
}

// With its colours taken away the text is the same: nothing is said by colour alone.
func TestColoursSayNothing(t *testing.T) {
	for name, r := range samples() {
		coloured := textOf(t, r, minWidth, true)
		if !strings.Contains(coloured, "\x1b[") {
			t.Errorf("%s has no colours", name)
		}
		for _, code := range []string{"0", "1", "2", "31", "32", "33", "1;31", "1;32", "1;33"} {
			coloured = strings.ReplaceAll(coloured, "\x1b["+code+"m", "")
		}
		if plain := textOf(t, r, minWidth, false); coloured != plain {
			t.Errorf("%s without its colours is\n%s\nand was meant to be\n%s", name, coloured, plain)
		}
	}
}

func TestTextIsCleanOfStrangers(t *testing.T) {
	got := textOf(t, hostileReport(), minWidth, false)
	for _, c := range "\x1b\u202e\r" {
		if strings.ContainsRune(got, c) {
			t.Errorf("%U reaches the terminal", c)
		}
	}
	if strings.Contains(got, strings.Repeat("9", 2*maxWords)) {
		t.Error("a header of 10 kB is shown in full")
	}
	if len(got) > 12<<10 {
		t.Errorf("%d bytes", len(got))
	}
}

// A run with many steps has as many tables as it needs, each with all of its rows.
func TestManyStepsAreSeveralTables(t *testing.T) {
	r := certifiedReport()
	r.Steps = append(r.Steps, r.Steps...)
	got := textOf(t, r, minWidth, false)
	if n := strings.Count(got, "\n  load  "); n != 2 {
		t.Errorf("%d tables, want 2 of ten steps:\n%s", n, got)
	}
	if n := strings.Count(got, "\n  offered  "); n != 2 {
		t.Errorf("%d rows of what was offered", n)
	}
}
