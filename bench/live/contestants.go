package live

import (
	"net/http"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/goodputhttp"
	"github.com/goodput/goodput/internal/rivals"
	"github.com/goodput/goodput/limit"
)

// A Contestant is a limiter in front of a handler.
type Contestant struct {
	Name string

	// Law and NoQueue are what the model plays: nil where there is no limit to play, and
	// whether who finds no slot is refused at once.
	Law     limit.Law
	NoQueue bool

	// Wrap returns next behind a fresh limiter that is told the slots, if it wants to
	// be told, and what tells its limit; nil if it has none to tell.
	Wrap func(slots int, next http.Handler) (http.Handler, func() int)
}

// Contestants are all of them. Those called told know the slots that there are at
// first; the others know nothing.
//
//	goodput-auto      limit.Auto{}
//	goodput-told      limit.Fixed(slots): what a limit that finds itself is measured by
//	failsafe-cold     failsafe-go's adaptive limiter with its defaults: 1 to 200, first 20
//	failsafe-told     the same, first the slots
//	kratos-bbr        aegis' BBR with its defaults: sheds above 80 % of the processors
//	gozero-shedder    go-zero's adaptive shedder with its defaults: above 90 %
//
// Both limiters of failsafe-go refuse who finds no slot, as by default: with their
// queue they did no better (0.37 of capacity at 3x, cold, in 20 s). The model plays
// package rivals in their place. That package is written from their source, so what
// differs there is our reading of it as well.
func Contestants(slots int) []Contestant {
	return []Contestant{
		own("goodput-auto", limit.Auto{}),
		own("goodput-told", limit.Fixed(slots)),
		failsafeAdaptive("failsafe-cold", 20),
		failsafeAdaptive("failsafe-told", uint(slots)),
		{Name: "kratos-bbr", Wrap: kratos},
		{Name: "gozero-shedder", Wrap: gozero},
	}
}

func init() {
	// go-zero writes a line a minute, and one for each second in which it refused. In its
	// favour: it need not.
	logx.Disable()
	load.DisableLog()
}

// own is goodput as the README shows it.
func own(name string, law limit.Law) Contestant {
	return Contestant{Name: name, Law: law, Wrap: func(_ int, next http.Handler) (http.Handler, func() int) {
		lim := goodput.New(goodput.Config{Limit: law, Objective: Objective})
		return goodputhttp.Handler(lim, next), func() int { return lim.Stats().Limit }
	}}
}

func failsafeAdaptive(name string, first uint) Contestant {
	law := rivals.Failsafe{From: int(first)}
	return Contestant{Name: name, Law: law, NoQueue: true, Wrap: func(_ int, next http.Handler) (http.Handler, func() int) {
		l := adaptivelimiter.NewBuilder[*http.Response]().WithLimits(1, 200, first).Build()
		return failsafehttp.NewHandler(next, l), l.Limit
	}}
}

func kratos(_ int, next http.Handler) (http.Handler, func() int) {
	l := bbr.NewLimiter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, err := l.Allow()
		if err != nil {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
		done(ratelimit.DoneInfo{})
	}), func() int { return int(l.Stat().MaxInFlight) }
}

func gozero(_ int, next http.Handler) (http.Handler, func() int) {
	s := load.NewAdaptiveShedder()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := s.Allow()
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
		if r.Context().Err() != nil {
			p.Fail()
			return
		}
		p.Pass()
	}), nil
}
