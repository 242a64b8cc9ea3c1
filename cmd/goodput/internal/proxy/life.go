package proxy

import (
	"context"
	"time"
)

// A life is the context of a request that may be upgraded. Its deadline is one for the answer,
// and the 101 is that answer: what bounds the connection from then on is Idle and Total.
// ReverseProxy would hang up with the context of the request.
type life struct {
	context.Context                 // ends with asked until freed, and with end
	asked           context.Context // of the request
	freed           func() bool
	end             context.CancelFunc
}

func lifeOf(asked context.Context) *life {
	ctx, end := context.WithCancel(context.WithoutCancel(asked))
	return &life{Context: ctx, asked: asked, end: end, freed: context.AfterFunc(asked, end)}
}

// Deadline is that of the request.
func (l *life) Deadline() (at time.Time, ok bool) { return l.asked.Deadline() }

// Err is that of the request, where that is what ended it.
func (l *life) Err() error {
	if err := l.Context.Err(); err == nil || l.asked.Err() == nil {
		return err
	}
	return l.asked.Err()
}
