package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
)

// Ids are the names that the requests of a class bring: of its tenants, of its users,
// or of what they are about. The zero value is none.
type Ids struct {
	// N is how many distinct ones there are, drawn anew for each request: to 100,000.
	N int

	// Zipf is how uneven they are: the i-th is drawn in proportion to 1/i^Zipf, 0 to 10.
	// 0 is all alike; about 1 is what is measured of words, pages and customers.
	Zipf float64

	// Fresh, instead of N, has each request bring one that nobody has brought before:
	// what a client does who can choose its id and means no good.
	Fresh bool
}

// There are fewer names than a list may have entries: each is 24 bytes and its text.
const maxIds = maxParts

func (i *Ids) zero() bool { return *i == Ids{} }

func (i *Ids) validate() error {
	switch {
	case i.N < 0 || i.N > maxIds:
		return fmt.Errorf("n %d is out of range: 1 to %d", i.N, maxIds)
	case !(i.Zipf >= 0 && i.Zipf <= 10):
		return fmt.Errorf("zipf %v is out of range: 0, which is evenly, to 10", i.Zipf)
	case i.Fresh && (i.N > 0 || i.Zipf > 0):
		return fmt.Errorf("fresh contradicts n %d and zipf %v: each is drawn once", i.N, i.Zipf)
	case i.N == 0 && i.Zipf > 0:
		return fmt.Errorf("zipf %v is of n distinct ones: n is missing", i.Zipf)
	}
	return nil
}

// The streams of names are beside those of the rest, so that a class that brings some
// has the arrivals and the work that it had without.
const (
	nameTenants = iota
	nameUsers
	nameKeys
	nameHearsay
	nameKinds
)

func nameStream(seed uint64, kind, class int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 1<<32+uint64(class*nameKinds+kind)))
}

// freshBytes is the length of a name that is drawn once: 16 hexadecimal digits, of
// which two are alike among a million with a probability of 3e-8.
const freshBytes = 16

// A namer hands out the names of one kind of a class.
type namer struct {
	rand  *rand.Rand
	names []string  // none if each is fresh
	cdf   []float64 // nil if they are alike
	fresh string    // names that are drawn and not yet handed out
}

// newNamer returns nil for none. The names are prefix-1, prefix-2 ...: the same for
// every class with that prefix.
func newNamer(ids Ids, prefix string, r *rand.Rand) *namer {
	if ids.zero() {
		return nil
	}
	n := &namer{rand: r}
	if ids.Fresh {
		return n
	}
	n.names = make([]string, ids.N)
	for i := range n.names {
		n.names[i] = idOf(prefix, i)
	}
	if ids.Zipf > 0 {
		n.cdf = shares(ids.N, func(i int) float64 { return zipf(i+1, ids.Zipf) })
	}
	return n
}

func idOf(prefix string, i int) string { return prefix + "-" + strconv.Itoa(i+1) }

// draw returns a name and its index, which is -1 for a fresh one.
func (n *namer) draw() (string, int) {
	switch {
	case n.names == nil:
		return n.once(), -1
	case n.cdf == nil:
		i := n.rand.IntN(len(n.names))
		return n.names[i], i
	}
	u := n.rand.Float64()
	i := min(sort.Search(len(n.cdf), func(i int) bool { return u < n.cdf[i] }), len(n.cdf)-1)
	return n.names[i], i
}

// once returns a name that nobody has had. They are cut out of a longer text, so that
// a million of them a second are not a million allocations.
func (n *namer) once() string {
	if n.fresh == "" {
		const hex = "0123456789abcdef"
		var text [256 * freshBytes]byte
		for i := 0; i < len(text); i += freshBytes {
			x := n.rand.Uint64()
			for k := range freshBytes {
				text[i+k] = hex[x>>(4*k)&15]
			}
		}
		n.fresh = string(text[:])
	}
	name := n.fresh[:freshBytes]
	n.fresh = n.fresh[freshBytes:]
	return name
}

// zipf is the share of the i-th.
func zipf(i int, s float64) float64 { return math.Pow(float64(i), -s) }
