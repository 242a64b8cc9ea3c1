// Command proxies puts goodput serve beside a bare httputil.ReverseProxy, Caddy, haproxy
// and nginx: what a pass and a refusal cost, what an overload leaves, what a request takes
// while it waits.
//
//	go run ./cmd/proxies                     everything, about 20 minutes
//	go run ./cmd/proxies -quick              that everything runs, in less than a minute
//	go run ./cmd/proxies -only cost          one part of cost, overload, memory
//	go run ./cmd/proxies -format json        the same in JSON
//
// It needs Debian or Ubuntu: wrk, h2load, Caddy, haproxy and nginx are programs of their
// packages, and -install installs what is missing with apt-get, which takes root. What
// is installed is not started as a system service. Every server runs on loopback, on a
// free port, with its files in a temporary directory, and ends with the run.
//
// It ends with 0 if every number was reached, with 3 if one was not, and with 1 if
// something could not be measured; go run itself ends with 1 and prints "exit status 3". With
// -quick nothing is judged.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/bench/proxies"
)

// exitMissed says that the run was fine and a number was not.
const exitMissed = 3

var errMissed = errors.New("a number was missed")

func main() {
	if len(os.Args) > 1 && os.Args[1] == "as" {
		fmt.Fprintln(os.Stderr, "proxies:", proxies.Play(os.Args[2:]))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch err := run(ctx, os.Args[1:]); {
	case errors.Is(err, errMissed):
		stop()
		os.Exit(exitMissed)
	case err != nil:
		fmt.Fprintln(os.Stderr, "proxies:", err)
		stop()
		os.Exit(1)
	}
}

// A setup is what the flags say.
type setup struct {
	parts   []string
	names   []string // of contestants; none: all
	clock   proxies.Clock
	load    proxies.Load
	waiting int
	json    bool
	quick   bool
	install bool
	program string // goodput, if it is built already
}

// body is that of a request that waits with one.
const body = 10 << 10

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "proxies-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ps, err := programs(ctx, dir, s)
	if err != nil {
		return err
	}
	r, err := measure(ctx, ps, s)
	if err != nil {
		return err
	}
	if !s.quick {
		r.Judge()
	}
	if s.json {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", " ")
		err = out.Encode(r)
	} else {
		err = report(os.Stdout, r)
	}
	if err == nil && slices.ContainsFunc(r.Numbers, proxies.Number.Missed) {
		err = errMissed
	}
	return err
}

// programs builds goodput and finds, or installs, the others.
func programs(ctx context.Context, dir string, s *setup) (proxies.Programs, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ps := proxies.Programs{proxies.Roles: self, "goodput": s.program}
	if s.program == "" {
		ps["goodput"] = filepath.Join(dir, "goodput")
		build := exec.CommandContext(ctx, "go", "build", "-o", ps["goodput"], ".")
		build.Dir = filepath.Join("..", "cmd", "goodput")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build in %s, which is where it is from the folder bench: %w: %s", build.Dir, err, out)
		}
	}
	missing := ps.Missing(s.contestants(slices.Concat(proxies.Passing(), proxies.Limiting(s.load.Slots))))
	if len(missing) == 0 {
		return ps, nil
	}
	install := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	if !s.install {
		return nil, fmt.Errorf("not installed: %s; -install does, with root: apt-get %s", strings.Join(missing, ", "), strings.Join(install, " "))
	}
	fmt.Fprintln(os.Stderr, "this installs with apt-get, without starting any of it:", strings.Join(missing, " "))
	apt := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "RUNLEVEL=1", "DEBIAN_FRONTEND=noninteractive") // RUNLEVEL=1 keeps Debian from starting what it installs
		return cmd.CombinedOutput()
	}
	out, err := apt(install...)
	if err != nil { // on a fresh machine apt knows no packages, on an old one outdated ones
		if out, err = apt("update"); err == nil {
			out, err = apt(install...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("apt-get: %w: %s", err, out)
	}
	return ps, nil
}

func measure(ctx context.Context, ps proxies.Programs, s *setup) (*proxies.Report, error) {
	passing, limiting := s.contestants(proxies.Passing()), s.contestants(proxies.Limiting(s.load.Slots))
	r := &proxies.Report{Processors: runtime.GOMAXPROCS(0), Go: runtime.Version(), Versions: map[string]string{}}
	for _, c := range slices.Concat(passing, limiting) {
		if v := ps.Version(c); v != "" {
			r.Versions[c.Program] = v
		}
	}
	var err error
	if slices.Contains(s.parts, "cost") {
		if r.Costs, err = ps.Costs(ctx, passing, s.clock); err != nil {
			return nil, err
		}
	}
	if slices.Contains(s.parts, "overload") {
		if r.Overloads, err = ps.Overloads(ctx, limiting, s.load); err != nil {
			return nil, err
		}
	}
	if slices.Contains(s.parts, "memory") {
		if r.Memories, err = ps.Memories(ctx, s.waiting, body, s.clock.Say); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// contestants returns those of all that are wanted.
func (s *setup) contestants(all []proxies.Contestant) []proxies.Contestant {
	if len(s.names) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(c proxies.Contestant) bool { return !slices.Contains(s.names, c.Name) })
}

var parts = []string{"cost", "overload", "memory"}

func parse(args []string) (*setup, error) {
	s := &setup{}
	f := flag.NewFlagSet("proxies", flag.ContinueOnError)
	only := f.String("only", strings.Join(parts, ","), "comma-separated `parts`")
	names := f.String("contestants", "", "comma-separated `names`; all of them without")
	f.BoolVar(&s.quick, "quick", false, "all of it, so short that the figures mean little; nothing is judged")
	f.BoolVar(&s.install, "install", false, "install what is missing with apt-get")
	f.StringVar(&s.program, "goodput", "", "`file` of goodput; without, it is built")
	format := f.String("format", "text", "text or json")
	f.IntVar(&s.clock.Passes, "passes", 6, "of the costs, 1 to 100")
	f.DurationVar(&s.clock.Length, "pass", 2*time.Second, "how long a contestant runs in a pass, whole seconds, 1s to 1m")
	f.IntVar(&s.load.Slots, "slots", 60, "of the service that is overloaded, 2 to 1,000; on two processors that do something else beside, 20")
	loads := f.String("loads", "1.5,3,10", "comma-separated `multiples` of what the slots can do")
	f.DurationVar(&s.load.Length, "length", 12*time.Second, "of each load, in whole half seconds, 1s to 10m; 60 slots answer 14,400 in 12s, which vary by 0.8 %")
	f.IntVar(&s.load.Rounds, "rounds", 2, "of the loads, 1 to 100")
	f.IntVar(&s.load.Tries, "tries", 3, "of a load that was void, 1 to 100")
	f.Uint64Var(&s.load.Seed, "seed", 1, "of arrivals and work")
	f.IntVar(&s.waiting, "waiting", 5000, "requests that wait, 100 to 9,000")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	s.load.Service, s.load.Warm = 50*time.Millisecond, 6*time.Second // an adaptive limit has found its place in that
	if s.quick {
		s.clock.Passes, s.clock.Length = 1, time.Second
		s.load.Slots, s.load.Length, s.load.Warm = 10, time.Second, 500*time.Millisecond
		s.load.Rounds, s.load.Tries = 1, 1
		*loads, s.waiting = "3", 500
	}
	s.clock.Say = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
	}
	s.load.Say = s.clock.Say
	switch {
	case *format != "text" && *format != "json":
		return nil, fmt.Errorf("format %q is unknown: text or json", *format)
	case s.clock.Passes < 1 || s.clock.Passes > 100:
		return nil, fmt.Errorf("passes %d are out of range: 1 to 100", s.clock.Passes)
	case s.clock.Length < time.Second || s.clock.Length > time.Minute || s.clock.Length%time.Second != 0:
		return nil, fmt.Errorf("pass %v is out of range: whole seconds, 1s to 1m", s.clock.Length)
	case s.load.Slots < 2 || s.load.Slots > 1000:
		return nil, fmt.Errorf("slots %d are out of range: 2 to 1,000", s.load.Slots)
	case s.load.Length < time.Second || s.load.Length > 10*time.Minute || s.load.Length%(500*time.Millisecond) != 0:
		return nil, fmt.Errorf("length %v is out of range: whole half seconds, 1s to 10m", s.load.Length)
	case s.load.Rounds < 1 || s.load.Rounds > 100:
		return nil, fmt.Errorf("rounds %d are out of range: 1 to 100", s.load.Rounds)
	case s.load.Tries < 1 || s.load.Tries > 100:
		return nil, fmt.Errorf("tries %d are out of range: 1 to 100", s.load.Tries)
	case s.waiting < 100 || s.waiting > 9000:
		return nil, fmt.Errorf("waiting %d are out of range: 100 to 9,000", s.waiting)
	}
	s.json = *format == "json"
	return s, s.lists(*only, *names, *loads)
}

// lists reads the flags that are lists.
func (s *setup) lists(only, names, loads string) error {
	s.parts = split(only)
	for _, p := range s.parts {
		if !slices.Contains(parts, p) {
			return fmt.Errorf("part %q is unknown: one of %s", p, strings.Join(parts, ", "))
		}
	}
	s.names = split(names)
	var known []string
	for _, c := range slices.Concat(proxies.Passing(), proxies.Limiting(s.load.Slots)) {
		if !slices.Contains(known, c.Name) {
			known = append(known, c.Name)
		}
	}
	for _, name := range s.names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("contestant %q is unknown: one of %s", name, strings.Join(known, ", "))
		}
	}
	for _, word := range split(loads) {
		load, err := strconv.ParseFloat(word, 64)
		if err != nil || !(load >= 0.01 && load <= 100) {
			return fmt.Errorf("load %q is out of range: 0.01 to 100", word)
		}
		s.load.Multiple = append(s.load.Multiple, load)
	}
	return nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}
