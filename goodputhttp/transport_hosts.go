package goodputhttp

import (
	"container/list"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// DefaultMaxHosts is how many hosts ByHost keeps apart by default. A Dependency with a
// Limiter, a Policy and a Throttle was 55 KB when it was measured, so that is 55 MB.
const DefaultMaxHosts = 1000

// ByHost returns one Dependency for each host, made by create, with what it has learned:
//
//	hosts := goodputhttp.ByHost(create, goodputhttp.DefaultMaxHosts)
//	client := &http.Client{Transport: &goodputhttp.Transport{Dependency: hosts.Dependency}}
//
// host is that of the URL in lower case, without a dot at its end, with the port unless it is
// the one of the scheme.
// create may return nil, for hosts that need none, and may be called more than once for a
// host; it must be safe for concurrent use.
//
// At most most hosts are kept; 0 is DefaultMaxHosts. Who can choose the hosts, as users
// of webhooks can, can fill any table: then the host goes that was not used for the
// longest time, of those that have no request under way, and is new when it comes back.
// Those with one under way stay, because a second limiter beside the first would double
// the limit. If all have one, the new host shares one Dependency with the others like it,
// create(""), and so does a name that is too long to be one (259 bytes), none, or not ASCII:
// a name in Unicode has to be in punycode. A host that shared that one has a limit of its own
// beside it as soon as there is a place.
func ByHost(create func(host string) *Dependency, most int) *Hosts {
	if create == nil || most < 0 {
		panic("goodputhttp: ByHost needs a function and a number of hosts, or 0 for DefaultMaxHosts")
	}
	t := &Hosts{create: create, most: or(most, DefaultMaxHosts), byName: map[string]*list.Element{}}
	t.rest = sync.OnceValue(func() *Dependency {
		t.shared.Store(create(""))
		return t.shared.Load()
	})
	return t
}

// Hosts has one Dependency for each host. It is made by ByHost, and safe for concurrent
// use.
type Hosts struct {
	create func(string) *Dependency
	most   int

	rest   func() *Dependency         // of those that found no place
	shared atomic.Pointer[Dependency] // the same; nil: none was needed yet

	mu     sync.Mutex
	byName map[string]*list.Element // of *host
	used   list.List                // the one used last in front
}

// Dependency returns the one of the host of r: it is for Transport.Dependency.
func (t *Hosts) Dependency(r *http.Request) *Dependency {
	name := hostOf(r.URL)
	if name == "" || len(name) > maxHost {
		return t.rest()
	}
	return t.get(name)
}

// All returns what there is now by the name of the host, in the order of the names, for
// metrics and Explain. The one that hosts without a place share comes first, as "". Hosts
// for which create returned nil are left out. It counts as no use of a host, and a host that
// has lost its place is not there any more, nor are its counters.
//
//	for host, dep := range hosts.All() {
//		fmt.Println(host, dep.Stats().Attempts)
//	}
func (t *Hosts) All() iter.Seq2[string, *Dependency] {
	return func(yield func(string, *Dependency) bool) {
		if dep := t.shared.Load(); dep != nil && !yield("", dep) {
			return
		}
		for _, h := range t.sorted() {
			if !yield(h.name, h.dep) {
				return
			}
		}
	}
}

// sorted returns those that have a Dependency. yield may come back to t, so it is not
// called under the lock.
func (t *Hosts) sorted() []*host {
	t.mu.Lock()
	all := make([]*host, 0, len(t.byName))
	for e := t.used.Front(); e != nil; e = e.Next() {
		if h := e.Value.(*host); h.dep != nil {
			all = append(all, h)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(all, func(a, b *host) int { return strings.Compare(a.name, b.name) })
	return all
}

type host struct {
	name string
	dep  *Dependency
}

// leaves reports whether h may lose its place, which its Dependency is then told.
//
// Between Hosts.Dependency and RoundTrip nothing says that a request is about to begin, and
// who asks for a Dependency need not send anything. So RoundTrip first counts itself and then
// looks at gone, and here it is the other way round: one of the two sees the other. Without
// that a host would have two limiters, one in the table and one in use.
func (h *host) leaves() bool {
	if h.dep == nil {
		return true
	}
	h.dep.gone.Store(true)
	if h.dep.idle() {
		return true
	}
	h.dep.gone.Store(false)
	return false
}

// kept returns the Dependency of h, which is in the table. It may be that of another host,
// too, which has lost its place.
func (h *host) kept() *Dependency {
	if h.dep != nil && h.dep.gone.Load() {
		h.dep.gone.Store(false)
	}
	return h.dep
}

func (t *Hosts) get(name string) *Dependency {
	dep, found, room := t.find(name)
	switch {
	case found:
		return dep
	case !room:
		return t.rest()
	}
	dep = t.create(name) // not under the lock: it is not our code
	if dep, ok := t.add(name, dep); ok {
		return dep
	}
	return t.rest()
}

// find returns the one of name, or whether there is room for it.
func (t *Hosts) find(name string) (dep *Dependency, found, room bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.byName[name]; ok {
		t.used.MoveToFront(e)
		return e.Value.(*host).kept(), true, false
	}
	return nil, false, t.room()
}

// add puts dep in, unless somebody was faster, and returns the one of name; false if the
// room is gone.
func (t *Hosts) add(name string, dep *Dependency) (*Dependency, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.byName[name]; ok {
		return e.Value.(*host).kept(), true
	}
	if !t.room() {
		return nil, false
	}
	h := &host{name, dep}
	t.byName[name] = t.used.PushFront(h)
	return h.kept(), true
}

// room reports whether there is a place for one more, and makes it if it can.
func (t *Hosts) room() bool { return t.used.Len() < t.most || t.evict() }

// evictTries bounds the search for a host without a request under way, so that a full
// table does not make each new host walk all of it. The longest unused are looked at
// first, and those are idle unless they are slow.
const evictTries = 64

// evict removes the idle host that was used last of all, and reports whether there was one.
func (t *Hosts) evict() bool {
	e := t.used.Back()
	for range evictTries {
		if e == nil {
			return false
		}
		h := e.Value.(*host)
		if h.leaves() {
			t.used.Remove(e)
			delete(t.byName, h.name)
			return true
		}
		e = e.Prev()
	}
	return false
}
