package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The guides of the repository are promises too: a policy in one is valid, a figure in one is
// what the program says, a link in one leads somewhere.

const docs = "../../docs"

// pages returns the Markdown files of the repository by their path from here.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"../../*.md", docs + "/*.md", docs + "/*/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[path] = string(text)
		}
	}
	if len(all) < 8 {
		t.Fatalf("only %d pages: %v", len(all), all)
	}
	return all
}

func TestPoliciesOfTheGuidesAreValid(t *testing.T) {
	found := 0
	for path, text := range pages(t) {
		for _, block := range strings.Split(text, "```yaml\n")[1:] {
			policy, _, _ := strings.Cut(block, "```")
			if !strings.HasPrefix(policy, "version: 1\n") {
				continue // a part of one, or of another program
			}
			found++
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := command("check", file); code != exitOK {
				t.Errorf("%s: %s\n%s", path, stderr, policy)
			}
		}
	}
	if found == 0 {
		t.Error("there is no policy in any page")
	}
}

// The table of docs/guides/objective.md has what plan says.
func TestObjectivesOfTheGuide(t *testing.T) {
	text := pages(t)[filepath.Join(docs, "guides/objective.md")]
	rows := regexp.MustCompile(`(?m)^\| (\d+) (ms|s) \| ([\d,]+) \|`).FindAllStringSubmatch(text, -1)
	if len(rows) != 7 {
		t.Fatalf("%d rows: %v", len(rows), rows)
	}
	for i, row := range rows {
		if testing.Short() && i > 0 {
			break
		}
		_, stdout, stderr := command("plan", "--limit", "60", "--service", "50ms:exp", "--objective", row[1]+row[2])
		depth := regexp.MustCompile(`DERIVED DEPTH +(\d+)`).FindStringSubmatch(stdout)
		if want := strings.ReplaceAll(row[3], ",", ""); depth == nil || depth[1] != want {
			t.Errorf("%s %s: the guide says %s, plan %v %s", row[1], row[2], want, depth, stderr)
		}
	}
}

// What docs/oncall has in italics is how a state begins.
func TestStatesOfTheGuide(t *testing.T) {
	text := strings.Join(strings.Fields(pages(t)[filepath.Join(docs, "oncall/README.md")]), " ")
	source, err := os.ReadFile("../../condition.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"at the admission boundary", "burst: the queue absorbs it", "saturated and doing its job", "slowed: a unit is held"} {
		if !strings.Contains(text, "*"+state+"*") || !strings.Contains(string(source), `"`+state) {
			t.Errorf("%q is not in the guide, or no state any more", state)
		}
	}
}

// Relative links lead to files that are there, and to headings that they have.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	all := pages(t)
	for path, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[1])
			} else if page, ok := all[file]; ok && anchor != "" && !hasHeading(page, anchor) {
				t.Errorf("%s: %s has no heading %s", path, target, anchor)
			}
		}
	}
}

// hasHeading reports whether a page has the heading of an anchor, by the rule of GitHub: small
// letters, dashes for spaces, nothing else but letters, digits and dashes.
func hasHeading(page, anchor string) bool {
	other := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		id := strings.ReplaceAll(other.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
		if id == anchor {
			return true
		}
	}
	return false
}
