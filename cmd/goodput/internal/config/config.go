// Package config is the policy file of goodput serve: what listens, what is
// behind it, and how the requests in between are told apart, limited and
// refused.
//
//	version: 1
//	upstream: http://127.0.0.1:9000
//	objective: 400ms
//
// is a whole file. Read reports everything that is wrong with one at once, each
// with its line, and what contradicts what. What a flag of serve says and what a
// file says is the same Config, so that neither can do what the other cannot.
//
// A Config is data: a value that nobody changes once it is in force. A reload is
// another one.
package config

import (
	"net/netip"
	"net/url"
	"time"

	"github.com/goodput/goodput"
)

// A Config is everything that a reload may change, and the listeners, which it
// may not.
type Config struct {
	Listeners []Listener // at least one
	Upstreams []Upstream // at least one, their names differ
	Classes   []Class    // in the order in which they are asked; the last takes every request

	// TrustedProxies are the peers that are believed: their X-Forwarded-* and
	// Forwarded headers are kept and extended, and X-Request-Start counts as time already
	// spent; those of everybody else are dropped, because a client could write anything
	// into them. Headers that say tenant, priority, cost or size are read; from everybody
	// else they are passed on and mean nothing here.
	TrustedProxies []netip.Prefix

	// Processes is how many processes run this configuration before the same servers: each
	// has the limits for itself, so that together they admit so many times as much. It
	// changes nothing here; it is what Read and Warnings multiply by. 1 to 4096.
	Processes int

	// Source is the name of the file and SHA256 what was in it, in hex; both empty
	// for flags.
	Source, SHA256 string
}

// A Listener is one address where clients connect. A change of one needs a
// restart.
type Listener struct {
	Network string // tcp or unix
	Address string // host:port, or the path of a socket

	TLS   *TLS // nil: none
	HTTP1 bool
	HTTP2 bool // h2 with TLS, else h2c by prior knowledge

	// Backlog is how many connections the kernel keeps that were not accepted yet:
	// 1 to 65,535, cut by net.core.somaxconn. 0: what Go takes, which is somaxconn.
	Backlog int

	// MaxConnections is how many may be open at once; beyond that nothing is accepted,
	// and the backlog fills. 1 to 2^20.
	MaxConnections int

	// MaxStreams is how many requests one HTTP/2 connection may have in flight.
	MaxStreams int

	// PauseAccepts is the time between two accepts while every class of requests is in
	// a standing overload: 0 to 1 s. 0 accepts as ever.
	PauseAccepts time.Duration

	HeaderTimeout time.Duration // for a whole header
	IdleTimeout   time.Duration // of a connection without a request
	MaxHeader     int           // bytes
}

// TLS names files, which are read again with each reload.
type TLS struct {
	Cert, Key string
	ClientCA  string // "": clients are not asked for a certificate
}

// An Upstream is one service on any number of servers, before which there is one
// queue: the next free slot of any server that is well takes the next request.
type Upstream struct {
	Name    string
	Servers []Server

	// Health is how a server is asked whether it is well; nil: it is not asked. One that
	// failed is then tried by connecting to it.
	Health *Health

	// Failures is how many requests in a row a server may leave without an answer before
	// it counts as not well. A refusal is an answer. 1 to 1000.
	Failures int

	// SlowStart is how long a server that is back takes to have all of its share.
	SlowStart time.Duration

	// MaxAbsence is how long a request may wait while no server is well; after that
	// it is refused as unavailable.
	MaxAbsence time.Duration

	// Forward is the header that tells the server how much time is left of a request
	// whose caller used none: see goodputhttp. "none" tells nothing, "" as there.
	Forward string
	// ForwardOnly writes Forward in place of what the caller used.
	ForwardOnly bool
}

// A Server is one address of a service.
type Server struct {
	URL *url.URL
	// Limit is how many requests it runs at once, of all classes together; 0: nobody
	// has said.
	Limit int
}

// Health is a request that a server is sent at intervals.
type Health struct {
	Path              string
	Interval, Timeout time.Duration
	Fall, Rise        int // answers in a row that change what it is taken for
}

// A Mode is what the unit of a class is.
type Mode uint8

const (
	// Request is a slot from the first byte to the last, and the time to the
	// header of the response is a service sample.
	Request Mode = iota
	// Stream is a place among so many that are open at once, held to the end
	// of the stream and never a sample. There is no queue: nobody knows when one ends.
	Stream
	// Connection has no limit and no queue of its own: the connections of the listener
	// and its backlog bound it.
	Connection
)

// String returns the word of a file.
func (m Mode) String() string { return [...]string{"request", "stream", "connection"}[m] }

// A Class is a kind of requests: one limit and one queue. Those whose service times
// are far apart do not share one.
type Class struct {
	Name     string
	Match    Match
	Upstream string
	Mode     Mode

	// Limiter has the name of the class. For streams its limit is a number.
	Limiter goodput.Config

	Deadline    time.Duration // of a request that brings none; 0: it has none
	DeadlineCap time.Duration // the longest there is, also of one that brings none; 0: any

	// DeadlineHeaders are read beside those of goodputhttp.
	DeadlineHeaders []DeadlineHeader
	// TrustDeadline are peers whose headers may say more than DeadlineCap.
	TrustDeadline []netip.Prefix
	// HopMargin is taken off what is forwarded, for the way there and back.
	HopMargin time.Duration

	Tenant   Key
	User     Key
	Priority Priority
	Cost     Amount
	Size     Amount

	Exempt []string // paths of probes, beside those that goodputhttp.Probe knows

	OverloadStatus int      // 503 or 429
	Markers        []string // envoy, finagle: what refusals carry beside Goodput-Rejected

	ServerTiming bool // every answer says how long its request waited

	MaxBody     int64         // bytes of a request body; beyond it 413. 0: any
	MaxUpgraded int           // connections that are upgraded at once
	SlowClient  time.Duration // see goodputhttp.Server; 0: its default
	Finish      time.Duration // how long work goes on that nobody waits for

	// Idle and Total bound streams and upgraded connections: how long nothing may move
	// in either direction, and how long one may last. 0: for ever.
	Idle, Total time.Duration
}

// A Match says which requests are of a class: all that is given must hold, and of each
// list one. Nothing given: every request.
type Match struct {
	Hosts        []string // without port; *.example.com is every name below
	Paths        []string // prefixes, by whole segments
	Methods      []string // GET has HEAD as well
	Headers      []Header
	ContentTypes []string // without parameters; application/grpc has its suffixes
}

// A Header is a name, and the value that it must have; "" for any.
type Header struct{ Name, Value string }

// A DeadlineHeader is a header in which callers say how long they wait.
type DeadlineHeader struct{ Name, Format string }

// KeyFrom is where a key is taken from.
type KeyFrom uint8

const (
	Nobody  KeyFrom = iota // there is none
	Named                  // a header, from trusted proxies
	Address                // the network of the client, behind trusted proxies
	Cert                   // the name in the certificate of the client
)

// A Key says who sends a request, or for whom it is.
type Key struct {
	From   KeyFrom
	Header string
	V4, V6 int // bits of the network, for Address; 0: the default of goodputhttp.ByAddress
}

// Priority of a request: fixed, or what a header of a trusted proxy says.
type Priority struct {
	Fixed  goodput.Priority // also without the header; 0: default
	Header string
}

// An Amount is a cost or a size: fixed, what a header of a trusted proxy says, or so much
// for each part of the declared body.
type Amount struct {
	Fixed  int    // also where there is nothing else to go by; 0: the default of goodput.Work
	Header string // a whole number
	Most   int    // of the header; more counts as that. 0: any
	Per    int64  // bytes of the body for each unit; 0: it does not count
}

// Defaults, which are those of the flags too.
const (
	DefaultListen         = ":8080"
	DefaultObjective      = time.Second
	DefaultHeaderTimeout  = 10 * time.Second  // 64 KiB in 10 s is 6.4 KiB/s, slower than any modem still in use
	DefaultIdleTimeout    = 620 * time.Second // above those of the balancers in front (AWS and nginx 60 s, Google 600 s), so that they hang up first
	DefaultMaxHeader      = 64 << 10          // above what common servers accept (nginx 32 KiB, Node.js 16 KiB)
	DefaultMaxStreams     = 1 << 12           // of one connection: with Go's 250 a balancer that has one would queue at its side
	DefaultMaxConnections = 1 << 16
	DefaultFailures       = 3
	DefaultSlowStart      = 5 * time.Second
	DefaultMaxAbsence     = time.Second
	DefaultInterval       = 2 * time.Second
	DefaultTimeout        = time.Second
	DefaultFall           = 2
	DefaultRise           = 2
	DefaultName           = "default" // of a class, and of an upstream, that has none
)

// One returns the configuration of one service, which flags describe: one upstream and
// one class, which its caller fills in.
func One(upstream *url.URL) *Config {
	return &Config{
		Processes: 1,
		Listeners: []Listener{DefaultListener()},
		Upstreams: []Upstream{DefaultUpstream(upstream)},
		Classes: []Class{{
			Name: DefaultName, Upstream: DefaultName,
			Limiter: goodput.Config{Name: DefaultName, Objective: DefaultObjective},
		}},
	}
}

// DefaultListener returns a listener of which nothing was said.
func DefaultListener() Listener {
	return Listener{
		Network: "tcp", Address: DefaultListen, HTTP1: true, HTTP2: true,
		MaxConnections: DefaultMaxConnections, MaxStreams: DefaultMaxStreams,
		HeaderTimeout: DefaultHeaderTimeout, IdleTimeout: DefaultIdleTimeout, MaxHeader: DefaultMaxHeader,
	}
}

// DefaultUpstream returns an upstream of which only its servers are known.
func DefaultUpstream(servers ...*url.URL) Upstream {
	u := Upstream{
		Name: DefaultName, Failures: DefaultFailures, SlowStart: DefaultSlowStart, MaxAbsence: DefaultMaxAbsence,
	}
	for _, s := range servers {
		u.Servers = append(u.Servers, Server{URL: s})
	}
	return u
}
