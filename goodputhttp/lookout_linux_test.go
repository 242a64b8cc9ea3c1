package goodputhttp

import (
	"math/rand/v2"
	"testing"
)

// A round looks at everybody who has been there since the one before and was not taken out,
// whatever the order in which they come and go, and at nobody else.
func TestLookoutLooksAtThoseThatAreThere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	l := &lookout{going: true} // so that it begins no rounds: they are ours
	type one struct {
		watch
		looker
		rounds int64
	}
	var there, gone []*one
	for range 5000 {
		switch n := dice.IntN(10); {
		case n < 5:
			o := &one{}
			o.conn, o.leave, o.by = &o.looker, func() { t.Error("it has not left") }, l
			l.add(&o.watch)
			there = append(there, o)
		case n < 9 && len(there) > 0:
			i := dice.IntN(len(there))
			o := there[i]
			there = append(there[:i], there[i+1:]...)
			o.stop()
			o.stop() // by who upgrades it, and at the end
			gone = append(gone, o)
		default:
			l.mu.Lock()
			l.look()
			l.mu.Unlock()
			for _, o := range there {
				o.rounds++
			}
		}
		for _, o := range append(there, gone...) {
			if looks := o.looks.Load(); looks != max(0, o.rounds-1) {
				t.Fatalf("%d looks in %d rounds", looks, o.rounds)
			}
		}
	}
	for _, o := range there {
		o.stop()
	}
	if l.first != nil {
		t.Error("somebody is left")
	}
}
