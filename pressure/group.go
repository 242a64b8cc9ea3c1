package pressure

import (
	"errors"
	"io/fs"
	"path"
	"time"
)

// A group is one cgroup and what was read of it in the last second.
type group struct {
	place place
	quota quota
	past  []reading // rising in time; all within the span, but for the first
}

type reading struct {
	at   time.Time
	stat stat
}

// read reads the quota and the counts of the group. limited is false, and nothing is known,
// if it has no quota: the root of a machine does not even have the file, and neither has a
// group in which the controller is off.
func (g *group) read(fsys fs.FS, now time.Time) (a answer, limited bool, err error) {
	q, err := g.place.quota(fsys)
	if errors.Is(err, fs.ErrNotExist) || err == nil && q.unlimited() {
		return answer{}, false, nil
	}
	if err != nil {
		return answer{}, false, err
	}
	s, err := g.place.stat(fsys)
	if err != nil {
		return answer{}, true, err
	}
	a, err = g.add(now, q, s)
	return a, true, err
}

// add takes in what was read at now and returns what it says together with what was read
// a second ago. Another quota, or counts that have fallen, begin anew: that is another
// group.
func (g *group) add(now time.Time, q quota, s stat) (answer, error) {
	if n := len(g.past); q != g.quota || n > 0 && s.before(&g.past[n-1].stat) {
		g.past = g.past[:0]
	}
	g.quota = q
	g.past = append(g.past, reading{now, s})
	first := 0
	for first+1 < len(g.past) && now.Sub(g.past[first+1].at) >= span {
		first++
	}
	g.past = append(g.past[:0], g.past[first:]...)

	from := &g.past[0]
	length := now.Sub(from.at)
	if length < span {
		return answer{}, errOnce
	}
	a := answer{dir: g.place.dir, quota: q, used: -1}
	// The kernel counts periods only while something runs. A service that computes in two
	// periods of ten and is throttled in both stands still in a fifth of the time, not
	// always, so those of the whole second are what it is compared with.
	periods := max(s.periods-from.stat.periods, uint64(length/q.period))
	a.share = min(float64(s.throttled-from.stat.throttled)/float64(max(periods, 1)), 1)
	if s.usage >= 0 && from.stat.usage >= 0 {
		a.used = (s.usage - from.stat.usage).Seconds() / (length.Seconds() * q.cpus())
	}
	return a, nil
}

// A place is where the files of a cgroup are.
type place struct {
	v1   bool
	dir  string // in the file system, without a leading slash
	acct string // v1: where cpuacct.usage is, "" if nowhere
}

func (p *place) quota(fsys fs.FS) (quota, error) {
	if !p.v1 {
		return readFile(fsys, path.Join(p.dir, "cpu.max"), parseMax)
	}
	length, err := readFile(fsys, path.Join(p.dir, "cpu.cfs_quota_us"), parseNumber)
	if err != nil {
		return quota{}, err
	}
	if length == -1 {
		return quota{}, nil
	}
	file := path.Join(p.dir, "cpu.cfs_period_us")
	period, err := readFile(fsys, file, parseNumber)
	if err != nil {
		return quota{}, err
	}
	q, err := newQuota(length, period)
	return q, in(file, err)
}

func (p *place) stat(fsys fs.FS) (stat, error) {
	s, err := readFile(fsys, path.Join(p.dir, "cpu.stat"), parseStat)
	if err != nil || !p.v1 || p.acct == "" {
		return s, err
	}
	// Without it the share is known all the same.
	if used, err := readFile(fsys, path.Join(p.acct, "cpuacct.usage"), parseNumber); err == nil {
		s.usage = time.Duration(used)
	}
	return s, nil
}
