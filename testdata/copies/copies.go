// Package copies copies a Slot in the ways that go vet must report.
package copies

import "github.com/goodput/goodput"

func handOver(s goodput.Slot) { s.Release() }

func twice(s *goodput.Slot) {
	again := *s
	again.Release()
	s.Release()
}

type job struct{ slot goodput.Slot }

func each(jobs []job) {
	for _, j := range jobs {
		j.slot.Release()
	}
}
