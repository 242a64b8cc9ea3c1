package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An operator asks the admin listener.
type operator struct {
	addr   string
	client http.Client
}

// asking is how long an answer may take: a machine that stands still for some seconds, which those
// with neighbours do, is no end of a run.
const asking = 30 * time.Second

func newOperator(addr string) *operator {
	return &operator{addr, http.Client{Timeout: asking}}
}

func (o *operator) get(path string) (io.ReadCloser, error) {
	res, err := o.client.Get("http://" + o.addr + path)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, fmt.Errorf("GET %s was answered %d", path, res.StatusCode)
	}
	return res.Body, nil
}

// reload posts /-/reload and returns the status of the answer.
func (o *operator) reload(ctx context.Context) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+o.addr+"/-/reload", nil)
	if err != nil {
		return 0, err
	}
	res, err := o.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// A state is what we read of /api/v1/state.
type state struct {
	Limiters []map[string]any `json:"limiters"` // name and held
	Policy   struct {
		SHA256       string `json:"sha256"`
		ReloadFailed string `json:"reload_failed"`
	} `json:"policy"`
}

func (o *operator) state() (s state, err error) {
	body, err := o.get("/api/v1/state")
	if err != nil {
		return s, err
	}
	defer body.Close()
	return s, json.NewDecoder(body).Decode(&s)
}

// A scrape is /metrics at one instant: the value of each series, by its name and labels as
// they are written, and which of them may not fall.
type scrape struct {
	values map[string]float64
	counts map[string]bool
}

func (o *operator) scrape() (*scrape, error) {
	body, err := o.get("/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return readScrape(body)
}

// readScrape reads the text format of Prometheus, of which labels with escapes are not needed:
// what is looked up here has none.
func readScrape(r io.Reader) (*scrape, error) {
	s := &scrape{values: map[string]float64{}, counts: map[string]bool{}}
	kinds := map[string]string{}
	in := bufio.NewScanner(r)
	for in.Scan() {
		line := in.Text()
		if f := strings.Fields(line); len(f) == 4 && f[0] == "#" && f[1] == "TYPE" {
			kinds[f[2]] = f[3]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			return nil, fmt.Errorf("a line of /metrics has no value: %q", line)
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("a line of /metrics has no number: %q", line)
		}
		key := line[:at]
		s.values[key] = v
		s.counts[key] = climbs(key, kinds)
	}
	return s, in.Err()
}

// climbs is whether a series may not fall: counters, and what a histogram counts.
func climbs(key string, kinds map[string]string) bool {
	name, _, _ := strings.Cut(key, "{")
	if kinds[name] == "counter" {
		return true
	}
	for _, part := range []string{"_bucket", "_count", "_sum"} {
		if base, is := strings.CutSuffix(name, part); is && kinds[base] == "histogram" {
			return true
		}
	}
	return false
}

// label returns the value of a label of key, "" without it.
func label(key, name string) string {
	for _, before := range []string{"{", ","} {
		if _, rest, is := strings.Cut(key, before+name+`="`); is {
			v, _, _ := strings.Cut(rest, `"`)
			return v
		}
	}
	return ""
}

// each calls f with the series of a name.
func (s *scrape) each(name string, f func(key string, v float64)) {
	for key, v := range s.values {
		if n, _, _ := strings.Cut(key, "{"); n == name {
			f(key, v)
		}
	}
}

// by returns the sums of the series of a name by a label.
func (s *scrape) by(name, of string) map[string]float64 {
	m := map[string]float64{}
	s.each(name, func(key string, v float64) { m[label(key, of)] += v })
	return m
}

// sum returns the sum of the series of a name.
func (s *scrape) sum(name string) (n float64) {
	s.each(name, func(_ string, v float64) { n += v })
	return n
}

// unbalanced says what does not hold of
//
//	arrivals = sum of requests_total + waiting + running
//
// which docs/metrics.md promises at each scrape. Of a class without one of these nothing is said here: unseen does.
func (s *scrape) unbalanced() []string {
	done, waiting, running := s.by(ended, "limiter"), s.by(waitingNow, "limiter"), s.by(runningNow, "limiter")
	var wrong []string
	for class, arrived := range s.by(arrivals, "limiter") {
		d, one := done[class]
		w, two := waiting[class]
		r, three := running[class]
		if one && two && three && arrived != d+w+r {
			wrong = append(wrong, fmt.Sprintf("class %s: %.0f arrivals, %.0f ended + %.0f wait + %.0f run", class, arrived, d, w, r))
		}
	}
	return wrong
}

// fallen says which counters are lower than in before. Those of a class that comes and goes
// begin anew with it.
func (s *scrape) fallen(before *scrape) []string {
	var wrong []string
	for key, was := range before.values {
		if !before.counts[key] || label(key, "limiter") == classExtra || label(key, "class") == classExtra {
			continue
		}
		if now, there := s.values[key]; !there || now < was {
			wrong = append(wrong, fmt.Sprintf("%s was %g and is %g", key, was, now))
		}
	}
	return wrong
}
