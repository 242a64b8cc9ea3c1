package pressure_test

import (
	"fmt"
	"testing/fstest"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
	"github.com/goodput/goodput/pressure"
)

// A service that computes: what is too much is said by whichever of the two signals is
// worse, and both limiters share them. On a machine without a quota the scheduler's is
// what is left, and the line says so.
func Example() {
	short := pressure.Largest(new(pressure.CGroup), new(pressure.Scheduler))
	for _, class := range []string{"render", "preview"} {
		l := goodput.New(goodput.Config{
			Name:      class,
			Limit:     limit.Auto{},
			Objective: 500 * time.Millisecond,
			Pressure:  short,
		})
		fmt.Println(l.Name(), l.Stats().PressureAbsent) // nothing is known of the first instant
	}
	// Output:
	// render true
	// preview true
}

// A signal that has nothing to say changes nothing, and is seen.
func ExampleCGroup() {
	l := goodput.New(goodput.Config{
		Limit:     limit.Fixed(8),
		Objective: 40 * time.Millisecond,
		Pressure:  &pressure.CGroup{FS: fstest.MapFS{}}, // no Linux
	})
	l.Stats()
	time.Sleep(5 * time.Millisecond) // wall clock: a window, an example has no bubble of synctest
	for _, f := range l.Explanation().Facts {
		if f.Topic == "pressure" {
			fmt.Println(f.Text)
		}
	}
	// Output:
	// not known, goes on without: cgroup: proc/self/cgroup: file does not exist
}

// Stricter than by default: of a thousand waits no more than one may be longer than a
// millisecond, which is for services whose objective is a few milliseconds.
func ExampleScheduler() {
	s := &pressure.Scheduler{Quantile: 0.999, TooMuch: time.Millisecond}
	fmt.Println(s.Validate(), s)
	fmt.Println((&pressure.Scheduler{Quantile: 99}).Validate())
	// Output:
	// <nil> goroutine waits have not been read yet
	// the quantile 99 of goroutine waits is out of range: 0.5 to 0.999
}
