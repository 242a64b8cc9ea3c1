package live

import (
	"context"
	"time"
)

// A Sender performs one request of so much work and returns the status of its answer. It
// ends when ctx does, which is when its caller gives up.
type Sender func(ctx context.Context, work time.Duration) (status int, err error)

// Against plays p against whatever is behind send, in other processes. The service of p
// is asked for its speed at the end: see Backend.Speed.
func Against(ctx context.Context, name string, p Plan, send Sender, speed func() (float64, error)) (*Result, error) {
	begun, start := processors(), time.Now()
	t := offer(ctx, p, start, func(ctx context.Context, work time.Duration) answer {
		status, err := send(ctx, work)
		return answer{status, err}
	})
	cpu := (processors() - begun).Seconds() / time.Since(start).Seconds()
	s, err := speed()
	if err != nil {
		return nil, err
	}
	return t.result(name, s, cpu, false), nil
}
