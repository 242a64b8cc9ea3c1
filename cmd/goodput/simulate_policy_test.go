package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// played returns the result of a command without what says how it was made, and its notes.
func played(t *testing.T, args ...string) (result string, notes []any) {
	t.Helper()
	code, stdout, stderr := simulate(append(args, "--format", "json", "--no-ceilings")...)
	if code != exitOK {
		t.Fatalf("%q: exit code %d: %s", args, code, stderr)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	notes, _ = got["notes"].([]any)
	delete(got, "notes")
	delete(got, "command")
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), notes
}

// Scenarios in which the policy of the front is %.
const (
	oneTier = `version: 1
name: small
length: 2s
policy: %
slots: 8
service: 50ms exponential
load: 3x
compare: [goodput, fifo, {goodput: {limit: 3, label: goodput-3}}]
expect: [goodput.ratio >= 0]
`
	ownDeadline = oneTier + "deadline: 2s\n"
	alone       = `version: 1
name: alone
length: 2s
policy: %
slots: 8
service: 50ms exponential
load: 200/s
`
	twoTiers = `version: 1
name: tiers
length: 2s
tiers:
  - {name: front, policy: %, slots: 20, service: 20ms exponential, next: {tier: database, n: 2}}
  - {name: database, policy: {limit: 6, objective: 200ms, deadline: 100ms}, service: 10ms exponential}
classes:
  - {name: a, load: 1x, tenant: acme}
  - {name: b, load: 400/s, priority: sheddable, bytes: 1KiB}
`
)

// A scenario that is played with the policy of a class is the scenario in which that policy
// is written, whatever it had before.
func TestSimulateByPolicyFile(t *testing.T) {
	results := map[string]string{}
	for name, c := range map[string]struct {
		scenario, before, keys string
		also                   string // of the class, and no policy
	}{
		"a limit":            {oneTier, "{limit: 6, objective: 400ms}", "limit: 4, objective: 300ms, percentile: 0.95, service: 50ms", ""},
		"a deadline":         {oneTier, "{limit: 6, objective: 400ms, deadline: 2s}", "limit: 4, objective: 300ms, deadline: 150ms", ""},
		"a cap":              {ownDeadline, "{limit: 6, objective: 400ms}", "limit: 4, objective: 300ms, deadline_cap: 300ms", ""},
		"a cap alone":        {oneTier, "{limit: 6, objective: 400ms}", "limit: 4, objective: 300ms, deadline_cap: 350ms", ""},
		"auto":               {oneTier, "{limit: 6, objective: 400ms}", "limit: auto, objective: 300ms", ""},
		"auto, bounded":      {oneTier, "{limit: auto}", "limit: {law: auto, from: 3, min: 2, max: 5}, objective: 300ms", ""},
		"a number for auto":  {oneTier, "{limit: auto, objective: 1s}", "limit: 5, objective: 100ms", ""},
		"the queue":          {oneTier, "{limit: 6, depth: 3, objective: 400ms}", "limit: 4, objective: 300ms, depth: none", ""},
		"a baseline before":  {oneTier, "{baseline: fifo, limit: 6}", "limit: 4, objective: 300ms, max_waiting: 30, order: fifo, overflow: refuse_newest", ""},
		"no other compared":  {alone, "{baseline: lifo, limit: 6}", "limit: 4, objective: 300ms", ""},
		"several tiers":      {twoTiers, "{limit: 20, objective: 400ms}", "limit: 9, objective: 300ms, deadline: 500ms, allowance: {rate: 500/s, burst: 10}", ""},
		"tenants, a reserve": {twoTiers, "{limit: 20, objective: 400ms}", "limit: 9, objective: 300ms, max_queue_bytes: 4KiB, max_wait: 90ms, exempt: 2, reserve: {sheddable: 0.1}, tenants: [{id: acme, weight: 3, max_in_use: 2}]", ", tenant: address"},
	} {
		t.Run(name, func(t *testing.T) {
			write := func(policy string) string { return scenarioFile(t, strings.Replace(c.scenario, "%", policy, 1)) }
			want, _ := played(t, write("{"+c.keys+"}"))
			classes := policyOf(t, "version: 1\nupstream: http://h\nclasses:\n  - {name: a, match: {path: /a}, "+c.keys+c.also+"}\n  - {name: b}\n")
			got, notes := played(t, write(c.before), "--config", classes, "--class", "a")
			if got != want || len(got) < 1000 {
				t.Errorf("by the file:\n%s\nwith its keys in the scenario:\n%s", got, want)
			}
			at := ""
			if strings.Contains(c.scenario, "tiers") {
				at = " at the tier front"
			}
			if note := "The policy" + at + " is that of class a of " + classes + ", in place of the scenario's own."; len(notes) != 1 || notes[0] != note {
				t.Errorf("notes %q, want %q", notes, note)
			}
			if own, notes := played(t, write(c.before)); own == want || len(notes) != 0 {
				t.Errorf("without the file it is the same, or has notes: %q", notes)
			}
			if other, said := results[want]; said {
				t.Errorf("it is as %s", other)
			}
			results[want] = name
		})
	}
}

// Of a built-in scenario it is the same, also for policies that are chosen; a file with one
// class needs no name, and the report has the command that makes it again.
func TestSimulateBuiltinByPolicyFile(t *testing.T) {
	const keys = "limit: 40, objective: 300ms, deadline: 1s"
	one := policyOf(t, "version: 1\nupstream: http://h\nobserve: true\n"+strings.ReplaceAll(keys, ", ", "\n")+"\n")
	_, text, _ := simulate("--builtin", "unbounded-minute", "--print")
	own, ok := "", false
	for line := range strings.Lines(text) {
		if own, ok = strings.CutPrefix(line, "policy: "); ok {
			break
		}
	}
	if !ok {
		t.Fatalf("it has no policy in a line:\n%s", text)
	}
	// Another limit breaks what the scenario expects of others.
	choice := []string{"--policies", "fifo,goodput", "--no-ceilings", "--repeat", "1"}
	body := func(args ...string) (figures, end string) {
		t.Helper()
		_, stdout, stderr := simulate(append(args, choice...)...)
		if !strings.Contains(stdout, "\ngoodput ") || !strings.Contains(stdout, "\nfifo ") {
			t.Fatalf("%q: %s%s", args, stdout, stderr)
		}
		figures, end, _ = strings.Cut(stdout, "\nnote: ")
		return figures, end
	}
	want, _ := body(scenarioFile(t, strings.Replace(text, own, "{"+keys+"}\n", 1)))
	got, end := body("--builtin", "unbounded-minute", "--config", one)
	if got != want {
		t.Errorf("by the file:\n%s\nwith its keys in the scenario:\n%s", got, want)
	}
	for _, part := range []string{"With observe: true", "unbounded-minute --config " + one, "--class default"} {
		if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(end, "\\\n", "")), " "), part) {
			t.Errorf("%q is not in\n%s", part, end)
		}
	}
}

// What does not go together is one sentence, and nothing is played.
func TestSimulatePolicyFileRefused(t *testing.T) {
	file := policyOf(t, "version: 1\nupstream: http://h\nlisten: {address: ':8080', max_connections: 9}\n"+
		"classes:\n  - {name: live, match: {path: /ws}, mode: stream, limit: 9}\n  - {name: raw, match: {path: /raw}, mode: connection}\n"+
		"  - {name: found, match: {path: /found}}\n  - {name: one, limit: 1}\n")
	scenario := scenarioFile(t, good)
	apart := scenarioFile(t, "version: 1\nname: apart\nlength: 1s\ntiers:\n  - {name: x, policy: {limit: 6}, service: 1ms fixed}\n  - {name: y, policy: {limit: 6}, service: 1ms fixed}\n"+
		"classes:\n  - {name: a, load: 1x}\n  - {name: b, tier: y, load: 1x}\n")
	noSlots := scenarioFile(t, strings.Replace(good, "slots: 6\n", "", 1))
	baseline := scenarioFile(t, strings.Replace(good, "policy: {limit: 6, objective: 400ms}\n", "policy: {baseline: fifo, limit: 6}\n", 1)+"expect: [fifo.p99 <= 1h]\n")
	own := scenarioFile(t, strings.Replace(strings.Replace(good, "compare: [goodput, fifo]\n", "", 1), "policy: {limit: 6, objective: 400ms}\n", "policy: {baseline: fifo, limit: 6}\n", 1)+"expect: [fifo.p99 <= 1h]\n")
	for args, want := range map[string]string{
		scenario + " --config " + file:                                       "--class is required: " + file + " has the classes live, raw, found or one, and each has a limit of its own",
		scenario + " --config " + file + " --class live":                     "--class live has mode stream: there are no service times and no queue to compute with",
		scenario + " --config " + file + " --class raw":                      "--class raw has mode connection: there are no service times",
		scenario + " --config " + file + " --class fuond":                    `--class "fuond" is unknown, did you mean found? in ` + file,
		scenario + " --class one":                                            "--class one needs --config: the policy file that has it",
		scenario + " --config " + file + ".gone --class one":                 "--config: cannot read " + file + ".gone: no such file or directory",
		noSlots + " --config " + file + " --class found":                     "s.yaml: with the policy of class found of " + file + ", limit auto has nothing to find: say how many requests the service can do at once, such as slots: 60, beside policy",
		own + " --config " + file + " --class one":                           "s.yaml: with the policy of class one of " + file + `, policy "fifo" is not compared`,
		scenario + " --policies fifo --config " + file + " --class one":      "s.yaml: --config says what goodput has, and no policy that is played is goodput: add it, as in --policies goodput,fifo",
		"--print --builtin burst --config " + file:                           "--config says what is played: with --list and --print nothing is",
		"--list --config " + file:                                            "--config says what is played",
		"--suite adaptive --config " + file:                                  "--suite has its own scenarios and laws",
		"--suite adaptive --class one":                                       "--suite has its own scenarios and laws",
		"--config - --class one -":                                           "--config - and the scenario - are both stdin",
		apart + " --config " + file + " --class one":                         "s.yaml: clients arrive at the tiers x and y, and one policy is that of one tier: write it into the scenario, under policy of the tier that is meant",
		baseline + " --config " + file + " --class one --policies fifo,lifo": "no policy that is played is goodput",
	} {
		code, stdout, stderr := simulate(strings.Fields(args)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, want %s", args, code, stderr, want)
		}
		oneSentence(t, strings.Fields(args), stderr)
	}
}
