package pressure

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Where the cgroup of a process is takes two files: /proc/self/cgroup has its path in a
// hierarchy, and /proc/self/mountinfo where that hierarchy, or a part of it, is mounted
// (man 7 cgroups, man 5 proc_pid_mountinfo). In a container with a namespace of its own
// both say "/" and the mount point is its group; in one without, the path of both begins
// with that of the container on the host.

// maxDepth bounds how many groups are looked at, the own one and those above. Orchestrators
// nest four or five.
const maxDepth = 16

// find returns the places of the group of this process and of those above it that are
// mounted, the own one first. Version 1 is where the CPU is on a machine with both.
func find(fsys fs.FS) ([]place, error) {
	paths, err := readFile(fsys, "proc/self/cgroup", parseMembership)
	if err != nil {
		return nil, err
	}
	mounts, err := readFile(fsys, "proc/self/mountinfo", parseMounts)
	if err != nil {
		return nil, err
	}
	own, v1 := paths["cpu"]
	if !v1 {
		var ok bool
		if own, ok = paths[""]; !ok {
			return nil, fmt.Errorf("proc/self/cgroup: no hierarchy of it has the CPU")
		}
	}
	m, rel, ok := mounted(mounts, v1, "cpu", own)
	if !ok {
		return nil, fmt.Errorf("proc/self/mountinfo: the hierarchy with the CPU is not mounted")
	}
	acct, acctRel, hasAcct := mount{}, "", false
	if v1 {
		acct, acctRel, hasAcct = mounted(mounts, true, "cpuacct", paths["cpuacct"])
	}
	var places []place
	for range maxDepth {
		p := place{v1: v1, dir: path.Join(m.at, rel)}
		if hasAcct && acctRel == rel {
			p.acct = path.Join(acct.at, rel)
		}
		places = append(places, p)
		if rel == "." {
			break
		}
		rel, acctRel = path.Dir(rel), path.Dir(acctRel)
	}
	return places, nil
}

// parseMembership parses /proc/self/cgroup, "4:cpu,cpuacct:/path" or "0::/path": the path
// of each controller, and of version 2 that of "".
func parseMembership(s string) (map[string]string, error) {
	in := map[string]string{}
	for line := range strings.Lines(s) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			return nil, fmt.Errorf("%q is not a number, controllers and a path", cut(line))
		}
		for c := range strings.SplitSeq(f[1], ",") {
			in[c] = f[2]
		}
	}
	return in, nil
}

// A mount is of a hierarchy, or of a part of one.
type mount struct {
	v1       bool
	controls []string // v1: its controllers are among these
	root     string   // what of the hierarchy is mounted, "/" for all of it
	at       string   // in the file system, without a leading slash
}

// parseMounts parses /proc/self/mountinfo and returns what is a cgroup. Lines are
// "36 35 98:0 /root /point options tags - type source options".
func parseMounts(s string) (mounts []mount, err error) {
	for line := range strings.Lines(s) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(g) < 2 {
			return nil, fmt.Errorf("%q is not a mount", cut(line))
		}
		if g[0] != "cgroup" && g[0] != "cgroup2" {
			continue
		}
		m := mount{v1: g[0] == "cgroup", root: unescape(f[3])}
		if m.v1 {
			m.controls = strings.Split(g[len(g)-1], ",")
		}
		m.at = strings.TrimPrefix(path.Clean("/"+unescape(f[4])), "/")
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// unescape undoes what the kernel does to spaces and the like in a path: \040.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// mounted returns the mount in which the group with the path own is, and its path in that,
// "." for the mount point. If no mount has it, it is outside of what this process sees, and
// the last mount, which is on top of others at the same point, is the nearest there is.
func mounted(mounts []mount, v1 bool, controller, own string) (best mount, rel string, ok bool) {
	for _, m := range mounts {
		if m.v1 != v1 || v1 && !slices.Contains(m.controls, controller) {
			continue
		}
		if r, within := inside(m.root, own); within {
			return m, r, true
		}
		best, rel, ok = m, ".", true
	}
	return best, rel, ok
}

// inside returns the path of own below root. "/a/b" is below "/a", and "/ab" is not; what
// begins with ".." is above what a namespace shows.
func inside(root, own string) (rel string, ok bool) {
	own = strings.TrimSuffix(own, "/") + "/"
	rel, ok = strings.CutPrefix(own, strings.TrimSuffix(root, "/")+"/")
	if !ok || strings.Contains(own, "/../") {
		return "", false
	}
	return path.Clean(rel), true
}
