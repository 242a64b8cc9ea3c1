package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// written returns the keys of the reference by where they stand, as mappings has them:
// without laws and lists, since a reader sees the indentation.
func written(t *testing.T, text string) map[string]bool {
	t.Helper()
	line := regexp.MustCompile(`^([ -]*)([a-zA-Z0-9_]+):( +#.*)?$`)
	all, indents, path := map[string]bool{}, []int{}, []string{}
	for l := range strings.Lines(text) {
		m := line.FindStringSubmatch(strings.TrimSuffix(l, "\n"))
		if m == nil {
			continue
		}
		for len(indents) > 0 && indents[len(indents)-1] >= len(m[1]) {
			indents, path = indents[:len(indents)-1], path[:len(path)-1]
		}
		indents, path = append(indents, len(m[1])), append(path, strings.Replace(m[2], "NAME", "*", 1))
		all[strings.Join(path, ".")] = true
	}
	return all
}

// Every key of every mapping is in the reference, where it is in a file.
func TestReferenceHasEveryKey(t *testing.T) {
	text := Reference()
	has := written(t, text)
	root, all := Schema(), map[string]map[string]bool{}
	mappings(root, root, "", all)
	law := regexp.MustCompile(`\(.*\)|\[\]`)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		for key := range all[at] {
			path := strings.TrimPrefix(law.ReplaceAllString(at, "")+"."+key, ".")
			if rest, ok := strings.CutPrefix(path, "defaults."); ok {
				path = "classes." + rest // "The keys of a class"
			}
			path = strings.Replace(path, "upstreams.*.", "upstream.", 1) // "As upstream above."
			path = strings.Replace(path, "user.", "tenant.", 1)
			path = regexp.MustCompile(`tenants\.(rows|others)\.quota`).ReplaceAllString(path, "tenants.quota")
			if !has[path] && !has["classes."+path] {
				t.Errorf("%s is not in the reference", path)
			}
		}
	}
	for _, as := range []string{"As upstream above.", "As tenant above.", "As quota above.", "# The keys of a class"} {
		if !strings.Contains(text, as) {
			t.Errorf("nothing says %q", as)
		}
	}
	if len(has) < 100 { // those of a class alone are 43
		t.Errorf("%d keys", len(has))
	}
}

// What the schema says of a key, with its range and its default, is what the reference says.
func TestReferenceSaysWhatTheSchemaSays(t *testing.T) {
	text := Reference()
	for l := range strings.Lines(text) {
		if utf8.RuneCountInString(l) > referenceWidth+1 || strings.TrimRight(l, " \n") != strings.TrimSuffix(l, "\n") {
			t.Errorf("%q", l)
		}
	}
	flat := strings.Join(strings.Fields(regexp.MustCompile(`(?m)^ +# `).ReplaceAllString(text, "")), " ")
	for _, k := range partKeys() {
		if about := strings.Join(strings.Fields(k.Value.Description), " "); !strings.Contains(flat, about) {
			t.Errorf("%s: nothing says %q", k.Name, about)
		}
	}
	for _, want := range []string{
		"version: # Needed.", "objective: # Latency,", "Duration: 1ms to 24h. Default: 1s.", "Default: :8080.", `Default: ["http1","h2"].`,
		"request, stream or connection. Default: request.", "Duration: 1ms to 24h, or none. total:", "503 or 429. Default: 503.", "true or false. Default: false.",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("nothing says %q", want)
		}
	}
}
