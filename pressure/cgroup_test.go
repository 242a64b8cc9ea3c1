package pressure

import (
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// A tree is a file system with the files of cgroups in it, as text.
type tree map[string]string

func (t tree) fs() fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range t {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// with returns t with the files of o as well, or instead; "" takes one away.
func (t tree) with(o tree) tree {
	all := tree{}
	for _, part := range []tree{t, o} {
		for name, text := range part {
			all[name] = text
		}
	}
	for name, text := range all {
		if text == "" {
			delete(all, name)
		}
	}
	return all
}

const (
	mountV2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountV1 = "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	other   = "25 24 0:5 / /dev rw - devtmpfs devtmpfs rw,size=4k\n"
)

// Half a processor, in a container with a namespace of its own, of either version.
var (
	containerV2 = tree{
		"proc/self/cgroup":       "0::/\n",
		"proc/self/mountinfo":    other + mountV2,
		"sys/fs/cgroup/cpu.max":  "50000 100000\n",
		"sys/fs/cgroup/cpu.stat": statV2(1000, 10, 0),
	}
	containerV1 = tree{
		"proc/self/cgroup":                            "5:memory:/\n4:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n",
		"proc/self/mountinfo":                         other + mountV1 + mountV2,
		"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":  "50000\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.stat":          statV1(1000, 10),
		"sys/fs/cgroup/cpu,cpuacct/cpuacct.usage":     "0\n",
	}
)

func statV2(periods, throttled int, used time.Duration) string {
	return fmt.Sprintf("usage_usec %d\nuser_usec 5\nsystem_usec 4\nnr_periods %d\nnr_throttled %d\nthrottled_usec 7\n",
		used.Microseconds(), periods, throttled)
}

func statV1(periods, throttled int) string {
	return fmt.Sprintf("nr_periods %d\nnr_throttled %d\nthrottled_time 7000\n", periods, throttled)
}

// after returns the signal once it has read t, and, a second later, t with the files of
// then.
func after(t *testing.T, c *CGroup, first, then tree) {
	t.Helper()
	c.FS = first.fs()
	c.Level()
	time.Sleep(time.Second)
	c.FS = first.with(then).fs()
	c.Level()
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 } // rounding of a few divisions

// apache/pulsar#7475: the CPU use was read for the host and the limit for the container, so
// that nothing was ever shed. Half a processor is the quota, and half a processor is used,
// of a host with 64.
func TestC042UsageIsOfTheQuota(t *testing.T) {
	const used = 500 * time.Millisecond // in a second
	for _, c := range []struct {
		name        string
		first, then tree
	}{
		{"version 2", containerV2, tree{"sys/fs/cgroup/cpu.stat": statV2(1010, 14, used)}},
		{"version 1", containerV1, tree{
			"sys/fs/cgroup/cpu,cpuacct/cpu.stat":      statV1(1010, 14),
			"sys/fs/cgroup/cpu,cpuacct/cpuacct.usage": fmt.Sprintln(used.Nanoseconds()),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := tree{
					"proc/stat":         "cpu  1 0 1 9000 0 0 0 0 0 0\n" + strings.Repeat("cpu0 0 0 0 140 0 0 0 0 0 0\n", 64),
					"proc/loadavg":      "0.50 0.40 0.30 1/900 1\n",
					"proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
				}
				var s CGroup
				after(t, &s, c.first.with(host), c.then)
				if got, ok := s.Usage(); !ok || !near(got, 1) {
					t.Errorf("usage %v, %v of the quota, want 1: %v", got, ok, &s)
				}
				// 4 of 10 periods were throttled, where a quarter is too much.
				if got, ok := s.Level(); !ok || !near(got, 0.4/0.25) {
					t.Errorf("level %v, %v, want 1.6: %v", got, ok, &s)
				}
				if got, want := s.String(), "throttled in 40 % of its periods, uses 100 % of 0.5 CPUs; too much is 25 %"; !strings.HasSuffix(got, want) {
					t.Errorf("%q, want it to end with %q", got, want)
				}
			})
		})
	}
}

func TestCGroupLevels(t *testing.T) {
	const v1 = "sys/fs/cgroup/cpu,cpuacct/"
	pod := "proc/self/cgroup"
	for _, c := range []struct {
		name        string
		tooMuch     float64
		first, then tree
		want        float64
	}{
		{"nothing throttled", 0, containerV2, tree{"sys/fs/cgroup/cpu.stat": statV2(1010, 10, 0)}, 0},
		{"at what is too much", 0.5, containerV2, tree{"sys/fs/cgroup/cpu.stat": statV2(1010, 15, 0)}, 1},
		{"all throttled", 0, containerV2, tree{"sys/fs/cgroup/cpu.stat": statV2(1010, 20, 0)}, 4},
		{"one period more than a second has, all throttled", 0, containerV2, tree{"sys/fs/cgroup/cpu.stat": statV2(1011, 21, 0)}, 4},
		{"one period more than a second has", 1, containerV2, tree{"sys/fs/cgroup/cpu.stat": statV2(1011, 15, 0)}, 5.0 / 11},
		{"two periods had work, both throttled: a fifth of the second", 0, containerV2, tree{"sys/fs/cgroup/cpu.stat": statV2(1002, 12, 0)}, 0.8},
		{"periods of 20 ms", 0, containerV2.with(tree{"sys/fs/cgroup/cpu.max": "10000 20000"}), tree{"sys/fs/cgroup/cpu.stat": statV2(1050, 20, 0)}, 0.8},
		{"periods of two seconds", 0, containerV2.with(tree{"sys/fs/cgroup/cpu.max": "1000000 2000000"}), tree{"sys/fs/cgroup/cpu.stat": statV2(1001, 11, 0)}, 4},
		{"no usage in version 1", 0, containerV1.with(tree{v1 + "cpuacct.usage": ""}), tree{v1 + "cpu.stat": statV1(1010, 15)}, 2},
		{"nested, the own group has the quota", 0, tree{
			pod: "0::/system.slice/app.service\n", "proc/self/mountinfo": mountV2,
			"sys/fs/cgroup/system.slice/app.service/cpu.max":  "200000 100000\n",
			"sys/fs/cgroup/system.slice/app.service/cpu.stat": statV2(0, 0, 0),
			"sys/fs/cgroup/system.slice/cpu.max":              "max 100000\n",
			"sys/fs/cgroup/system.slice/cpu.stat":             statV2(0, 0, 0),
		}, tree{"sys/fs/cgroup/system.slice/app.service/cpu.stat": statV2(10, 5, 0)}, 2},
		{"nested, the one above has the quota, and the controller is off below", 0, tree{
			pod: "0::/pod/app\n", "proc/self/mountinfo": mountV2,
			"sys/fs/cgroup/pod/cpu.max":      "200000 100000\n",
			"sys/fs/cgroup/pod/cpu.stat":     statV2(0, 0, 0),
			"sys/fs/cgroup/pod/app/cpu.stat": "usage_usec 4\n",
		}, tree{"sys/fs/cgroup/pod/cpu.stat": statV2(10, 5, 0)}, 2},
		{"nested, both have one: the worse counts", 0, tree{
			pod: "0::/pod/app\n", "proc/self/mountinfo": mountV2,
			"sys/fs/cgroup/pod/cpu.max":      "200000 100000\n",
			"sys/fs/cgroup/pod/cpu.stat":     statV2(0, 0, 0),
			"sys/fs/cgroup/pod/app/cpu.max":  "100000 100000\n",
			"sys/fs/cgroup/pod/app/cpu.stat": statV2(0, 0, 0),
		}, tree{"sys/fs/cgroup/pod/cpu.stat": statV2(10, 5, 0), "sys/fs/cgroup/pod/app/cpu.stat": statV2(10, 1, 0)}, 2},
		{"nested, both have one: the worse is the own", 0, tree{
			pod: "0::/pod/app\n", "proc/self/mountinfo": mountV2,
			"sys/fs/cgroup/pod/cpu.max":      "200000 100000\n",
			"sys/fs/cgroup/pod/cpu.stat":     statV2(0, 0, 0),
			"sys/fs/cgroup/pod/app/cpu.max":  "100000 100000\n",
			"sys/fs/cgroup/pod/app/cpu.stat": statV2(0, 0, 0),
		}, tree{"sys/fs/cgroup/pod/cpu.stat": statV2(10, 1, 0), "sys/fs/cgroup/pod/app/cpu.stat": statV2(10, 5, 0)}, 2},
		{"nested, the quota of the one above has just changed: of the own one all is known", 0, tree{
			pod: "0::/pod/app\n", "proc/self/mountinfo": mountV2,
			"sys/fs/cgroup/pod/cpu.max":      "200000 100000\n",
			"sys/fs/cgroup/pod/cpu.stat":     statV2(0, 0, 0),
			"sys/fs/cgroup/pod/app/cpu.max":  "100000 100000\n",
			"sys/fs/cgroup/pod/app/cpu.stat": statV2(0, 0, 0),
		}, tree{"sys/fs/cgroup/pod/cpu.max": "300000 100000\n", "sys/fs/cgroup/pod/app/cpu.stat": statV2(10, 5, 0)}, 2},
		{"version 2 has the CPU, and one of version 1 is mounted as well", 0, containerV2.with(tree{
			"proc/self/mountinfo": "29 24 0:25 / /sys/fs/memory rw - cgroup cgroup rw,memory\n" + mountV2,
		}), tree{"sys/fs/cgroup/cpu.stat": statV2(1010, 15, 0)}, 2},
		{"version 1 has the CPU, and another hierarchy of it comes first", 0, containerV1.with(tree{
			"proc/self/mountinfo": "29 24 0:25 / /sys/fs/memory rw - cgroup cgroup rw,memory\n" + mountV1,
		}), tree{v1 + "cpu.stat": statV1(1010, 15)}, 2},
		{"a container that shows the path of the host", 0, tree{
			pod:                          "4:cpu,cpuacct:/docker/abc/sub\n",
			"proc/self/mountinfo":        "31 24 0:27 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpuacct,cpu\n",
			"sys/fs/cgroup/cpu/cpu.stat": statV1(0, 0), "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
		}, tree{"sys/fs/cgroup/cpu/cpu.stat": statV1(10, 5)}, 2},
		{"a group outside of what is mounted", 0, containerV2.with(tree{
			pod: "0::/../../other\n", "sys/other/cpu.max": "100000 100000", "sys/other/cpu.stat": statV2(0, 0, 0),
		}), tree{"sys/other/cpu.stat": statV2(10, 10, 0), "sys/fs/cgroup/cpu.stat": statV2(1010, 15, 0)}, 2},
		{"a part of the tree mounted, of another name that begins alike", 0, containerV2.with(tree{
			pod: "0::/ab\n", "proc/self/mountinfo": "30 24 0:26 /a /mnt/a rw - cgroup2 cgroup2 rw\n" + mountV2,
			"sys/fs/cgroup/cpu.max": "", "sys/fs/cgroup/ab/cpu.max": "50000 100000", "sys/fs/cgroup/ab/cpu.stat": statV2(0, 0, 0),
		}), tree{"sys/fs/cgroup/ab/cpu.stat": statV2(10, 5, 0)}, 2},
		{"a mount point with a space in it", 0, tree{
			pod: "0::/\n", "proc/self/mountinfo": `30 24 0:26 / /my\040groups rw - cgroup2 cgroup2 rw` + "\n",
			"my groups/cpu.max": "50000 100000", "my groups/cpu.stat": statV2(0, 0, 0),
		}, tree{"my groups/cpu.stat": statV2(10, 5, 0)}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := CGroup{TooMuch: c.tooMuch}
				after(t, &s, c.first, c.then)
				if got, ok := s.Level(); !ok || !near(got, c.want) {
					t.Errorf("level %v, %v, want %v: %v", got, ok, c.want, &s)
				}
			})
		})
	}
}

// Where there is nothing to be known the signal says why, in a sentence, and no more.
func TestCGroupAbsent(t *testing.T) {
	const v1 = "sys/fs/cgroup/cpu,cpuacct/"
	for _, c := range []struct {
		name string
		tree tree
		says string
	}{
		{"no Linux", tree{}, "cgroup: proc/self/cgroup: file does not exist"},
		{"no mounts", containerV2.with(tree{"proc/self/mountinfo": ""}), "cgroup: proc/self/mountinfo: file does not exist"},
		{"not mounted", containerV2.with(tree{"proc/self/mountinfo": other}), "cgroup: proc/self/mountinfo: the hierarchy with the CPU is not mounted"},
		{"no CPU anywhere", containerV1.with(tree{"proc/self/cgroup": "5:memory:/\n"}), "cgroup: proc/self/cgroup: no hierarchy of it has the CPU"},
		{"no quota file", containerV2.with(tree{"sys/fs/cgroup/cpu.max": ""}), "cgroup: no CPU quota in sys/fs/cgroup or above"},
		{"max", containerV2.with(tree{"sys/fs/cgroup/cpu.max": "max 100000\n"}), "cgroup: no CPU quota in sys/fs/cgroup or above"},
		{"-1", containerV1.with(tree{v1 + "cpu.cfs_quota_us": "-1\n"}), "cgroup: no CPU quota in sys/fs/cgroup/cpu,cpuacct or above"},
		{"no counts", containerV2.with(tree{"sys/fs/cgroup/cpu.stat": ""}), "cgroup: sys/fs/cgroup/cpu.stat: file does not exist"},
		{"counts of a root", containerV2.with(tree{"sys/fs/cgroup/cpu.stat": "usage_usec 5\n"}), "cgroup: sys/fs/cgroup/cpu.stat: nr_periods and nr_throttled are not in it once each"},
		{"a period of zero", containerV2.with(tree{"sys/fs/cgroup/cpu.max": "50000 0\n"}), "cgroup: sys/fs/cgroup/cpu.max: a quota of 50000 in periods of 0 µs is none: both are 1 to 86400000000"},
		{"a period of zero in version 1", containerV1.with(tree{v1 + "cpu.cfs_period_us": "0"}), "cgroup: " + v1 + "cpu.cfs_period_us: a quota of 50000 in periods of 0 µs is none: both are 1 to 86400000000"},
		{"no period in version 1", containerV1.with(tree{v1 + "cpu.cfs_period_us": ""}), "cgroup: no CPU quota in sys/fs/cgroup/cpu,cpuacct or above"},
		{"half a line", containerV2.with(tree{"sys/fs/cgroup/cpu.max": "50000"}), `cgroup: sys/fs/cgroup/cpu.max: "50000" is not a quota and a period`},
		{"words", containerV2.with(tree{"sys/fs/cgroup/cpu.max": "plenty 100000"}), `cgroup: sys/fs/cgroup/cpu.max: "plenty" is not a whole number`},
		{"a huge number", containerV2.with(tree{"sys/fs/cgroup/cpu.max": "99999999999999999999 100000"}), `cgroup: sys/fs/cgroup/cpu.max: "99999999999999999999" is not a whole number`},
		{"a count twice", containerV2.with(tree{"sys/fs/cgroup/cpu.stat": "nr_periods 4\nnr_throttled 0\nnr_periods 5\n"}), "cgroup: sys/fs/cgroup/cpu.stat: nr_periods and nr_throttled are not in it once each"},
		{"a usage that overflows", containerV2.with(tree{"sys/fs/cgroup/cpu.stat": "usage_usec 9223372036854776\nnr_periods 4\nnr_throttled 0\n"}), "cgroup: sys/fs/cgroup/cpu.stat: usage_usec: 9223372036854776 is too large"},
		{"a negative count", containerV2.with(tree{"sys/fs/cgroup/cpu.stat": "nr_periods -4\nnr_throttled 0\n"}), "cgroup: sys/fs/cgroup/cpu.stat: nr_periods: -4 is negative"},
		{"a membership that is none", containerV2.with(tree{"proc/self/cgroup": "hello\n"}), `cgroup: proc/self/cgroup: "hello\n" is not a number, controllers and a path`},
		{"mounts that are none", containerV2.with(tree{"proc/self/mountinfo": "hello\n"}), `cgroup: proc/self/mountinfo: "hello\n" is not a mount`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s CGroup
				after(t, &s, c.tree, nil)
				if level, ok := s.Level(); ok || level != 0 {
					t.Errorf("level %v, %v of nothing", level, ok)
				}
				if used, ok := s.Usage(); ok || used != 0 {
					t.Errorf("usage %v, %v of nothing", used, ok)
				}
				if s.String() != c.says {
					t.Errorf("says %q\n want %q", s.String(), c.says)
				}
			})
		})
	}
}

// A quota that is granted, changed and taken away again while the process runs.
func TestCGroupQuotaComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s CGroup
		live := containerV2.with(tree{"sys/fs/cgroup/cpu.max": "max 100000"})
		periods, throttled := 1000, 10
		run := func(d time.Duration, share int) { // share of ten periods that are throttled
			for end := time.Now().Add(d); time.Now().Before(end); {
				time.Sleep(time.Second / 2)
				periods, throttled = periods+5, throttled+share/2
				s.FS = live.with(tree{"sys/fs/cgroup/cpu.stat": statV2(periods, throttled, 0)}).fs()
				s.Level()
			}
		}
		expect := func(when string, want float64, wantOK bool) {
			t.Helper()
			if got, ok := s.Level(); ok != wantOK || !near(got, want) {
				t.Errorf("%s: level %v, %v, want %v, %v: %v", when, got, ok, want, wantOK, &s)
			}
		}
		run(2*time.Second, 8)
		expect("no quota", 0, false)
		live["sys/fs/cgroup/cpu.max"] = "50000 100000"
		run(lookAgain, 8)
		run(2*time.Second, 8)
		expect("granted", 0.8/0.25, true)
		run(time.Second, 2)
		expect("calmer, and what was a second ago is forgotten", 0.2/0.25, true)
		run(2*time.Second, 4)
		expect("as it is now", 0.4/0.25, true)
		live["sys/fs/cgroup/cpu.max"] = "80000 100000"
		run(time.Second/2, 4)
		expect("just changed", 0, false)
		run(2*time.Second, 4)
		expect("a second later", 0.4/0.25, true)
		periods, throttled = 0, 0
		run(time.Second/2, 4)
		expect("counts that have fallen are of another group", 0, false)
		run(2*time.Second, 4)
		expect("which is known a second later", 0.4/0.25, true)
		live["sys/fs/cgroup/cpu.max"] = "max 100000"
		run(time.Second, 4)
		expect("taken away", 0, false)
	})
}

// The files are read once in 100 ms, however many limiters ask, and whoever asks while
// they are read does not wait for that.
func TestCGroupIsReadOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowFS{FS: containerV2.fs(), wait: time.Millisecond}
		s := CGroup{FS: slow}
		for range 50 {
			s.Level()
		}
		once := slow.reads
		if once != 4 { // two that say where it is, the quota and the counts
			t.Errorf("%d files read for 50 limiters", once)
		}
		time.Sleep(pause)
		go s.Level() // takes two milliseconds
		synctest.Wait()
		begun := time.Now()
		s.Level()
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("waited %v for somebody else's reading", waited)
		}
		time.Sleep(time.Second)
		s.Level()
		if slow.reads != once+4 {
			t.Errorf("%d files read the second and the third time, want 4", slow.reads-once)
		}
	})
}

// What is used is not known where it is counted for another group than the quota, or from
// another instant on. The share of the periods is known all the same.
func TestCGroupUsageNotKnown(t *testing.T) {
	const v1 = "sys/fs/cgroup/cpu,cpuacct/"
	for _, c := range []struct {
		name        string
		first, then tree
	}{
		{"counted since less than a second", containerV1.with(tree{v1 + "cpuacct.usage": ""}), tree{v1 + "cpuacct.usage": "9000000000"}},
		{"no number", containerV1, tree{v1 + "cpuacct.usage": "much"}},
		{"of another group", containerV1.with(tree{
			"proc/self/cgroup":  "4:cpu:/app\n3:cpuacct:/\n",
			v1 + "app/cpu.stat": statV1(1000, 10), v1 + "app/cpu.cfs_quota_us": "50000", v1 + "app/cpu.cfs_period_us": "100000",
			v1 + "app/cpuacct.usage": "0", // of whoever is there in that hierarchy
		}), tree{v1 + "app/cpu.stat": statV1(1010, 15), v1 + "cpuacct.usage": "9000000000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s CGroup
				after(t, &s, c.first, c.then)
				time.Sleep(pause)
				if used, ok := s.Usage(); ok {
					t.Errorf("usage %v", used)
				}
			})
		})
	}
}

// Where there is nothing, where to look is asked every ten seconds and no more often: a
// host may have thousands of mounts.
func TestCGroupLooksAgainSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		empty := &slowFS{FS: fstest.MapFS{}}
		s := CGroup{FS: empty}
		for range 200 { // 20 seconds
			s.Level()
			time.Sleep(pause)
		}
		if empty.reads != 2 {
			t.Errorf("looked %d times in 20 seconds, want twice", empty.reads)
		}
	})
}

type slowFS struct {
	fs.FS
	wait  time.Duration
	reads int
}

func (s *slowFS) Open(name string) (fs.File, error) {
	s.reads++
	time.Sleep(s.wait)
	return s.FS.Open(name)
}
