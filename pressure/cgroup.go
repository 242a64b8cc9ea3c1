package pressure

import (
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// A CGroup is the signal of a CPU quota on Linux: the share of the periods of the last
// second, 100 ms each as a rule, in which the quota was spent before the period was over and
// all threads of the container stood still until the next. The level is that share over
// TooMuch.
//
// It looks at the cgroup of this process and at those above it that it can see, of
// version 1 or 2, and takes the one that is throttled most. Without a quota there is nothing
// to be throttled, and so no level: String says that.
//
// What is said is about the last second, or the time since it was last asked, if that is
// longer.
//
// The zero CGroup is ready. Use it by pointer, share it, and do not change its fields
// once it is in use. It is safe for concurrent use. It reads two or three small files every
// 100 ms, and whoever asks while they are read has the answer from before.
type CGroup struct {
	// TooMuch is the share of the periods that is too much: 0.01 to 1, default 0.25. In
	// every period that is throttled those that run are late by what is left of it, so at
	// a quarter that is what one request in four meets. It is as well where the alert
	// CPUThrottlingHigh of the monitoring that is common for Kubernetes (kubernetes-mixin)
	// is set.
	TooMuch float64

	// FS is the file system with proc/ and sys/ in it. nil, the default, is that of the
	// machine.
	FS fs.FS

	turn   sync.Mutex // of who reads the files, and the fields below; taken without waiting
	readAt time.Time
	found  time.Time // when groups were looked for last
	groups []group   // this process's own first; none while they are to be looked for

	mu     sync.Mutex // held for a moment, and never while a file is read
	answer answer
}

// answer is what is known, about the group that is throttled most.
type answer struct {
	err   error  // why nothing is
	dir   string // of the group
	quota quota
	share float64 // of the periods, throttled
	used  float64 // of the quota; negative if not known
}

const (
	defaultShare = 0.25

	// pause is between two readings: the period of a quota that nobody has changed. The
	// counts do not change within one.
	pause = 100 * time.Millisecond

	// lookAgain is how long it takes until groups are looked for again where there were
	// none. That reads all mounts of the machine, which on a host of many containers are
	// some thousand lines, about a millisecond.
	lookAgain = 10 * time.Second
)

// errUnread and errOnce are why there is no level at first.
var (
	errUnread = fmt.Errorf("cgroup: not read yet")
	errOnce   = fmt.Errorf("cgroup: read since less than %v, a share needs that long", span)
)

// Validate returns a sentence about the first field that is out of range, or nil.
func (c *CGroup) Validate() error {
	if s := c.TooMuch; s != 0 && !(s >= 0.01 && s <= 1) {
		return fmt.Errorf("a share of %v of the periods as too much is out of range: 0.01 to 1", s)
	}
	return nil
}

func (c *CGroup) tooMuch() float64 {
	if c.TooMuch == 0 {
		return defaultShare
	}
	return c.TooMuch
}

// Level returns the share of the periods that were throttled, over what is too much. ok is
// false without a quota, where a file is missing or malformed, and in the first second.
func (c *CGroup) Level() (level float64, ok bool) {
	a := c.latest()
	if a.err != nil {
		return 0, false
	}
	return a.share / c.tooMuch(), true
}

// Usage returns the CPU time that was used in the last second by the whole cgroup, as a
// share of its quota: 1 where half a processor is used of a quota of half a processor,
// whatever the host has. It can be a little more in a second. ok is false where that is not
// known.
func (c *CGroup) Usage() (ofQuota float64, ok bool) {
	a := c.latest()
	if a.err != nil || a.used < 0 {
		return 0, false
	}
	return a.used, true
}

// String returns "cgroup sys/fs/cgroup: throttled in 30 % of its periods, uses 98 % of 0.5
// CPUs; too much is 25 %".
func (c *CGroup) String() string {
	c.mu.Lock()
	a := c.answer
	c.mu.Unlock()
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.dir == "":
		return errUnread.Error()
	}
	used := "its quota is"
	if a.used >= 0 {
		used = fmt.Sprintf("uses %.0f %% of", 100*a.used)
	}
	return fmt.Sprintf("cgroup %s: throttled in %.0f %% of its periods, %s %.3g CPUs; too much is %.0f %%",
		a.dir, 100*a.share, used, a.quota.cpus(), 100*c.tooMuch())
}

// latest reads the files, if it is time and nobody else does, and returns what is known.
func (c *CGroup) latest() answer {
	if c.turn.TryLock() {
		defer c.turn.Unlock()
		if now := time.Now(); c.readAt.IsZero() || now.Sub(c.readAt) >= pause {
			a := c.read(now)
			c.readAt = now
			c.mu.Lock()
			c.answer = a
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answer.err == nil && c.answer.dir == "" {
		return answer{err: errUnread}
	}
	return c.answer
}

// read reads all groups. The caller has the turn.
func (c *CGroup) read(now time.Time) answer {
	fsys := c.FS
	if fsys == nil {
		fsys = os.DirFS("/")
	}
	if c.groups == nil {
		if !c.found.IsZero() && now.Sub(c.found) < lookAgain {
			return c.answer // why there are none
		}
		c.found = now
		places, err := find(fsys)
		if err != nil {
			return answer{err: fmt.Errorf("cgroup: %w", err)}
		}
		for _, p := range places {
			c.groups = append(c.groups, group{place: p})
		}
	}
	worst, err := c.compare(fsys, now)
	if err != nil && err != errOnce {
		c.groups = nil // it may be another one by now
	}
	if err != nil {
		return answer{err: err}
	}
	return worst
}

// compare returns the answer of the group that is throttled most, of those with a quota.
func (c *CGroup) compare(fsys fs.FS, now time.Time) (worst answer, err error) {
	err = fmt.Errorf("cgroup: no CPU quota in %s or above", c.groups[0].place.dir)
	found := false
	for i := range c.groups {
		g := &c.groups[i]
		a, limited, e := g.read(fsys, now)
		switch {
		case !limited && e == nil:
		case e == errOnce:
			if !found {
				err = e
			}
		case e != nil:
			return answer{}, fmt.Errorf("cgroup: %w", e)
		case !found || a.share > worst.share:
			worst, err, found = a, nil, true
		}
	}
	return worst, err
}
