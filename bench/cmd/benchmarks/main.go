// Command benchmarks reproduces every comparison of docs/benchmarks.md and writes it.
//
//	go run ./cmd/benchmarks                        everything, half an hour on two processors
//	go run ./cmd/benchmarks -quick                 that everything runs, in two minutes; nothing is judged
//	go run ./cmd/benchmarks -only hot,core         some of the parts: see package figures
//	go run ./cmd/benchmarks -publish               and docs/benchmarks.md shows it
//	go run ./cmd/benchmarks -from DIR              nothing is run: DIR/benchmarks.md says what is in DIR
//
// It is run in the folder bench. Each part writes a file into -to, and one that fails leaves the
// file of the last time as it was; the others go on. Parts that the machine's mood spoils come first,
// one at a time, with a pause in between; nothing else should run beside them. The other proxies
// are programs of Debian, which it installs with apt-get, saying so.
//
// It ends with 0 if every part was measured, whatever the figures are, and with 1 otherwise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goodput/goodput/bench/figures"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		stop()
		os.Exit(1)
	}
}

// A setup is what the flags say.
type setup struct {
	parts   []string
	quick   bool
	publish bool
	from    string // render what is there, and run nothing
	to      string
}

// Where things are, from the folder bench.
const (
	published = "figures/run"
	document  = "../docs/benchmarks.md"
	program   = "../cmd/goodput"
)

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("the program is not in %s: run this in the folder bench of the repository", program)
	}
	dir := s.from
	var failed error
	fresh := figures.Parts
	if dir == "" {
		dir = s.to
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if fresh, failed = measure(ctx, s); ctx.Err() != nil {
			return failed
		}
	}
	r, err := figures.Load(os.DirFS(dir))
	if err != nil {
		return errors.Join(failed, err)
	}
	text, err := figures.Render(r)
	if err != nil {
		return errors.Join(failed, err)
	}
	if dir != published {
		file := filepath.Join(dir, "benchmarks.md")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return errors.Join(failed, err)
		}
		fmt.Println("written:", file)
	}
	if s.publish {
		if err := publish(r, dir, text, fresh); err != nil {
			return errors.Join(failed, err)
		}
		fmt.Println("published:", document)
	}
	if !s.quick {
		sum(r)
	}
	return failed
}

// publish makes docs/benchmarks.md show those parts of dir that are fresh: a folder may have
// others, of an earlier run.
func publish(r *figures.Run, dir, text string, fresh []string) error {
	if err := r.Publishable(fresh); err != nil {
		return err
	}
	if dir != published {
		for _, h := range r.Heads() {
			if !slices.Contains(fresh, h.Part) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, h.Part+".json"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(published, h.Part+".json"), data, 0o644); err != nil {
				return err
			}
		}
		// What was published of a part that dir does not have stays.
		all, err := figures.Load(os.DirFS(published))
		if err != nil {
			return err
		}
		if text, err = figures.Render(all); err != nil {
			return err
		}
	}
	return os.WriteFile(document, []byte(text), 0o644)
}

// sum says what the promises came to.
func sum(r *figures.Run) {
	all := r.Judge()
	for _, v := range all {
		if v.Measured && !v.Met() {
			fmt.Println("missed:", v)
		}
	}
	met, missed, absent := figures.Count(all)
	fmt.Printf("%d numbers: %d met, %d missed, %d not measured\n", len(all), met, missed, absent)
}

// pause lets what a part left settle: connections, garbage, the temperature.
const pause = 5 * time.Second

// measure runs the parts, one after the other, and says which were measured and what failed.
func measure(ctx context.Context, s *setup) (done []string, err error) {
	work, err := os.MkdirTemp("", "benchmarks-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	w := &world{setup: s, dir: work, machine: machine()}
	w.readCommit(ctx)
	var left time.Duration
	for _, p := range s.parts {
		left += w.expected(p)
	}
	var failed []error
	for i, name := range s.parts {
		if i > 0 && !s.quick {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return done, errors.New("interrupted; parts that were done have their files")
		}
		w.say("part %d of %d, %s: about %v; about %v left in all", i+1, len(s.parts), name, w.expected(name), left)
		begun := time.Now()
		if err := w.measure(ctx, name); err != nil {
			err = fmt.Errorf("%s failed, its file is as it was: %w", name, err)
			w.say("%v", err)
			failed = append(failed, err)
		} else {
			done = append(done, name)
			w.say("%s is done after %v", name, time.Since(begun).Round(time.Second))
		}
		left -= w.expected(name)
	}
	return done, errors.Join(failed...)
}

// measure runs one part, for at most four times as long as it takes and five minutes: what hangs
// does not keep the others from being measured.
func (w *world) measure(ctx context.Context, name string) error {
	most := 4*w.expected(name) + 5*time.Minute
	part, stop := context.WithTimeout(ctx, most)
	defer stop()
	w.busy = busy()
	err := parts[name].measure(part, w)
	if err != nil && part.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("it was ended after %v: %w", most, err)
	}
	return err
}

func parse(args []string) (*setup, error) {
	s := &setup{}
	f := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	only := f.String("only", strings.Join(figures.Parts, ","), "comma-separated `parts`")
	f.BoolVar(&s.quick, "quick", false, "all of it, so short that the figures mean little; nothing is judged")
	f.BoolVar(&s.publish, "publish", false, "have docs/benchmarks.md show the result, and keep it in "+published)
	f.StringVar(&s.from, "from", "", "run nothing, and render what is in this `folder`")
	f.StringVar(&s.to, "to", "../bin/benchmarks", "`folder` for the files")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("argument %q is unknown: there are only flags", f.Arg(0))
	}
	wanted := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, p := range wanted {
		if !slices.Contains(figures.Parts, p) {
			return nil, fmt.Errorf("part %q is unknown: one of %s", p, strings.Join(figures.Parts, ", "))
		}
	}
	for _, p := range figures.Parts { // in their order, whatever that of the flag is
		if slices.Contains(wanted, p) {
			s.parts = append(s.parts, p)
		}
	}
	switch {
	case len(s.parts) == 0:
		return nil, errors.New("nothing to do: no part is wanted")
	case s.quick && s.publish:
		return nil, errors.New("a quick run is not published: its figures mean little")
	}
	return s, nil
}
