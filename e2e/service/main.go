// Command service is the thing that the tests protect: a small HTTP service
// that does its work in PostgreSQL, as thousands do. It knows nothing of
// goodput.
//
//	POST, GET /work?ms=50    reads the body, then sleeps so long in the database
//	GET /stream?chunks=&ms=  sends 1 KiB every ms, without the database
//	GET /counts              what it has seen so far
//
// It trusts whoever is in front of it with its concurrency: a pool larger than
// what the database allows turns each request too many into an error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "where to listen")
	database := flag.String("database", "", "connection string of PostgreSQL")
	pool := flag.Int("pool", 20, "most connections to the database")
	flag.Parse()
	if err := serve(*listen, *database, *pool); err != nil {
		log.Fatal("service: ", err)
	}
}

func serve(listen, database string, connections int) error {
	cfg, err := pgxpool.ParseConfig(database)
	if err != nil {
		return err
	}
	cfg.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s := &service{pool: pool}
	mux := http.NewServeMux()
	mux.HandleFunc("/work", s.work)
	mux.HandleFunc("GET /stream", s.stream)
	mux.HandleFunc("GET /counts", s.counts)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	fmt.Println("listening", l.Addr())
	return (&http.Server{Handler: mux, Protocols: protocols, ReadHeaderTimeout: 5 * time.Second}).Serve(l)
}

// Counts is the answer of /counts.
type Counts struct {
	Running     int64   `json:"running"` // in the database, or on the way to it
	Peak        int64   `json:"peak"`    // the most that ever ran at once
	Served      int64   `json:"served"`
	Errors      int64   `json:"errors"` // of the database
	Bodies      int64   `json:"bodies"` // bytes read
	BusySeconds float64 `json:"busy_seconds"`
}

type service struct {
	pool                                  *pgxpool.Pool
	running, peak, served, errors, bodies atomic.Int64
	busy                                  atomic.Int64 // nanoseconds
}

// work runs the query to its end even if the caller leaves, like most services:
// their drivers cannot stop a statement, or nobody passes the context on.
func (s *service) work(w http.ResponseWriter, r *http.Request) {
	length, err := milliseconds(r, "ms", 50)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n, err := io.Copy(io.Discard, r.Body)
	s.bodies.Add(n)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.sleep(context.WithoutCancel(r.Context()), length); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Body-Bytes", strconv.FormatInt(n, 10))
	io.WriteString(w, "done\n") //nolint:errcheck // whoever asked has left
}

// sleep is one query. Whoever counts must be done before the answer leaves:
// the next request may arrive before this function's caller returns.
func (s *service) sleep(ctx context.Context, length time.Duration) error {
	running := s.running.Add(1)
	for {
		peak := s.peak.Load()
		if running <= peak || s.peak.CompareAndSwap(peak, running) {
			break
		}
	}
	start := time.Now()
	_, err := s.pool.Exec(ctx, "select pg_sleep($1)", length.Seconds())
	s.busy.Add(int64(time.Since(start)))
	s.running.Add(-1)
	if err != nil {
		s.errors.Add(1)
		return err
	}
	s.served.Add(1)
	return nil
}

func (s *service) stream(w http.ResponseWriter, r *http.Request) {
	chunks, err := strconv.Atoi(r.FormValue("chunks"))
	if err != nil || chunks < 1 || chunks > 10_000 {
		http.Error(w, "chunks: 1 to 10000", http.StatusBadRequest)
		return
	}
	pause, err := milliseconds(r, "ms", 10)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := http.NewResponseController(w)
	chunk := make([]byte, 1<<10)
	for range chunks {
		if _, err := w.Write(chunk); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-r.Context().Done():
			return
		}
	}
}

func (s *service) counts(w http.ResponseWriter, _ *http.Request) {
	json.NewEncoder(w).Encode(Counts{ //nolint:errcheck // whoever asked has left
		Running: s.running.Load(), Peak: s.peak.Load(), Served: s.served.Load(),
		Errors: s.errors.Load(), Bodies: s.bodies.Load(),
		BusySeconds: time.Duration(s.busy.Load()).Seconds(),
	})
}

// milliseconds reads a parameter of 0 to a minute.
func milliseconds(r *http.Request, name string, absent int) (time.Duration, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return time.Duration(absent) * time.Millisecond, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 60_000 {
		return 0, errors.New(name + ": 0 to 60000")
	}
	return time.Duration(n) * time.Millisecond, nil
}
