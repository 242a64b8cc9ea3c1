package scenario

import (
	"reflect"
	"testing"
)

// A policy that is chosen by its name is the one that compare would have by it, whatever the
// policy of the file says of its own queue.
func TestChosenIsAsCompared(t *testing.T) {
	const text = "version: 1\nname: x\nlength: 1s\nservice: 50ms fixed\nload: 1x\npolicy: {limit: 6, depth: none, order: edf, objective: 400ms}\n"
	for _, name := range []string{"goodput", "fifo", "lifo", "codel", "none"} {
		compared, err := Load("x.yaml", []byte(text+"compare: ["+name+"]\n"))
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := LoadFor("x.yaml", []byte(text+"compare: [reject]\n"), []string{name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(chosen.Compare, compared.Compare) {
			t.Errorf("%s: chosen %+v, compared %+v", name, chosen.Compare[0].Tiers[0], compared.Compare[0].Tiers[0])
		}
	}
}
