package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/goodput/goodput/bench/figures"
	"github.com/goodput/goodput/bench/figures/passes"
	"github.com/goodput/goodput/bench/figures/simulated"
	"github.com/goodput/goodput/bench/live"
	"github.com/goodput/goodput/bench/proxies"
	"github.com/goodput/goodput/bench/virtual"
)

// A part measures something and saves its file. How long it takes is on two processors of
// 2024.
type part struct {
	takes, quick time.Duration
	measure      func(context.Context, *world) error
}

var parts = map[string]part{
	figures.PartHot:       {180 * time.Second, 20 * time.Second, hot},
	figures.PartGenerator: {30 * time.Second, 10 * time.Second, generator},
	figures.PartProxies:   {680 * time.Second, 50 * time.Second, others},
	figures.PartLive:      {410 * time.Second, 20 * time.Second, overHTTP},
	figures.PartDemo:      {75 * time.Second, 10 * time.Second, demo},
	figures.PartCore:      {180 * time.Second, 10 * time.Second, core},
	figures.PartVirtual:   {140 * time.Second, 10 * time.Second, inVirtualTime},
	figures.PartLaws:      {120 * time.Second, 10 * time.Second, laws},
}

func (w *world) expected(name string) time.Duration {
	if w.setup.quick {
		return parts[name].quick
	}
	return parts[name].takes
}

// Modules of the rivals, whose versions are those of go.mod.
var modules = []string{
	"golang.org/x/sync", "github.com/failsafe-go/failsafe-go", "github.com/go-kratos/aegis", "github.com/zeromicro/go-zero",
}

// hot runs the benchmarks in passes, each of which has every contestant once.
func hot(ctx context.Context, w *world) error {
	n, each := 4, "100ms"
	if w.setup.quick {
		n, each = 1, "100x"
	}
	bin := filepath.Join(w.dir, "bench.test")
	if _, err := w.output(ctx, "", "go", "test", "-c", "-o", bin, "."); err != nil {
		return err
	}
	begun := time.Now()
	var all bytes.Buffer
	for pass := range n {
		w.say("pass %d of %d", pass+1, n)
		out, err := w.output(ctx, "", bin, "-test.run", "^$", "-test.bench", ".", "-test.benchtime", each, "-test.cpu", "1,2")
		if err != nil {
			return err
		}
		all.Write(out)
	}
	rows, err := passes.Read(&all)
	if err != nil {
		return err
	}
	h := w.head(figures.PartHot, begun, fmt.Sprintf("cd bench && GOWORK=off go test -run '^$' -bench . -benchtime %s -cpu 1,2 . (%d times)", each, n))
	if h.Versions, err = w.versions(ctx); err != nil {
		return err
	}
	return figures.Save(w.setup.to, &figures.File[figures.Hot]{Head: h, Data: figures.Hot{Time: each, Rows: rows}})
}

// generator runs the benchmark of the generator of verify, on one processor.
func generator(ctx context.Context, w *world) error {
	count := "3"
	if w.setup.quick {
		count = "1"
	}
	begun := time.Now()
	args := []string{"test", "-run", "^$", "-bench", "Generator/http2=/rate=10000$", "-benchtime", "2x", "-cpu", "1", "-count", count, "./internal/load"}
	out, err := w.output(ctx, program, "go", args...)
	if err != nil {
		return err
	}
	rows, err := passes.Read(bytes.NewReader(out))
	if err != nil {
		return err
	}
	h := w.head(figures.PartGenerator, begun, "cd cmd/goodput && go test -run '^$' -bench 'Generator/http2=/rate=10000$' -benchtime 2x -cpu 1 -count "+count+" ./internal/load")
	return figures.Save(w.setup.to, &figures.File[[]*passes.Row]{Head: h, Data: rows})
}

// others runs the comparison with other proxies: two rounds of 3x and 10x beside 5 passes of
// the costs.
func others(ctx context.Context, w *world) error {
	args := []string{"-install", "-passes", "5", "-loads", "3,10", "-length", "10s"}
	if w.setup.quick {
		args = []string{"-install", "-quick"}
	}
	begun := time.Now()
	bin, err := w.build(ctx, "./cmd/proxies")
	if err != nil {
		return err
	}
	out, err := w.output(ctx, "", bin, append(args, "-format", "json")...)
	if err != nil && exitCode(err) != exitMissed {
		return err
	}
	r := new(proxies.Report)
	if err := json.Unmarshal(out, r); err != nil {
		return fmt.Errorf("its result is no JSON: %w", err)
	}
	for _, o := range r.Overloads {
		o.Series = nil // half of a megabyte that no table shows
	}
	h := w.head(figures.PartProxies, begun, "cd bench && GOWORK=off go run ./cmd/proxies "+strings.Join(args, " "))
	h.Versions = r.Versions
	return figures.Save(w.setup.to, &figures.File[*proxies.Report]{Head: h, Data: r})
}

// overHTTP runs the comparison over real HTTP: 3x from cold and slots that change at 1.5x with
// everybody, and a stall with ours and the two that represent the others: a limit that refuses
// at once, and one that lets everybody in.
func overHTTP(ctx context.Context, w *world) error {
	all := [][]string{
		{"-loads", "3", "-length", "10s", "-phase", "11s", "-stall", "0"},
		{"-loads", ",", "-step", "0", "-contestants", "goodput-auto,goodput-told,failsafe-cold,kratos-bbr"},
	}
	if w.setup.quick {
		all = [][]string{{"-loads", "3", "-length", "1s", "-step", "0", "-stall", "0", "-tries", "1"}}
	}
	begun := time.Now()
	bin, err := w.build(ctx, "./cmd/live")
	if err != nil {
		return err
	}
	var results []*live.Result
	var commands []string
	for i, args := range all {
		file := filepath.Join(w.dir, fmt.Sprintf("live-%d.json", i))
		if _, err := w.output(ctx, "", bin, append([]string{"-json", file}, args...)...); err != nil {
			return err
		}
		some, err := read[[]*live.Result](file)
		if err != nil {
			return err
		}
		results = append(results, some...)
		commands = append(commands, "GOWORK=off go run ./cmd/live "+strings.Join(args, " "))
	}
	for _, r := range results {
		r.Series = nil
	}
	h := w.head(figures.PartLive, begun, "cd bench && "+strings.Join(commands, " && "))
	if h.Versions, err = w.versions(ctx); err != nil {
		return err
	}
	return figures.Save(w.setup.to, &figures.File[[]*live.Result]{Head: h, Data: results})
}

// demo runs the demo three times: at 3x, at 10x, and with a limit that finds itself.
func demo(ctx context.Context, w *world) error {
	length := "10s"
	if w.setup.quick {
		length = "1s"
	}
	bin, err := w.goodput(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	var all []*figures.Demo
	for _, flags := range []string{"", "--load 10", "--limit auto"} {
		w.say("demo %s", flags)
		out, err := w.output(ctx, "", bin, append([]string{"demo", "--format", "json", "--duration", length}, strings.Fields(flags)...)...)
		d := &figures.Demo{Flags: flags}
		if wrong := json.Unmarshal(out, d); wrong != nil { // a demo that is void ends with an error, and says so
			return fmt.Errorf("demo %s: its result is no JSON: %w", flags, errors.Join(wrong, err))
		}
		all = append(all, d)
		if w.setup.quick {
			break
		}
	}
	return figures.Save(w.setup.to, &figures.File[[]*figures.Demo]{Head: w.head(figures.PartDemo, begun, "bin/goodput demo --duration "+length+" (and with --load 10, --limit auto)"), Data: all})
}

// core measures what is promised of the core, in this process.
func core(ctx context.Context, w *world) error {
	s := simulated.Setup{
		Seeds: 3, Short: 1, Say: w.say,
		Azure: filepath.Join(program, "internal/accesslog/testdata/traces/AzureLLMInferenceTrace_2023_code.csv"),
	}
	if w.setup.quick {
		s.Seeds, s.Short = 1, 0.02
	}
	begun := time.Now()
	r, err := simulated.Measure(ctx, s)
	if err != nil {
		return err
	}
	return figures.Save(w.setup.to, &figures.File[simulated.Result]{Head: w.head(figures.PartCore, begun, "cd bench && GOWORK=off go run ./cmd/benchmarks -only core"), Data: *r})
}

// inVirtualTime runs the comparison in process, as many scenes at once as there are
// processors: what happens in virtual time is the same however long it takes.
func inVirtualTime(ctx context.Context, w *world) error {
	seeds, scenes := "3", figures.Scenes()
	if w.setup.quick {
		seeds, scenes = "1", []string{"deadline 400ms 1x"}
	}
	bin := filepath.Join(w.dir, "virtual.test")
	if _, err := w.output(ctx, "", "go", "test", "-c", "-o", bin, "./virtual"); err != nil {
		return err
	}
	begun := time.Now()
	tables, errs := make([]virtual.Table, len(scenes)), make([]error, len(scenes))
	var all sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, scene := range scenes {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			w.say("scenes called %q", scene)
			file := filepath.Join(w.dir, fmt.Sprintf("virtual-%d.json", i))
			// It reads go.mod from its own folder.
			if _, errs[i] = w.output(ctx, "virtual", bin, "-test.run", "^TestTable$", "-test.timeout", "40m", "-table", file, "-seeds", seeds, "-scene", scene); errs[i] == nil {
				tables[i], errs[i] = read[virtual.Table](file)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	h := w.head(figures.PartVirtual, begun, "cd bench && GOWORK=off go test ./virtual -run TestTable -timeout 40m -table FILE -seeds "+seeds)
	var err error
	if h.Versions, err = w.versions(ctx); err != nil {
		return err
	}
	return figures.Save(w.setup.to, &figures.File[virtual.Table]{Head: h, Data: figures.Join(tables)})
}

// laws runs the scenarios of limits that find themselves.
func laws(ctx context.Context, w *world) error {
	args := []string{"simulate", "--suite", "adaptive"}
	if w.setup.quick {
		args = append(args, "--quick", "--law", "auto,vegas", "--only", "load-0.5x,over-1.5x")
	}
	bin, err := w.goodput(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	out, err := w.output(ctx, "", bin, append(args, "--format", "json")...)
	if err != nil && exitCode(err) != exitMissed {
		return err
	}
	var l figures.Laws
	if err := json.Unmarshal(out, &l); err != nil {
		return fmt.Errorf("its result is no JSON: %w", err)
	}
	return figures.Save(w.setup.to, &figures.File[figures.Laws]{Head: w.head(figures.PartLaws, begun, "bin/goodput "+strings.Join(args, " ")), Data: l})
}

// exitMissed is how the commands end that judge what they measured, if a number was missed.
const exitMissed = 3

func exitCode(err error) int {
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		return e.ExitCode()
	}
	return -1
}

// read reads a file of JSON.
func read[T any](file string) (T, error) {
	var v T
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		return v, fmt.Errorf("its result is not there: %w", err)
	}
	return v, nil
}
