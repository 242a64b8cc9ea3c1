package pressure

import (
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever is in the files, the signal has an answer: a level in its range, or a
// sentence of one line.
func FuzzCGroupFiles(f *testing.F) {
	f.Add("0::/\n", mountV2, "50000 100000", statV2(10, 4, time.Second), statV2(20, 8, 2*time.Second))
	f.Add("0::/../a\n", mountV2, "max 100000", "nr_periods 18446744073709551615\nnr_throttled 0", "")
	f.Add("4:cpu,cpuacct:/\n0::/\n", mountV1+mountV2, "1 1", "usage_usec 1\nnr_periods 1\nnr_throttled 2", "nr_periods 9223372036854775807\nnr_throttled 9223372036854775807")
	f.Add("0::/a/b\\040c\n", `1 1 1:1 / /sys/fs/cgroup\040 rw - cgroup2 x`+"\n", "86400000000 1", "nr_periods\nnr_periods 1", "\x00")
	f.Fuzz(func(t *testing.T, membership, mounts, limit, first, then string) {
		synctest.Test(t, func(t *testing.T) {
			at := func(stat string) fs.FS {
				files := tree{"proc/self/cgroup": membership, "proc/self/mountinfo": mounts}
				for _, dir := range []string{"sys/fs/cgroup/", "sys/fs/cgroup/a/", "sys/fs/cgroup/cpu,cpuacct/"} {
					files[dir+"cpu.max"], files[dir+"cpu.stat"] = limit, stat
					files[dir+"cpu.cfs_quota_us"], files[dir+"cpu.cfs_period_us"], _ = strings.Cut(limit, " ")
					files[dir+"cpuacct.usage"] = stat
				}
				return files.fs()
			}
			s := CGroup{FS: at(first)}
			s.Level()
			time.Sleep(span)
			s.FS = at(then)
			level, ok := s.Level()
			if ok && !(level >= 0 && level <= 1/defaultShare) || !ok && level != 0 {
				t.Errorf("level %v, %v", level, ok)
			}
			if used, ok := s.Usage(); ok && !(used >= 0 && !math.IsInf(used, 0)) || !ok && used != 0 {
				t.Errorf("usage %v, %v", used, ok)
			}
			if line := s.String(); line == "" {
				t.Error("says nothing")
			}
		})
	})
}

// parseStat against the dumbest way to read the same: every word after the key.
func FuzzParseStat(f *testing.F) {
	f.Add("usage_usec 5\nnr_periods 1\nnr_throttled 2\n")
	f.Add("nr_periods 1\nnr_throttled 2\nnr_bursts 0")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parseStat(s)
		if err != nil {
			return
		}
		if v.periods > math.MaxInt64 || v.throttled > math.MaxInt64 || v.usage < -1 {
			t.Errorf("%+v of %q", v, s)
		}
		for _, key := range []string{"nr_periods", "nr_throttled"} {
			n := 0
			for line := range strings.Lines(s) {
				if rest, ok := strings.CutPrefix(strings.TrimSpace(line), key); ok && strings.HasPrefix(rest, " ") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s is %d times in %q, and no error", key, n, s)
			}
		}
	})
}
