package goodputhttp

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/admission"
)

// codes are the names of the gRPC codes that a refusal may have.
var codes = map[string]string{"3": "INVALID_ARGUMENT", "4": "DEADLINE_EXCEEDED", "8": "RESOURCE_EXHAUSTED", "14": "UNAVAILABLE"}

// docs/refusals.md has each reason of a limiter as it is answered, in the order of the words, and
// says what each means.
func TestRefusalsAreExplained(t *testing.T) {
	b, err := os.ReadFile("../docs/refusals.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	answers, meanings, ok := strings.Cut(page, "\n## What each means\n")
	if !ok {
		t.Fatal("the page has no second table")
	}
	var want, told []string
	for i := 1; i < admission.Reasons; i++ {
		r := admission.Reason(i)
		row := []string{"`" + r.String() + "`", r.Outcome().String(), "–", "–", "–"}
		if f := refusals[r]; f != nil {
			row[2], row[3] = strconv.Itoa(f.status), codes[f.grpc]
			row[4] = map[again]string{retryNever: "no", retryAfter: "after Retry-After", retryElsewhere: "at once, on another connection"}[f.again]
		} else if r.Outcome() != goodput.Cancelled {
			t.Errorf("%v has no answer", r)
		}
		want = append(want, "| "+strings.Join(row, " | ")+" |")
		told = append(told, "| "+row[0]+" |")
	}
	if got := rowsOf(answers); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the answers are\n%s\nand the program has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	rows := rowsOf(meanings)
	if len(rows) != len(told) {
		t.Fatalf("%d meanings of %d reasons", len(rows), len(told))
	}
	for i, row := range rows {
		if cells := strings.Split(row, " | "); !strings.HasPrefix(row, told[i]) || len(cells) != 4 {
			t.Errorf("want four cells that begin with %s: %s", told[i], row)
		}
	}
	of429 := ""
	for i := 1; i < admission.Reasons; i++ {
		if f := refusals[admission.Reason(i)]; f != nil && f.overload {
			of429 += ", `" + f.reason + "`"
		}
	}
	last := strings.LastIndex(of429, ", ")
	if list := of429[2:last] + " and " + of429[last+2:]; !strings.Contains(page, "the answers to "+list+" are 429 and\nRESOURCE_EXHAUSTED") {
		t.Errorf("the page does not say that %s may be 429", list)
	}
	for _, f := range []*refusal{slowBody, badBody} {
		if say := "`" + f.reason + "` (" + strconv.Itoa(f.status) + ", " + codes[f.grpc] + ")"; !strings.Contains(page, say) {
			t.Errorf("the page does not say %s", say)
		}
	}
}

// rowsOf are the rows of a table about reasons.
func rowsOf(text string) (rows []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	return rows
}
