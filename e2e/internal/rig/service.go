//go:build linux

package rig

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Service is a running ../service.
type Service struct {
	*Process
	Addr string

	db   *Database
	pool int
}

// Serve starts the service with a pool of so many connections, on a database
// that nobody else uses.
func (db *Database) Serve(t testing.TB, pool int) *Service {
	t.Helper()
	s := &Service{Addr: "127.0.0.1:0", db: db, pool: pool}
	if err := db.disconnect(); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	return s
}

// Start starts the service again, where it was, after it has ended.
func (s *Service) Start(t testing.TB) {
	t.Helper()
	cmd := exec.Command(build(t, "E2E_SERVICE", "./service"),
		"-listen", s.Addr, "-database", s.db.dsn(serviceRole), "-pool", strconv.Itoa(s.pool))
	s.Process = run(t, "service", cmd, syscall.SIGKILL)
	err := s.line(10*time.Second, func(l string) bool {
		addr, ok := strings.CutPrefix(l, "listening ")
		if ok {
			s.Addr = addr
		}
		return ok
	})
	if err != nil {
		t.Fatal(err)
	}
}

// URL returns where the service is.
func (s *Service) URL() string { return "http://" + s.Addr }

// Counts is what the service has seen: see the service for the fields.
type Counts struct {
	Running     int64   `json:"running"`
	Peak        int64   `json:"peak"`
	Served      int64   `json:"served"`
	Errors      int64   `json:"errors"`
	Bodies      int64   `json:"bodies"`
	BusySeconds float64 `json:"busy_seconds"`
}

// Mean returns the mean service time in seconds.
func (c Counts) Mean() float64 { return c.BusySeconds / float64(max(1, c.Served)) }

// Counts asks the service.
func (s *Service) Counts(t testing.TB) (c Counts) {
	t.Helper()
	getJSON(t, s.URL()+"/counts", &c)
	return c
}

// client is for asking; each question has a connection of its own, so that what
// a process holds while it is asked is the same every time.
var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func getJSON(t testing.TB, url string, into any) {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, res.Status, err)
	}
}
