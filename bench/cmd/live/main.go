// Command live plays loads against limiters over real HTTP and prints what became of
// the requests, with the model of the same requests beside goodput's own.
//
//	go run ./cmd/live -json live.json
//
// With its defaults: 60 slots of 50 ms, exponential, that the limiters do not know;
// 0.5, 1.5, 3 and 10 times what those can do for 20 s each from a cold start,
// 1.5 times while the slots are 60, 20 and 60 for 15 s each, and 0.9 times while nothing
// moves for 5 s and callers ask three times. 16 minutes, in which the
// machine should do nothing else: a run that it spoils is void and is played again. See
// package live.
//
// Named files are read instead, and what is in them printed together:
//
//	go run ./cmd/live monday.json tuesday.json
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/bench/live"
)

// A setup is what the flags say.
type setup struct {
	contestants []live.Contestant
	plans       []live.Plan
	tries       int
	file        string
	read        []string // to be printed, and nothing played
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	var results []*live.Result
	if len(s.read) > 0 {
		results, err = read(s.read)
	} else {
		results, err = play(ctx, s)
	}
	if err != nil {
		return err
	}
	if err := report(os.Stdout, results); err != nil || s.file == "" {
		return err
	}
	data, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.file, append(data, '\n'), 0o644)
}

// play plays every plan with every contestant. The contestants of a plan follow one
// another, so that what else the machine does hits them alike.
func play(ctx context.Context, s *setup) ([]*live.Result, error) {
	// The garbage of the client is most of it, and none of it is a limiter's.
	debug.SetGCPercent(400)
	var results []*live.Result
	for _, p := range s.plans {
		for _, c := range s.contestants {
			var r *live.Result
			var err error
			for try := 0; try < s.tries && (try == 0 || r.Void != ""); try++ {
				fmt.Fprintf(os.Stderr, "%s %s, %s, for %v\n", time.Now().Format(time.TimeOnly), p.Name, c.Name, p.Length())
				if r, err = live.Run(ctx, c, p); err != nil {
					return nil, err
				}
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				debug.FreeOSMemory() // what one left is not the next one's to collect
			}
			if c.Law != nil && r.Void == "" && p.Attempts <= 1 {
				if err := live.Model(c, p, r); err != nil {
					return nil, err
				}
			}
			results = append(results, r)
		}
	}
	return results, nil
}

// read returns the results in files, in their order.
func read(files []string) ([]*live.Result, error) {
	var all []*live.Result
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var some []*live.Result
		if err := json.Unmarshal(data, &some); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

func parse(args []string) (*setup, error) {
	f := flag.NewFlagSet("live", flag.ContinueOnError)
	file := f.String("json", "", "also write the results to this `file`, with series of half a second")
	names := f.String("contestants", "", "comma-separated `names`; all of them without")
	loads := f.String("loads", "0.5,1.5,3,10", "comma-separated `multiples` of what the slots can do, from a cold start; \"\" for none")
	step := f.Float64("step", 1.5, "`multiple` during which the slots are all, a third, and all again; 0 for none")
	stall := f.Float64("stall", 0.9, "`multiple` during which the service stands still for 5s, with callers that ask three times; 0 for none")
	slots := f.Int("slots", 60, "of the service, 3 to 10,000")
	service := f.Duration("service", 50*time.Millisecond, "mean of the exponential service time, 1ms to 10s")
	length := f.Duration("length", 20*time.Second, "of each load, 1s to 1h")
	phase := f.Duration("phase", 15*time.Second, "of the step, 1s to 1h")
	seed := f.Uint64("seed", 1, "of arrivals and work")
	tries := f.Int("tries", 3, "of a run that is void, 1 to 100")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case *slots < 3 || *slots > 10_000:
		return nil, fmt.Errorf("slots %d are out of range: 3 to 10,000", *slots)
	case *service < time.Millisecond || *service > 10*time.Second:
		return nil, fmt.Errorf("service %v is out of range: 1ms to 10s", *service)
	case *tries < 1 || *tries > 100:
		return nil, fmt.Errorf("tries %d are out of range: 1 to 100", *tries)
	case *stall != 0 && !(*stall >= 0.01 && *stall <= 100):
		return nil, fmt.Errorf("stall %v is out of range: 0.01 to 100, or 0 for none", *stall)
	case *step != 0 && !(*step >= 0.01 && *step <= 100):
		return nil, fmt.Errorf("step %v is out of range: 0.01 to 100, or 0 for none", *step)
	}
	for _, d := range []time.Duration{*length, *phase} {
		if d < time.Second || d > time.Hour || d%(500*time.Millisecond) != 0 {
			return nil, fmt.Errorf("length or phase %v is out of range: whole half seconds, 1s to 1h", d)
		}
	}
	s := &setup{tries: *tries, file: *file, read: f.Args()}
	for _, word := range strings.FieldsFunc(*loads, func(r rune) bool { return r == ',' }) {
		load, err := strconv.ParseFloat(word, 64)
		if err != nil || !(load >= 0.01 && load <= 100) {
			return nil, fmt.Errorf("load %q is out of range: 0.01 to 100", word)
		}
		s.plans = append(s.plans, live.Cold(load, *slots, *service, *length, *seed))
	}
	if *step > 0 {
		s.plans = append(s.plans, live.Step(*step, *slots, *service, *phase, *seed))
	}
	if *stall > 0 {
		s.plans = append(s.plans, live.Stall(*stall, *slots, *service, *seed))
	}
	if len(s.plans) == 0 {
		return nil, fmt.Errorf("nothing to play: no load, no step and no stall")
	}
	var err error
	s.contestants, err = chosen(live.Contestants(*slots), *names)
	return s, err
}

// chosen returns those of all that are named, all without names.
func chosen(all []live.Contestant, names string) ([]live.Contestant, error) {
	if names == "" {
		return all, nil
	}
	var some []live.Contestant
	for word := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(c live.Contestant) bool { return c.Name == word })
		if i < 0 {
			known := make([]string, len(all))
			for i, c := range all {
				known[i] = c.Name
			}
			return nil, fmt.Errorf("contestant %q is unknown: one of %s", word, strings.Join(known, ", "))
		}
		some = append(some, all[i])
	}
	return some, nil
}
