package admission

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts in testdata print into them")

// TestScripts plays the stories of testdata. A story is a sequence of commands,
// one a line, each followed by the lines that it prints, which begin with a tab.
// Lines that begin with # tell what it is about. After every command the
// invariants are checked.
//
//	new limit=1 objective=400ms ...    a core; the keys are those of configure
//	at 120ms | pass 20ms               moves the clock, to or by
//	wait 2s                            the same, and rings the alarms on the way, and
//	                                   calls when the allowance is there
//	offer a b cost=2 deadline=2s ...   one request each; the keys are those of request
//	release a b [outcome=late]         they end; with charge=5 they cost that
//	cancel a client                    its caller left
//	alarm a                            its alarm rings
//	observe 50ms n=200 [cost=1] [hold=60ms]
//	setlimit 3 | reconfigure key=value ... | drain [queue] | absent | present
//	lend | settle admitted=3 completed=1
//	run for=1s every=4ms serve=50ms    a crowd: see crowd
//	stats | outcomes | refusals | derivation | retry queue_full
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories in testdata", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { checkStory(t, file) })
	}
}

// checkStory plays one file and requires that it prints what it says.
func checkStory(t *testing.T, file string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := playStory(t, want)
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	compareLines(t, file, got, want)
}

func compareLines(t *testing.T, file string, got, want []byte) {
	t.Helper()
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g):
			t.Fatalf("%s:%d: missing %q", file, i+1, w[i])
		case i >= len(w):
			t.Fatalf("%s:%d: too much: %q", file, i+1, g[i])
		case g[i] != w[i]:
			t.Fatalf("%s:%d: got  %q\nwant %q", file, i+1, g[i], w[i])
		}
	}
}

// playStory returns the story with what its commands print.
func playStory(t *testing.T, story []byte) []byte {
	var out bytes.Buffer
	s := &stage{cast: map[string]*actor{}}
	for line := range strings.Lines(string(story)) {
		if strings.HasPrefix(line, "\t") {
			continue // what it printed before
		}
		out.WriteString(line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		s.out = nil
		if err := s.do(words[0], words[1:]); err != nil {
			s.say("error: %v", err)
		}
		s.collect()
		for _, l := range s.out {
			out.WriteString("\t" + l + "\n")
		}
		if s.core != nil && s.core.lent == 0 {
			if err := s.core.Check(); err != nil {
				t.Fatalf("after %q: %v", strings.TrimSpace(line), err)
			}
		}
	}
	return out.Bytes()
}

// A stage is where a story plays.
type stage struct {
	core *Core
	cfg  Config
	now  time.Duration
	cast map[string]*actor
	crowd
	lent int
	out  []string
}

// An actor is a request with a name.
type actor struct {
	name   string
	cost   int
	exempt bool
	waiter *Waiter       // while it waits
	ends   time.Duration // of one in the crowd
}

func (s *stage) say(format string, args ...any) { s.out = append(s.out, fmt.Sprintf(format, args...)) }

// splitArgs separates the names from the key=value words. a1..a4 are four names.
func splitArgs(args []string) (names []string, opts [][2]string) {
	for _, a := range args {
		if k, v, ok := strings.Cut(a, "="); ok {
			opts = append(opts, [2]string{k, v})
			continue
		}
		from, to, ok := strings.Cut(a, "..")
		if !ok {
			names = append(names, a)
			continue
		}
		stem := strings.TrimRight(from, "0123456789")
		i, _ := strconv.Atoi(from[len(stem):])
		last, _ := strconv.Atoi(strings.TrimPrefix(to, stem))
		for ; i <= last; i++ {
			names = append(names, stem+strconv.Itoa(i))
		}
	}
	return names, opts
}

func (s *stage) do(verb string, args []string) error {
	names, opts := splitArgs(args)
	switch verb {
	case "new", "reconfigure":
		return s.configure(verb, opts)
	case "at", "pass", "wait":
		return s.advance(verb, names[0])
	case "offer":
		return s.offer(names, opts)
	case "release":
		return s.release(names, opts)
	case "cancel", "alarm":
		return s.cancel(verb, names)
	case "observe":
		return s.observe(names[0], opts)
	case "setlimit":
		n, err := strconv.Atoi(names[0])
		if err != nil {
			return err
		}
		return s.core.SetLimit(s.now, n)
	case "absent", "present":
		s.core.SetPresent(s.now, verb == "present")
	case "drain":
		s.core.Drain(s.now, slices.Contains(names, "queue"))
	case "run":
		return s.run(opts)
	case "lend":
		s.lent = s.core.Lend()
		s.say("%d lent", s.lent)
	case "settle":
		return s.settle(opts)
	default:
		return s.show(verb, names)
	}
	return nil
}

func (s *stage) configure(verb string, opts [][2]string) error {
	cfg := s.cfg
	if verb == "new" {
		cfg = Config{}
	}
	for _, o := range opts {
		if err := setConfig(&cfg, o[0], o[1]); err != nil {
			return err
		}
	}
	if verb == "new" {
		core, err := New(cfg)
		if err != nil {
			return err
		}
		*s = stage{core: core, cast: map[string]*actor{}}
	} else if err := s.core.Reconfigure(s.now, cfg); err != nil {
		return err
	}
	s.cfg = cfg
	return nil
}

// setConfig sets one field of a Config from its word.
func setConfig(cfg *Config, key, value string) error {
	d, dErr := time.ParseDuration(value)
	n, nErr := strconv.Atoi(value)
	switch key {
	case "limit":
		cfg.Limit = limit.Fixed(n)
	case "objective":
		cfg.Objective = d
	case "service":
		cfg.Service = d
	case "maxwait":
		cfg.MaxWait = d
	case "maxabsence":
		cfg.MaxAbsence = d
	case "rate":
		f, err := strconv.ParseFloat(value, 64)
		cfg.Allowance.Rate = f
		return err
	case "burst":
		f, err := strconv.ParseFloat(value, 64)
		cfg.Allowance.Burst = f
		return err
	case "percentile":
		f, err := strconv.ParseFloat(value, 64)
		cfg.Percentile = f
		return err
	case "depth":
		cfg.Depth = n
		if value == "none" {
			cfg.Depth, nErr = NoQueue, nil
		}
	case "items":
		cfg.MaxItems = n
	case "bytes":
		cfg.MaxBytes = int64(n)
	case "exempt":
		cfg.Exempt = n
	case "overflow":
		return word(&cfg.Overflow, value, Displace, RefuseNewest, EvictOldest, Block)
	case "order":
		return word(&cfg.Order, value, Auto, FIFO, NewestFirst, EDF)
	default:
		return fmt.Errorf("no such key: %s", key)
	}
	if nErr != nil && dErr != nil {
		return nErr
	}
	return nil
}

// word sets field to the value that prints as the given word.
func word[T fmt.Stringer](field *T, name string, values ...T) error {
	for _, v := range values {
		if v.String() == name {
			*field = v
			return nil
		}
	}
	return fmt.Errorf("no such word: %s", name)
}

// advance moves the clock. With wait it rings the alarms that are due on the
// way, as a driver's timers do.
func (s *stage) advance(verb, by string) error {
	d, err := time.ParseDuration(by)
	if err != nil {
		return err
	}
	if verb != "at" {
		d += s.now
	}
	for verb == "wait" {
		var next *actor
		for _, a := range s.cast {
			if a.waiter != nil && a.waiter.Alarm() <= d && (next == nil || sooner(a, next)) {
				next = a
			}
		}
		if at := s.core.RefillAt(); at <= d && (next == nil || at < next.waiter.Alarm()) {
			s.now = at
			if s.core.absence.is {
				s.say("at %v the absence has lasted", s.now)
			} else {
				s.say("at %v the allowance is there", s.now)
			}
			s.core.Dispatch(s.now)
			s.collect()
			continue
		}
		if next == nil {
			break
		}
		s.now = max(s.now, next.waiter.Alarm())
		s.say("at %v the alarm of %s rings", s.now, next.name)
		if err := s.cancel("alarm", []string{next.name}); err != nil {
			return err
		}
		s.collect()
	}
	s.now = d
	return nil
}

func sooner(a, b *actor) bool {
	if x, y := a.waiter.Alarm(), b.waiter.Alarm(); x != y {
		return x < y
	}
	return a.name < b.name
}
