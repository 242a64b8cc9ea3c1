package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// FuzzLoad: whatever the bytes are, there is no panic; what is accepted can be
// played with every policy, and what is not has an error with a sentence.
func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	wrong, _ := filepath.Glob("testdata/wrong/*.yaml")
	for _, name := range append(files, wrong...) {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) { loadAny(t, src) })
}

// loadAny reports whether a file is accepted, and checks what is true of any.
func loadAny(t *testing.T, src []byte) bool {
	file, err := Load("f", src)
	if err != nil {
		var all *strictyaml.Errors
		if !errors.As(err, &all) || len(all.Problems) == 0 || all.Problems[0].Sentence == "" {
			t.Errorf("%q: %v", src, err)
		}
		return false
	}
	if len(file.Compare) == 0 {
		t.Errorf("%q has no policy", src)
	}
	for i, c := range file.Compare {
		if err := file.Play(i).Validate(); err != nil {
			t.Errorf("%q is accepted, and policy %s is not: %v", src, c.Name, err)
		}
	}
	for _, v := range file.Judge(nil) {
		if v.Holds {
			t.Errorf("%q: %v held without a run", src, v)
		}
	}
	return true
}

// A file with one value damaged is played or refused, and where it is refused the
// errors are few: one mistake makes one sentence, or one for each of those that
// lean on the value.
func TestDamagedFiles(t *testing.T) {
	scalar := regexp.MustCompile(`(?:: |\[|- )([^\s,{}\[\]#|>]+)`)
	for _, name := range []string{"everything.yaml", "overload.yaml", "overload-long.yaml"} {
		src, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		src = regexp.MustCompile(`(?m)(^| +)#.*$`).ReplaceAll(src, nil)
		places := scalar.FindAllSubmatchIndex(src, -1)
		if len(places) < 15 {
			t.Fatalf("%s has %d values", name, len(places))
		}
		accepted := 0
		for _, at := range places {
			for _, with := range []string{"0", "-1", "999999999999", "0s", "700h", "0x", "none", "''", "~", "[]", "{a: 1}"} {
				damaged := string(src[:at[2]]) + with + string(src[at[3]:])
				if loadAny(t, []byte(damaged)) {
					accepted++
				} else if _, err := Load("f", []byte(damaged)); strings.Count(err.Error(), "\nf:") > 12 {
					t.Errorf("%s with %q at %d says\n%v", name, with, at[2], err)
				}
			}
		}
		t.Logf("%s: %d values, %d damaged files accepted", name, len(places), accepted)
	}
}
