package scenario

import (
	"testing"

	"github.com/goodput/goodput/limit"
)

// Where a law finds the limit, a load in multiples is one of the slots, and those who
// cannot find a limit are told the share of an instance of them.
func TestALawFindsTheSlots(t *testing.T) {
	f, err := Load("law.yaml", []byte(`
version: 1
name: law
length: 10s
instances: 3
slots: 60
service: 50ms fixed
policy: {limit: {law: auto, from: 5, max: 90}, objective: 400ms}
load: 3x
compare: [goodput, fifo, {fifo: {limit: 7, label: seven}}, {goodput: {limit: 40, label: forty}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if rate := f.Sim.Classes[0].Arrivals.Rate; rate != 3*60/0.05 {
		t.Errorf("3x is %v/s, want 3 x 60 / 50ms", rate)
	}
	if law := f.Compare[0].Tiers[0].Core.Limit; law != (limit.Auto{From: 5, Max: 90}) {
		t.Errorf("goodput has %#v", law)
	}
	for i, want := range []int{20, 7} {
		b := f.Compare[1+i].Tiers[0].Baseline
		if b.Limit != want {
			t.Errorf("%s has a limit of %d, want %d", f.Compare[1+i].Name, b.Limit, want)
		}
		// The rule of thumb: 20 / 50 ms x 400 ms.
		if i == 0 && b.Depth != 160 {
			t.Errorf("and a depth of %d", b.Depth)
		}
	}
	if law := f.Compare[3].Tiers[0].Core.Limit; law != limit.Fixed(40) {
		t.Errorf("forty is %v", law)
	}
}
