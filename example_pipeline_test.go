package goodput_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// stage is one step of a pipeline: so many items at once, and who comes when all are busy
// waits, whatever the objective is, but not for ever.
func stage(name string, atOnce int) *goodput.Limiter {
	return goodput.New(goodput.Config{
		Name: name, Limit: limit.Fixed(atOnce), Overflow: goodput.Block, MaxWait: time.Minute,
	})
}

// Three bounded stages, in which a slow one slows down the producer and nothing piles up
// in between. An item holds its slot until it has one of the next stage, so when storing
// is stuck the slots before it fill up, stage by stage, and in the end the producer waits
// in Acquire.
//
// What the producer sees: while all goes well Acquire returns at once. When a stage is
// slower than the producer, Acquire returns at the pace of that stage, and that is all
// there is to backpressure: no item is dropped and at most 4 + 2 + 1 are under way. If
// nothing moves for MaxWait, or for as long as the context of the producer allows, Acquire
// returns a *Rejection: the item was not started, and the producer still has it.
func Example_pipeline() {
	decode, enrich, store := stage("decode", 4), stage("enrich", 2), stage("store", 1)
	ctx := context.Background()

	var running sync.WaitGroup
	pass := func(slot *goodput.Slot) { // one item, from its first slot on
		for _, next := range []*goodput.Limiter{enrich, store} {
			// ... the work of this stage, then the next slot before this one goes back
			following, err := next.Acquire(ctx)
			if err != nil {
				slot.Fail(err)
				return
			}
			slot.Release()
			slot = &following
		}
		slot.Release()
	}
	produce := func(items int, produced chan<- int) {
		for i := range items {
			slot, err := decode.Acquire(ctx) // here the pressure arrives
			if err != nil {
				fmt.Println(err)
				return
			}
			running.Go(func() { pass(&slot) })
			produced <- i + 1
		}
		close(produced)
	}

	stuck, _ := store.Acquire(ctx) // the disk does not answer
	produced := make(chan int, 100)
	go produce(100, produced)
	waiting := func() [3]int {
		return [3]int{decode.Stats().Waiting, enrich.Stats().Waiting, store.Stats().Waiting}
	}
	for waiting() != [3]int{1, 4, 2} { // until nothing can move any more
		time.Sleep(time.Millisecond) // wall clock: an example has no bubble of synctest
	}
	fmt.Println("stuck: produced", len(produced), "of 100, and the producer waits")

	stuck.Release() // the disk is back
	for range produced {
	}
	running.Wait()
	s := store.Stats()
	fmt.Println("done: stored", s.Outcomes[goodput.Completed]-1, "of 100, refused", s.Outcomes[goodput.Rejected])
	// Output:
	// stuck: produced 6 of 100, and the producer waits
	// done: stored 100 of 100, refused 0
}

// Positions of buses, of which only the latest of each is worth anything: one that waits
// is replaced by the next of the same bus, and keeps its turn for it.
func Example_latestOnly() {
	lim := goodput.New(goodput.Config{Limit: limit.Fixed(1), Overflow: goodput.LatestOnly})
	ctx := context.Background()
	busy, _ := lim.Acquire(ctx)

	told := make(chan string)
	report := func(bus, position string) {
		slot, err := lim.AcquireWork(ctx, goodput.Work{Key: bus})
		if err != nil {
			told <- bus + " " + position + ": " + err.(*goodput.Rejection).Reason.String()
			return
		}
		told <- bus + " " + position + ": shown"
		slot.Release()
	}
	waiting := func(n int) {
		for lim.Stats().Waiting != n {
			time.Sleep(time.Millisecond) // wall clock: as above
		}
	}
	go report("bus 7", "at the bridge")
	waiting(1)
	go report("bus 9", "at the harbour")
	waiting(2)
	go report("bus 7", "at the station")
	fmt.Println(<-told)
	busy.Release()
	fmt.Println(<-told)
	fmt.Println(<-told)
	// Output:
	// bus 7 at the bridge: replaced
	// bus 7 at the station: shown
	// bus 9 at the harbour: shown
}
