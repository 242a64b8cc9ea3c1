package listen

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

func TestPauser(t *testing.T) {
	var p pauser
	start := time.Unix(1000, 0)
	for _, s := range []struct {
		at         time.Duration
		overloaded bool
		want       bool
	}{
		{0, false, false},
		{100 * time.Millisecond, true, false},
		{1000 * time.Millisecond, true, false},
		{1099 * time.Millisecond, true, false},
		{1100 * time.Millisecond, true, true}, // a second
		{9000 * time.Millisecond, true, true},
		{9100 * time.Millisecond, false, false}, // over at once
		{9200 * time.Millisecond, true, false},  // and a second begins anew
		{10100 * time.Millisecond, true, false},
		{10200 * time.Millisecond, true, true},
	} {
		if got := p.step(start.Add(s.at), s.overloaded); got != s.want {
			t.Errorf("after %v, overloaded %v: %v", s.at, s.overloaded, got)
		}
	}
}

// The listeners that would hold back are told, the others are not, and at the end nobody is.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		able := &Listener{cfg: config.Listener{PauseAccepts: time.Second}}
		not := &Listener{}
		overloaded := true
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			Watch(ctx, func() bool { return overloaded }, able, not)
		}()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if able.pausing.Load() {
			t.Error("held back after half a second")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !able.pausing.Load() || not.pausing.Load() {
			t.Error("not held back after a second and a half, or the wrong one")
		}
		cancel()
		<-over
		if able.pausing.Load() {
			t.Error("held back for ever")
		}
		Watch(t.Context(), nil, not) // returns
	})
}

// While it is told to, a listener accepts one connection per PauseAccepts, at most a second.
func TestPausedAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			on          bool
			pause, for3 time.Duration
		}{
			{true, 300 * time.Millisecond, 900 * time.Millisecond},
			{true, time.Hour, 3 * time.Second},
			{false, time.Hour, 0},
			{true, 0, 0},
		} {
			l := &Listener{cfg: config.Listener{PauseAccepts: c.pause}, closed: make(chan struct{})}
			l.Pause(c.on)
			start := time.Now()
			for range 3 {
				l.pause()
			}
			if got := time.Since(start); got != c.for3 || time.Duration(l.counts.paused.Load()) != got {
				t.Errorf("%+v: three took %v, counted %v", c, got, l.counts.paused.Load())
			}
		}
	})
}

func TestReadOverflows(t *testing.T) {
	for _, c := range []struct {
		text             string
		overflows, drops uint64
		ok               bool
	}{
		{"TcpExt: A ListenOverflows ListenDrops B\nTcpExt: 1 17 23 4\nIpExt: ListenDrops\nIpExt: 9\n", 17, 23, true},
		{"IpExt: A\nIpExt: 1\n\nTcpExt: ListenDrops ListenOverflows\nTcpExt: 5 4\n", 4, 5, true},
		{"TcpExt: ListenOverflows ListenDrops\nTcpExt: 17\n", 0, 0, false},
		{"TcpExt: ListenOverflows ListenDrops\nTcpExt: 17 many\n", 0, 0, false},
		{"TcpExt: ListenOverflows ListenDrops\n", 0, 0, false},
		{"", 0, 0, false},
	} {
		overflows, drops, ok := readOverflows(strings.NewReader(c.text))
		if overflows != c.overflows || drops != c.drops || ok != c.ok {
			t.Errorf("%q: %d, %d, %v", c.text, overflows, drops, ok)
		}
	}
}
