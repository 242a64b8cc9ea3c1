package proxies

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Protocols that clients speak.
const (
	HTTP1 = "HTTP/1.1" // wrk
	H2C   = "h2c"      // h2load
)

// inFlight is how many requests a closed loop keeps in flight: enough that neither client
// nor service is waited for, and few enough that what one costs is not what a crowd costs.
const inFlight = 64

// A closedLoop is what a client with inFlight requests in flight saw.
type closedLoop struct {
	answers int // of any status
	fine    int // 2xx, 3xx
	lost    int
}

// load runs a client against addr for a while.
func (ps Programs) load(ctx context.Context, protocol, addr, path string, length time.Duration) (closedLoop, error) {
	program, args, read := "wrk", []string{"-t1", "-c" + strconv.Itoa(inFlight), "-d" + seconds(length)}, readWrk
	if protocol == H2C {
		// 4 connections: what one is locked by is then no bottleneck on two processors.
		program, args, read = "h2load", []string{"-t1", "-c4", "-m" + strconv.Itoa(inFlight/4), "-D" + seconds(length)}, readH2load
	}
	bin, err := ps.path(program)
	if err != nil {
		return closedLoop{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, length+startTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, bin, append(args, "http://"+addr+path)...).CombinedOutput()
	if err != nil {
		return closedLoop{}, fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return read(string(out))
}

// seconds as both clients take a time: whole ones, at least 1.
func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d.Seconds()+0.5))) + "s" }

var (
	wrkRequests = regexp.MustCompile(`(\d+) requests in `)
	wrkOthers   = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
	wrkErrors   = regexp.MustCompile(`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)

	h2loadStatus = regexp.MustCompile(`status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`)
	h2loadErrors = regexp.MustCompile(`(\d+) errored, (\d+) timeout`)
)

func readWrk(out string) (closedLoop, error) {
	all, err := numbers(wrkRequests, out)
	if err != nil {
		return closedLoop{}, fmt.Errorf("wrk says no number of requests: %s", out)
	}
	c := closedLoop{answers: all[0], fine: all[0]}
	if others, err := numbers(wrkOthers, out); err == nil {
		c.fine -= others[0]
	}
	if errors, err := numbers(wrkErrors, out); err == nil {
		c.lost = errors[0] + errors[1] + errors[2] + errors[3]
	}
	return c, nil
}

func readH2load(out string) (closedLoop, error) {
	status, err := numbers(h2loadStatus, out)
	if err != nil {
		return closedLoop{}, fmt.Errorf("h2load says no statuses: %s", out)
	}
	c := closedLoop{answers: status[0] + status[1] + status[2] + status[3], fine: status[0] + status[1]}
	if errors, err := numbers(h2loadErrors, out); err == nil {
		c.lost = errors[0] + errors[1]
	}
	return c, nil
}

// numbers returns what the groups of re match in text.
func numbers(re *regexp.Regexp, text string) ([]int, error) {
	m := re.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return nil, fmt.Errorf("%v is not there", re)
	}
	var ns []int
	for _, s := range m[1:] {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, err
		}
		ns = append(ns, n)
	}
	return ns, nil
}
