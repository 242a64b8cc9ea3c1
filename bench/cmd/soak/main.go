// Command soak has goodput serve work for an hour at 1.2 times of what is behind it, with reloads,
// clients that reset, and a restart of a server in each minute, and says whether its memory stays
// as it is, whether nothing is left when nobody asks, and whether its counters add up.
//
//	go run ./cmd/soak                          an hour
//	go run ./cmd/soak -length 3m -rest 1m      that it works
//	go run ./cmd/soak -from soak.json          print and judge a run again
//
// Everything runs on loopback, on free ports, with files in a temporary directory of at most 100
// MB, and takes a third of a core. It ends with 0 if every criterion was met, with 3 if one was
// not or was not measured (but for goodput and p99, which are reported and do not decide: the other work of the machine
// is in them), and with 1 if the run could not be made; go run itself ends with 1 and prints "exit status
// 3". See package soak.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/goodput/goodput/bench/soak"
)

// exitMissed says that the run was fine and a criterion was not met.
const exitMissed = 3

var errMissed = errors.New("a criterion is not met")

func main() {
	if args := os.Args; len(args) == 4 && args[1] == "as" && args[2] == "server" {
		fmt.Fprintln(os.Stderr, "soak:", soak.Serve(args[3]))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch err := run(ctx, os.Args[1:]); {
	case errors.Is(err, errMissed):
		stop()
		os.Exit(exitMissed)
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1)
	}
}

// A setup is what the flags say.
type setup struct {
	run       soak.Run
	page, out string
	note      string
	read      string
	command   string
}

func parse(args []string) (*setup, error) {
	s := &setup{run: soak.Run{}}
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.DurationVar(&s.run.Length, "length", time.Hour, "of the run: whole minutes, 1m to 24h")
	f.DurationVar(&s.run.Every, "rest", 10*time.Minute, "between two times without load: whole minutes")
	f.DurationVar(&s.run.Warm, "warm", soak.WarmUp, "that is not judged, at the start: less than half of the length")
	f.Uint64Var(&s.run.Seed, "seed", 0, "of everything that is random; 0: one of its own")
	f.StringVar(&s.run.Program, "program", "", "goodput, if it is built already")
	f.StringVar(&s.page, "page", "", "write the result to this `file`, in Markdown; without it to stdout")
	f.StringVar(&s.out, "json", "", "write what was seen to this `file`, to be read by -from")
	f.StringVar(&s.read, "from", "", "judge what is in this `file`, and play nothing")
	f.StringVar(&s.note, "note", "", "`text` of the page, such as why a criterion was missed")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	r := s.run
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("%q is no flag", f.Arg(0))
	case r.Length < time.Minute || r.Length > 24*time.Hour || r.Length%time.Minute != 0:
		return nil, fmt.Errorf("length %v is out of range: whole minutes, 1m to 24h", r.Length)
	case r.Every < time.Minute || r.Every%time.Minute != 0:
		return nil, fmt.Errorf("rest %v is out of range: whole minutes, 1m or more", r.Every)
	case r.Warm < 0 || r.Warm > soak.WarmUp || 2*r.Warm > r.Length:
		return nil, fmt.Errorf("warm %v is out of range: 0 to %v, and at most half of the length of %v", r.Warm, soak.WarmUp, r.Length)
	}
	if s.run.Seed == 0 {
		s.run.Seed = rand.Uint64()
	}
	s.command = fmt.Sprintf("go run ./cmd/soak -length %v -rest %v -warm %v -seed %d", r.Length, r.Every, r.Warm, s.run.Seed)
	return s, nil
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	r, err := s.report(ctx)
	if err != nil {
		return err
	}
	if s.note != "" {
		r.Note = s.note
	}
	cs := soak.Judge(r)
	text := soak.Page(r, cs)
	if s.page == "" {
		_, err = os.Stdout.WriteString(text)
	} else {
		err = os.WriteFile(s.page, []byte(text), 0o644)
	}
	if err != nil {
		return err
	}
	return verdict(cs)
}

// verdict says which criteria are not met, and is errMissed if one of them decides.
func verdict(cs []soak.Criterion) (err error) {
	if apart := soak.Missed(cs, true); len(apart) > 0 {
		fmt.Fprintln(os.Stderr, "judged apart, and not met:", strings.Join(apart, ", "))
	}
	if missed := soak.Missed(cs, false); len(missed) > 0 {
		fmt.Fprintln(os.Stderr, "not met:", strings.Join(missed, ", "))
		err = errMissed
	}
	if unknown := soak.Unknown(cs); len(unknown) > 0 {
		fmt.Fprintln(os.Stderr, "not measured in this run:", strings.Join(unknown, ", "))
		err = errMissed
	}
	return err
}

// report reads a run, or plays one.
func (s *setup) report(ctx context.Context) (*soak.Report, error) {
	if s.read != "" {
		data, err := os.ReadFile(s.read)
		if err != nil {
			return nil, err
		}
		r := new(soak.Report)
		if err := json.Unmarshal(data, r); err != nil {
			return nil, fmt.Errorf("%s: %w", s.read, err)
		}
		return r, nil
	}
	r, err := s.play(ctx)
	if err != nil || s.out == "" {
		return r, err
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, err
	}
	return r, os.WriteFile(s.out, append(data, '\n'), 0o644)
}

func (s *setup) play(ctx context.Context) (*soak.Report, error) {
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s.run.Dir = dir
	if s.run.Self, err = os.Executable(); err != nil {
		return nil, err
	}
	if s.run.Program == "" {
		s.run.Program = filepath.Join(dir, "goodput")
		build := exec.CommandContext(ctx, "go", "build", "-o", s.run.Program, ".")
		build.Dir = filepath.Join("..", "cmd", "goodput")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build in %s, which is where it is from the folder bench: %w: %s", build.Dir, err, out)
		}
	}
	s.run.Say = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	s.run.Say("seed %d, files in %s", s.run.Seed, dir)
	r, err := soak.Play(ctx, s.run)
	if err != nil {
		return nil, err
	}
	r.Command = s.command
	if r.Commit, err = commit(ctx); err != nil {
		r.Commit = "unknown"
	}
	return r, nil
}

// commit is what the tree is at, with a word if it has been changed since.
func commit(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	return strings.TrimSpace(string(out)), err
}
