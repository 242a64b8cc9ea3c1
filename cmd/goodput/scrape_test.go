package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// reloaded are the policies that a file has one after the other: other limits, laws, modes and
// depths of the same classes.
var reloaded = []string{
	"  - {name: web, match: {path: /web}, limit: 2, objective: 300ms}\n  - {name: rest, limit: 20}\n",
	"  - {name: web, match: {path: /web}, limit: auto, objective: 20s, observe: true}\n  - {name: rest, limit: 3, depth: 1}\n",
	"  - {name: web, match: {path: /web}, limit: 2, objective: 300ms}\n  - {name: rest, mode: stream, limit: 5}\n",
	"  - {name: web, match: {path: /web}, limit: 9, objective: 300ms, observe: true}\n  - {name: rest, mode: connection}\n",
}

// C135, C133: scrapes in a loop while requests come, the file is read again and again with other limits
// and modes, and is broken in between: no counter of the program falls, and what is offered in each class
// is what has become of it.
func TestNoCounterFallsOverReloads_C135(t *testing.T) {
	upstream, _ := backend(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	text := func(i int) string {
		return "version: 1\nlisten: {address: 127.0.0.1:0, max_connections: 1000}\nupstream: " + upstream + "\nclasses:\n" + reloaded[i%len(reloaded)]
	}
	path := policyFile(t, text(0))
	p := serveFile(t, path)
	over := make(chan struct{})
	var load sync.WaitGroup
	defer load.Wait()
	defer close(over)
	for i := range 6 {
		load.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				res, err := http.Get(p.url + []string{"/web", "/other"}[i%2])
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body) // only that there is an answer
				res.Body.Close()
			}
		})
	}
	before := map[string]float64{}
	for i := range 40 {
		p.scrape(before)
		bad := i%5 == 4
		if rewrite(t, path, text(i+1)); bad {
			rewrite(t, path, "version: 2\n")
		}
		if code, body := p.reload(); (code == 200) == bad {
			t.Fatalf("reload %d: %d %s", i, code, body)
		}
	}
	p.scrape(before)
	if n := before[`goodput_arrivals_total{limiter="web"}`]; n < 40 || before["goodput_config_reloads_total{result=\"done\"}"] != 32 {
		t.Errorf("not the scene: %v requests, %v reloads", n, before["goodput_config_reloads_total{result=\"done\"}"])
	}
}

// scrape reads the metrics and checks them against those of before, which it makes of them.
func (p *process) scrape(before map[string]float64) {
	p.Helper()
	_, body := p.get(p.admin + "/metrics")
	ended := map[string]float64{}
	now := map[string]float64{}
	for line := range strings.Lines(body) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok || line[0] == '#' {
			continue
		}
		series += "}"
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			p.Fatalf("%s: %v", line, err)
		}
		now[series] = v
		name, labels, _ := strings.Cut(series, "{")
		for _, suffix := range []string{"_total", "_count", "_sum", "_bucket"} {
			if !strings.HasSuffix(name, suffix) {
				continue
			}
			if v < before[series] {
				p.Errorf("%s fell from %v to %v", series, before[series], v)
			}
			before[series] = v
		}
		if _, limiter, ok := strings.Cut(labels, `limiter="`); ok && name == "goodput_requests_total" {
			limiter, _, _ = strings.Cut(limiter, `"`)
			ended[limiter] += v
		}
	}
	for limiter, n := range ended {
		of := func(name string) float64 { return now[fmt.Sprintf("goodput_%s{limiter=%q}", name, limiter)] }
		if got := n + of("requests_waiting") + of("requests_running"); got != of("arrivals_total") {
			p.Errorf("%s: %v offered, %v ended, wait or run", limiter, of("arrivals_total"), got)
		}
	}
}
