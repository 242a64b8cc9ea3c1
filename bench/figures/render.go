package figures

import (
	"fmt"
	"strings"
	"time"
)

// A page is a document in Markdown.
type page struct{ strings.Builder }

// say writes a paragraph.
func (p *page) say(format string, args ...any) {
	fmt.Fprintf(p, format+"\n\n", args...)
}

// row writes a line of a table.
func (p *page) row(cells ...string) {
	p.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// head begins a table. Columns after the first few are numbers, to the right.
func (p *page) head(words int, columns ...string) {
	p.row(columns...)
	p.WriteString("|")
	for i := range columns {
		if i < words {
			p.WriteString("---|")
		} else {
			p.WriteString("---:|")
		}
	}
	p.WriteString("\n")
}

func (p *page) end() { p.WriteString("\n") }

// command writes what is to be typed.
func (p *page) command(line string) { p.say("```sh\n%s\n```", line) }

// Render writes the document of a run.
func Render(r *Run) (string, error) {
	peers, err := ReadPeers(peersFile)
	if err != nil {
		return "", err
	}
	p := &page{}
	p.say("# Benchmarks")
	p.say("This file is written by `make benchmarks`, from what was measured. Nobody edits it; each part says when, at which commit and on a machine how busy; `bench/figures/run` has the data.")
	p.say("Ratios compare contestants of the same pass on the same machine; nanoseconds and requests per second are of that machine. *Goodput* is answers in time over the smaller of what was offered and of what the slots can do (slots / mean work), of the requests that arrived in the window, each to its end. In virtual and in simulated time, where no draw of the work shall move it, the mean is that of the work that was served: so it is the share of the slots' time in the window that was worked, times the share of what was served that was in time. p99 is of all that got a slot, late ones included. `1x` is what the slots can do. Where others do better, the text below the table says so.")
	for _, h := range r.Heads() {
		if h.Quick {
			p.say("**Some of this was measured with -quick: its figures mean little.**")
			break
		}
	}
	verdicts(p, r)
	conditions(p, r)
	for _, part := range []func(*page, *Run){inVirtualTime, hotPath, core, lawsOf, overHTTP, proxied, demos} {
		part(p, r)
	}
	elsewhere(p, peers)
	return strings.TrimRight(p.String(), "\n") + "\n", nil
}

// verdicts is the table of promises.
func verdicts(p *page, r *Run) {
	all := r.Judge()
	met, missed, absent := Count(all)
	p.say("## What goodput promises")
	sum := fmt.Sprintf("Of %d numbers %d are met, %d missed", len(all), met, missed)
	if absent > 0 {
		sum += fmt.Sprintf(", and %d were not measured in this run", absent)
	}
	p.say("%s. In brackets is the range of the passes.", sum)
	p.head(5, "promised", "bound", "measured", "", "part")
	line := ""
	for _, v := range all {
		if v.Line != line {
			line = v.Line
			p.row("**"+line+"**", "", "", "", "")
		}
		p.row(v.Text, v.bound(), v.value(), v.Word(), v.Part)
	}
	p.end()
	var misses []string
	for _, v := range all {
		if why := v.Why(); why != "" {
			note := v.Note
			if note != "" {
				note = " (" + note + ")"
			}
			misses = append(misses, fmt.Sprintf("- **%s**: %s, %s%s. %s", v.Text, v.value(), v.bound(), note, why))
		}
	}
	if len(misses) > 0 {
		p.say("What is missed, and why:")
		p.say("%s", strings.Join(misses, "\n"))
	}
	var notes []string
	for _, v := range all {
		if v.Note != "" && (v.Met() || !v.Measured) {
			notes = append(notes, fmt.Sprintf("- %s: %s", v.Text, v.Note))
		}
	}
	if len(notes) > 0 {
		p.say("<details><summary>Beside these numbers</summary>\n\n%s\n\n</details>", strings.Join(notes, "\n"))
	}
}

// conditions is what the parts ran on.
func conditions(p *page, r *Run) {
	heads := r.Heads()
	if len(heads) == 0 {
		return
	}
	p.say("## How it was measured")
	p.command("make benchmarks")
	p.say("measures everything below, one part after the other, with those first that another program on the machine would spoil; half an hour on two processors. It needs Debian or Ubuntu for the other proxies. A part alone is `cd bench && GOWORK=off go run ./cmd/benchmarks -only hot`, the names being those of this table. Commands are typed in the root of the repository, those of `bin/goodput` after `make build`.")
	same := true
	for _, h := range heads {
		same = same && h.Machine == heads[0].Machine
	}
	if same {
		p.say("All on one machine: %s.", heads[0].Machine)
	}
	for _, h := range heads {
		if h.Day != heads[0].Day || h.Commit != heads[0].Commit {
			p.say("**These parts are not of one occasion**: their days or commits differ, as the table says.")
			break
		}
	}
	p.say("*Busy* is the load average of a minute when a part began: beside 0, what is nanoseconds or requests per second is worse than it would be alone. A commit with a + had changes.")
	columns := []string{"part", "command", "commit", "on", "busy", "took"}
	if !same {
		columns = append(columns, "machine")
	}
	p.head(2, columns...)
	for _, h := range heads {
		busy := "-"
		if h.Busy != nil {
			busy = fmt.Sprintf("%.1f", *h.Busy)
		}
		cells := []string{h.Part, "`" + h.Command + "`", orUnknown(h.Commit), orUnknown(h.Day), busy, (time.Duration(h.Seconds) * time.Second).String()}
		if h.Quick {
			cells[0] += " (quick: its figures mean little)"
		}
		if !same {
			cells = append(cells, h.Machine.String())
		}
		p.row(cells...)
	}
	p.end()
}

func orUnknown(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// slotsOf is a number of slots in words.
func slotsOf(n int) string {
	if n == 1 {
		return "1 slot"
	}
	return fmt.Sprintf("%d slots", n)
}

// version of a rival, as a part has it.
func version(h *Head, of string) string {
	if h == nil || h.Versions[of] == "" {
		return "-"
	}
	return h.Versions[of]
}
