package proxies

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/goodput/goodput/bench/programs"
)

// A Setting is where a proxy stands and what it is to do.
type Setting struct {
	Dir      string // for its files, empty at first
	H1, H2   string // addresses for HTTP/1.1, and for HTTP/2 without TLS
	Admin    string // address for what an operator asks
	Upstream string // address of the service

	// Slots is how many requests may be at the service at once; 0: as many as come.
	Slots int
}

// Depth is the queue of a rival that has one, by the rule of thumb: what 400 ms of the
// service's work are (60 slots of 50 ms: 480).
func (s Setting) Depth() int { return 8 * s.Slots }

// Short is a queue that leaves room for the service itself: 2.5 times the slots is 125 ms
// of work, and with the 99th percentile of an exponential service of 50 ms, 230 ms, less
// than 400.
func (s Setting) Short() int { return s.Slots * 5 / 2 }

// A Contestant is a proxy.
type Contestant struct {
	Name    string
	Program string // on the PATH, or one of Programs
	Package string // of Debian, which has the program

	// Apart: HTTP/1.1 and HTTP/2 without TLS cannot share an address.
	Apart bool

	// Admits: what the contestant does about an overload, in words; "": nothing.
	Admits string

	version []string // arguments that print a version
	config  string   // template of its file, over Setting
	args    func(Setting, string) []string
}

// Names of the contestants that are judged.
const (
	Bare    = "bare"
	Roomy   = "bare-roomy"
	Goodput = "goodput"
	Auto    = "goodput-auto"
	Caddy   = "caddy"
	Floor   = "net/http" // what the cheapest handler of net/http does
)

// floor refuses everything, or holds what comes to pathHold.
func floor() Contestant {
	return Contestant{Name: Floor, Program: Roles, args: func(s Setting, _ string) []string {
		return []string{"as", roleFloor, s.H1}
	}}
}

// Passing are the contestants without a limit that matters: what a pass costs.
func Passing() []Contestant {
	return []Contestant{
		bare(), goodput(Goodput, "", "--limit", "10000", "--objective", "10s"), roomy(),
		caddy(), haproxy("haproxy", ""), nginx("nginx", ""),
	}
}

// Limiting are the contestants that keep an overload from a service of s.Slots.
func Limiting(slots int) []Contestant {
	return []Contestant{
		goodput(Goodput, "told the slots", "--limit", strconv.Itoa(slots), "--objective", "400ms"),
		goodput(Auto, "finds the slots", "--limit", "auto", "--objective", "400ms"),
		haproxy("haproxy-long", "{{.Depth}}"),
		haproxy("haproxy-short", "{{.Short}}"),
		nginx("nginx", "limit_conn {{.Slots}}"),
		caddy(),
		bare(),
	}
}

// bare is an httputil.ReverseProxy that keeps its connections and its buffers; roomy collects
// its garbage as seldom as goodput does, which bare does eight times as often.
func bare() Contestant { return bareWith(Bare) }

func roomy() Contestant { return bareWith(Roomy, wordRoomy) }

func bareWith(name string, more ...string) Contestant {
	return Contestant{Name: name, Program: Roles, args: func(s Setting, _ string) []string {
		return append([]string{"as", roleBare, s.H1, s.Upstream}, more...)
	}}
}

// goodput as flags describe it, with its admin address as in production.
func goodput(name, admits string, policy ...string) Contestant {
	return Contestant{
		Name: name, Program: "goodput", Admits: admits,
		args: func(s Setting, _ string) []string {
			return append([]string{"serve", "--upstream", "http://" + s.Upstream, "--listen", s.H1, "--admin", s.Admin}, policy...)
		},
	}
}

func caddy() Contestant {
	return Contestant{
		Name: Caddy, Program: "caddy", Package: "caddy", Admits: "max_requests {{.Slots}}", version: []string{"version"},
		config: caddyFile, args: func(_ Setting, file string) []string {
			return []string{"run", "--adapter", "caddyfile", "--config", file}
		},
	}
}

func haproxy(name, depth string) Contestant {
	return Contestant{
		Name: name, Program: "haproxy", Package: "haproxy", Apart: true, version: []string{"-v"},
		Admits: "maxconn {{.Slots}}, a queue of " + depth + ", timeout queue 400 ms",
		config: haproxyFile(depth), args: func(_ Setting, file string) []string { return []string{"-db", "-f", file} },
	}
}

func nginx(name, admits string) Contestant {
	return Contestant{
		Name: name, Program: "nginx", Package: "nginx-core", Admits: admits, Apart: true, version: []string{"-v"},
		config: nginxFile, args: func(s Setting, file string) []string {
			return []string{"-p", s.Dir, "-c", file, "-g", "daemon off;"}
		},
	}
}

// Programs are where the programs are that are not on the PATH: goodput, which was built
// for this run, and ourselves in other roles.
type Programs map[string]string

// Roles is the key of our own program in Programs.
const Roles = "roles"

func (ps Programs) path(program string) (string, error) {
	if path := ps[program]; path != "" {
		return path, nil
	}
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	path := "/usr/sbin/" + program // off a user's PATH on Debian
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not installed", program)
	}
	return path, nil
}

// Missing are the packages of Debian that have what cs and the clients need and ps lack.
func (ps Programs) Missing(cs []Contestant) []string {
	var packages []string
	seen := map[string]bool{}
	need := append([]Contestant{{Program: "wrk", Package: "wrk"}, {Program: "h2load", Package: "nghttp2-client"}}, cs...)
	for _, c := range need {
		if _, err := ps.path(c.Program); err != nil && c.Package != "" && !seen[c.Package] {
			seen[c.Package] = true
			packages = append(packages, c.Package)
		}
	}
	return packages
}

var number = regexp.MustCompile(`v?\d+(\.\d+)+\S*`)

// Version returns the version of the program of c, "" if it has none to tell.
func (ps Programs) Version(c Contestant) string {
	path, err := ps.path(c.Program)
	if err != nil || c.version == nil {
		return ""
	}
	out, _ := exec.Command(path, c.version...).CombinedOutput() // nginx -v writes to stderr
	return string(number.Find(out))
}

// words say what c does with so many slots.
func (c Contestant) words(slots int) string {
	var b strings.Builder
	if t, err := template.New(c.Name).Parse(c.Admits); err == nil { // it was parsed with the file
		_ = t.Execute(&b, Setting{Slots: slots})
	}
	return b.String()
}

// A Proxy is a contestant that runs.
type Proxy struct {
	Contestant Contestant
	H1, H2     string // its addresses
	process    *process
	dir        string
}

// Start starts c between a client and the service at upstream; with slots 0 it has no
// limit that matters.
func (ps Programs) Start(c Contestant, upstream string, slots int) (*Proxy, error) {
	path, err := ps.path(c.Program)
	if err != nil {
		return nil, err
	}
	addrs, err := programs.Free(3)
	if err != nil {
		return nil, err
	}
	s := Setting{H1: addrs[0], H2: addrs[0], Admin: addrs[2], Upstream: upstream, Slots: slots}
	if c.Apart {
		s.H2 = addrs[1]
	}
	if s.Dir, err = os.MkdirTemp("", "proxies-"); err != nil {
		return nil, err
	}
	p := &Proxy{Contestant: c, H1: s.H1, H2: s.H2, dir: s.Dir}
	file := filepath.Join(s.Dir, "conf")
	if c.config != "" {
		if err := s.write(file, c.config); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(path, c.args(s, file)...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), "HOME="+s.Dir, "XDG_CONFIG_HOME="+s.Dir, "XDG_DATA_HOME="+s.Dir)
	if p.process, err = start(cmd, s.H1, s.H2); err != nil {
		os.RemoveAll(s.Dir)
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return p, nil
}

// write writes a file of a template.
func (s Setting) write(file, text string) error {
	t, err := template.New(filepath.Base(file)).Parse(text)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, s); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

// Stop ends p and removes its files.
func (p *Proxy) Stop() {
	p.process.stop()
	os.RemoveAll(p.dir)
}
