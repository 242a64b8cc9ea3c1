package admin

import (
	"context"

	"github.com/goodput/goodput/cmd/goodput/internal/live"
)

// hub returns what streams /api/v1/events. Its ticks have what /api/v1/state answers.
func (a *Admin) hub() *live.Hub {
	cfg := live.Config{
		Limiters: a.cfg.Limiters,
		State:    func(snaps []live.Snapshot) any { return a.stateOf(snaps) },
	}
	if a.cfg.Demo != nil {
		cfg.Scene = a.cfg.Demo.Scene
	}
	return live.New(cfg)
}

// Watch looks at the limiters once a second, for those who watch, until ctx is done. Without
// it /api/v1/events has nothing to tell.
func (a *Admin) Watch(ctx context.Context) { a.events.Run(ctx) }
