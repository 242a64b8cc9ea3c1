package limit_test

import (
	"fmt"
	"time"

	"github.com/goodput/goodput/limit"
)

// Most callers hand limit.Auto{} to goodput.Config and are done. What happens then is this: once a
// window the limiter tells the law what it measured, and has the limit for the next one. Here
// requests take longer in proportion to what is in flight: 60 would do.
func ExampleAuto() {
	law := limit.Auto{Max: 500}
	now, err := law.Start()
	if err != nil {
		fmt.Println(err) // a sentence: which field, its value, and what is allowed
	}
	fmt.Println("from", now)
	state := law.Begin(1) // the seed: another one for each instance

	w := limit.Window{Length: 50 * time.Millisecond, Objective: 400 * time.Millisecond}
	for range 600 { // half a minute
		took := 50 * time.Millisecond * time.Duration(max(now, 60)) / 60
		n := float64(now) * w.Length.Seconds() / took.Seconds() // ends of the window
		block := limit.Epoch{
			Length: 4 * w.Length, Age: 2 * w.Length, Admitted: 4 * n, InFlight: float64(now), Arrived: 9 * n, Delayed: 5 * n,
			Ended: 4 * n, Samples: 4 * n, Served: 4 * n, Mean: took, Spread: took / 2,
		}
		w.Arrived, w.Delayed, w.Peak, w.Running = 3*n, 2*n, now, now
		w.Ended, w.Samples, w.Mean, w.Own = int(n), int(n), took, took
		w.Epochs = [2]limit.Epoch{block, block}
		now = state.Next(now, &w).Limit
	}
	fmt.Println("above the capacity, by less than a third:", now > 60 && now < 80)
	_, err = limit.Auto{From: 1000, Max: 200}.Start()
	fmt.Println(err)
	// Output:
	// from 20
	// above the capacity, by less than a third: true
	// from 1000 of the auto limit is not within its min and max, 1 to 200
}
