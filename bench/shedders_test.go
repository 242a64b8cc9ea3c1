package bench

import (
	"fmt"

	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"
)

// The two that shed when the CPU is busy: no limit of their own, no queue, so
// Allow is their only form. While the CPU is idle they admit everything; Refusal
// arms them by a threshold of 0 and in-flight requests without a completion.

func init() {
	// In go-zero's favour: it logs each refusal.
	logx.Disable()
	load.DisableLog()
}

// armed is how many are in flight before Refusal starts, far above what either
// shedder estimates as its capacity when it has seen nothing finish.
const armed = 1000

var kratosBBR = contestant{
	name: "kratos-bbr",
	acquire: func(int) func(n int) error {
		l := bbr.NewLimiter()
		return func(n int) error {
			for range n {
				done, err := l.Allow()
				if err != nil {
					return err
				}
				done(ratelimit.DoneInfo{})
			}
			return nil
		}
	},
	refusal: func() (refuse func(n int) error, stop func()) {
		l := bbr.NewLimiter(bbr.WithCPUThreshold(0))
		for range armed {
			_, _ = l.Allow()
		}
		return func(n int) error {
			for range n {
				if _, err := l.Allow(); err == nil {
					return errAdmitted
				}
			}
			return nil
		}, func() {}
	},
}

var gozeroShedder = contestant{
	name: "gozero-shedder",
	acquire: func(int) func(n int) error {
		s := load.NewAdaptiveShedder()
		return func(n int) error {
			for range n {
				p, err := s.Allow()
				if err != nil {
					return err
				}
				p.Pass()
			}
			return nil
		}
	},
	refusal: func() (refuse func(n int) error, stop func()) {
		s := load.NewAdaptiveShedder(load.WithCpuThreshold(0))
		var promises []load.Promise
		for range 2 * armed {
			p, err := s.Allow()
			if err != nil {
				panic(fmt.Sprintf("an unarmed shedder refuses: %v", err))
			}
			promises = append(promises, p)
		}
		// Its moving average of the in-flight requests moves when one ends.
		for _, p := range promises[armed:] {
			p.Fail()
		}
		return func(n int) error {
			for range n {
				if _, err := s.Allow(); err == nil {
					return errAdmitted
				}
			}
			return nil
		}, func() {}
	},
}
