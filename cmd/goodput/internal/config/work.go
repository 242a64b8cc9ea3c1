package config

import (
	"slices"
	"strings"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/limit"
	"golang.org/x/net/http/httpguts"
)

// What a request is: who sends it, how much it matters, how much it is.

const maxSize = 1<<31 - 1 // of goodput.Work.Size

var priorities = []string{
	goodput.Critical.String(), goodput.Default.String(), goodput.Sheddable.String(), goodput.Background.String(),
}

func work(m *strictyaml.Map, c *Class) {
	c.Tenant, c.User = key(m.Get("tenant")), key(m.Get("user"))
	if c.Tenant.From != Nobody && !m.Get("tenants").Present() {
		c.Limiter.Tenants = &goodput.Tenants{} // who is told apart has a share
	}
	c.Priority = priority(m.Get("priority"))
	c.Cost = amount(m.Get("cost"), limit.Max)
	c.Size = amount(m.Get("size"), maxSize)
}

// key reads who: address, tls, none, or {header: X-Tenant}, {address: {v4: 24, v6: 56}}.
func key(n strictyaml.Node) (k Key) {
	if !n.IsMap() {
		froms := [...]KeyFrom{Nobody, Address, Cert}
		return Key{From: froms[wordOrHeader(n, "X-Tenant", "none", "address", "tls")]}
	}
	m := n.Map()
	defer m.Done()
	header, network := m.Get("header"), m.Get("address")
	switch {
	case header.Present() && network.Present():
		header.Clash(network, "%s is a header and an address: it is one of them", n.Name())
	case header.Present():
		k.From, k.Header = Named, headerName(header)
	case network.Present():
		k.From = Address
		bits := network.Map()
		k.V4, k.V6 = int(bits.Get("v4").Whole(1, 32)), int(bits.Get("v6").Whole(1, 128))
		bits.Done()
	default:
		n.Fail("%s says nobody: header: X-Tenant, or address: {v4: 24, v6: 56}", n.Name())
	}
	return k
}

// wordOrHeader reads a word where a header may stand as well. Who writes neither may have meant
// a header by its name.
func wordOrHeader(n strictyaml.Node, example string, words ...string) int {
	text := n.Raw()
	if text == "" || slices.Contains(words, text) || strictyaml.Near(text, words) != "" {
		return n.Word(words...)
	}
	if strings.Contains(text, "-") && httpguts.ValidHeaderFieldName(text) {
		example = text
	}
	n.Fail("%s %q is unknown: %s, or a header: {header: %s}", n.Name(), text, strings.Join(words, ", "), example)
	return 0
}

// priority reads a word, or {header: X-Priority, default: sheddable}.
func priority(n strictyaml.Node) (p Priority) {
	word := func(n strictyaml.Node) goodput.Priority {
		return goodput.Critical + goodput.Priority(n.Word(priorities...))
	}
	if !n.IsMap() {
		set(&p.Fixed, n, func(n strictyaml.Node) goodput.Priority {
			return goodput.Critical + goodput.Priority(wordOrHeader(n, "X-Priority", priorities...))
		})
		return p
	}
	m := n.Map()
	defer m.Done()
	p.Header = headerName(m.Need("header", "X-Priority"))
	set(&p.Fixed, m.Get("default"), word)
	return p
}

// amount reads a number, {header: X-Cost, default: 1, max: 8} or {body: 64KiB}.
func amount(n strictyaml.Node, most int64) (a Amount) {
	if !n.IsMap() {
		a.Fixed = int(n.WholeOr(1, most, "{header: X-Cost} or {body: 64KiB}"))
		return a
	}
	m := n.Map()
	defer m.Done()
	header, body := m.Get("header"), m.Get("body")
	set(&a.Fixed, m.Get("default"), whole(1, most))
	set(&a.Most, m.Get("max"), whole(1, most))
	switch {
	case header.Present() && body.Present():
		header.Clash(body, "%s is from a header and from the body: it is one of them", n.Name())
	case header.Present():
		a.Header = headerName(header)
	case body.Present():
		a.Per = body.Size()
	default:
		n.Fail("%s says no source: header: X-Cost, or body: 64KiB; a fixed one is a number without a key", n.Name())
	}
	if m.Sound() && a.Most != 0 && a.Fixed > a.Most {
		m.Get("default").Clash(m.Get("max"), "default %d is above max %d: most a request may be is less than what it is without a word", a.Fixed, a.Most)
	}
	return a
}
