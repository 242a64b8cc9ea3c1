// Package record writes what became of each request: an access log, which is for people and
// their tools, and a trace, which is for goodput replay.
//
// Both are written beside the requests. A request puts what it has to say into a buffer of
// fixed size, under a lock that is held while it is copied, and one goroutine takes what is
// there five times a second to the disk. So a disk that is slow, or full, costs no request
// anything: when the buffer is full what comes is dropped and counted, and the log says so.
//
// What a crash can lose is what the goroutine has not taken yet, less than a second of it.
// Close takes the rest, so a drain loses nothing. Nothing is synced: a machine that loses its
// power may lose what its kernel had not written.
package record

import (
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

const (
	// flushEvery is how long something may stay in a buffer: a fifth of what a crash may lose,
	// since a write takes its time, too.
	flushEvery = 200 * time.Millisecond

	// closing is how long Close waits for a disk, or a pipe that nobody reads.
	closing = 2 * time.Second

	// mode of new files: addresses of clients are not for everybody.
	mode = 0o640
)

// Numbers are what was written so far, and what was not.
type Numbers struct {
	Lines   uint64 // written
	Dropped uint64 // lost, because the buffer was full or the file could not be written
}

// A handle is an open file.
type handle interface {
	Write(p []byte) (int, error)
	Truncate(size int64) error
	Close() error
}

// A worker is the goroutine that writes, and how it is told to.
type worker struct {
	written, dropped atomic.Uint64

	wake, stop, done chan struct{}
}

func newWorker() worker {
	return worker{wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
}

// Numbers returns those of now.
func (w *worker) Numbers() Numbers { return Numbers{w.written.Load(), w.dropped.Load()} }

// hurry has the writer look now.
func (w *worker) hurry() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run calls flush now and then, and last with the word that it is the last time.
func (w *worker) run(flush func(last bool)) {
	defer close(w.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.wake:
		case <-w.stop:
			flush(true)
			return
		}
		flush(false)
	}
}

// end waits for the last flush. What it cannot write within closing is lost.
func (w *worker) end(what string) error {
	close(w.stop)
	select {
	case <-w.done:
		return nil
	case <-time.After(closing):
		return fmt.Errorf("%s: it takes nothing: what was not written within %v is lost", what, closing)
	}
}

// A state says in the log when a file stops to be written and when it is again, once each.
type state struct {
	log     *slog.Logger
	what    string // "access log", "record"
	path    string
	failing bool

	told   uint64 // of what is lost, how much the log has said
	toldAt time.Time
}

// lost says in the log, once a second at the most, that a buffer was full. Of a file that cannot
// be written the log has it already.
func (s *state) lost(dropped uint64) {
	if s.failing {
		s.told = dropped
	}
	if dropped > s.told && time.Since(s.toldAt) >= time.Second {
		s.log.Warn(s.what+" lines were dropped: the file takes fewer than there are requests", "file", s.path, "dropped", dropped-s.told)
		s.told, s.toldAt = dropped, time.Now()
	}
}

func (s *state) is(err error) {
	switch failing := err != nil; {
	case failing == s.failing:
	case failing:
		s.failing = true
		s.log.Error(s.what+" cannot be written: requests go on, and what became of them is not kept", "file", s.path, "err", err)
	default:
		s.failing = false
		s.log.Info(s.what+" is written again", "file", s.path)
	}
}

// create opens a new file and locks it; one that is there is an error.
func create(path string) (handle, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, mode)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
