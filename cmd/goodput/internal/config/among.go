package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// What several parts of a file contradict in each other.

func (r *reader) among() {
	r.last()
	r.names()
	r.reach()
	r.grpc()
	r.circles()
	for i := range r.cfg.Upstreams {
		r.parent(&r.cfg.Upstreams[i], r.behind[i])
	}
}

// last: a request that no class takes would have no limit.
func (r *reader) last() {
	if len(r.classes) == 0 || !r.root.Has("classes") {
		return
	}
	if m := r.classes[len(r.classes)-1].m; m.Has("match") {
		m.Get("match").Fail("the last class has a match: a request that none takes would have no limit; let the last one take what is left, without match")
	}
}

func (r *reader) names() {
	first, upstreams := map[string]*classAt{}, []string{}
	for _, u := range r.cfg.Upstreams {
		upstreams = append(upstreams, u.Name)
	}
	for _, k := range r.classes {
		if before := first[k.Name]; before != nil && k.Name != "" {
			k.node("name").Clash(before.node("name"), "two classes are called %s: their metrics and their limits could not be told apart", k.Name)
		}
		first[k.Name] = k
		switch at := k.m.Get("upstream"); {
		case !k.sound || len(upstreams) == 0 || slices.Contains(upstreams, k.Upstream):
		case k.Upstream == "":
			k.m.Node().Clash(r.root.Get("upstreams"), "class %s has no upstream, and there are several: %s", k.Name, strictyaml.Either(upstreams))
		default:
			at.Clash(r.root.Get("upstreams"), "upstream %q is unknown%s", k.Upstream, strictyaml.Unknown(k.Upstream, upstreams))
		}
	}
}

// reach: classes are asked in their order.
func (r *reader) reach() {
	for j, later := range r.classes {
		for _, k := range r.classes[:j] {
			if !k.sound || !later.sound || !k.Match.Covers(&later.Match) {
				continue
			}
			why := "takes whatever that matches"
			if k.Match.Empty() {
				why = "takes every request"
			}
			later.node("name").Clash(k.node("name"), "class %s never gets a request: class %s, above it, %s", later.Name, k.Name, why)
			break
		}
	}
}

// grpc: what speaks HTTP/2 only has to find it.
func (r *reader) grpc() {
	if slices.ContainsFunc(r.cfg.Listeners, func(l Listener) bool { return l.HTTP2 }) {
		return
	}
	for _, k := range r.classes {
		if k.sound && k.Match.grpc() {
			k.node("match").Clash(r.root.Get("listen"), "class %s is of gRPC, which is HTTP/2, and no listener has h2 among its protocols", k.Name)
		}
	}
}

// circles: a request that is sent to where it came in comes in again.
func (r *reader) circles() {
	for i := range r.cfg.Upstreams {
		for _, s := range r.cfg.Upstreams[i].Servers {
			for j := range r.cfg.Listeners {
				l := &r.cfg.Listeners[j]
				if l.Network != "tcp" || !l.reaches(s.URL) {
					continue
				}
				r.behind[i].Clash(r.root.Get("listen"), "server %s is where we listen ourselves, %s: "+whyNotOurselves, s.URL.Redacted(), l.Address)
			}
		}
	}
}

// reaches reports whether a URL surely leads to the listener.
func (l *Listener) reaches(u *url.URL) bool {
	host, port, err := net.SplitHostPort(l.Address)
	at := cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80")
	if err != nil || port != at || port == "0" {
		return false
	}
	local := u.Hostname() == "localhost"
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		local = ip.IsLoopback() || ip.IsUnspecified()
	}
	here := net.ParseIP(host)
	return host == u.Hostname() || local && (host == "" || host == "localhost" || here != nil && (here.IsUnspecified() || here.IsLoopback()))
}

// parent: what the classes of an upstream may have in flight together is no more than what
// its servers run, if each says how much that is.
func (r *reader) parent(u *Upstream, at strictyaml.Node) {
	room := u.room()
	if room == 0 {
		return
	}
	var all []*classAt
	var terms []string
	sum := 0
	for _, k := range r.classes {
		most := k.most()
		if !k.sound || k.Upstream != u.Name || k.Mode == Connection || most == 0 {
			continue
		}
		if most*r.cfg.Processes > room {
			k.node("limit").Clash(at, "limit %s is above what the servers of upstream %s run at once, %d%s",
				times(most, r.cfg.Processes), u.Name, room, each(room, r.cfg.Processes))
			return
		}
		sum += most
		all, terms = append(all, k), append(terms, fmt.Sprintf("%d of %s", most, k.Name))
	}
	if sum*r.cfg.Processes <= room {
		return
	}
	last := all[len(all)-1].node("limit")
	sentence := fmt.Sprintf("the limits of upstream %s add up to %s (%s), above what its servers run at once, %d%s",
		u.Name, times(sum, r.cfg.Processes), strings.Join(terms, ", "), room, each(room, r.cfg.Processes))
	last.Clash(at, "%s", sentence)
	for _, k := range all[:len(all)-1] {
		last.Clash(k.node("limit"), "%s", sentence)
	}
}

// room is how many requests the servers run at once, 0 if one of them does not say.
func (u *Upstream) room() (n int) {
	for _, s := range u.Servers {
		if s.Limit == 0 {
			return 0
		}
		n += s.Limit
	}
	return n
}

// times is a limit, and what it is in all processes.
func times(n, processes int) string {
	if processes == 1 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d, x %d processes = %d,", n, processes, n*processes)
}

// each is how much one process may have of what all have.
func each(room, processes int) string {
	if processes == 1 {
		return ""
	}
	return fmt.Sprintf(": at most %d / %d = %d in each", room, processes, room/processes)
}
