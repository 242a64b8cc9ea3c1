package goodput

import (
	"testing"

	"github.com/goodput/goodput/limit"
)

// Who says nothing about the limit has one that finds itself, also after a change.
func TestDefaultLimitFindsItself(t *testing.T) {
	l := New(Config{})
	if s := l.Stats(); s.Limit != 20 || !s.LimitSearch {
		t.Errorf("a limiter without a word has limit %d, searching %v; want 20, true", s.Limit, s.LimitSearch)
	}
	if err := l.Reconfigure(Config{Limit: limit.Fixed(3)}); err != nil {
		t.Fatal(err)
	}
	if err := l.Reconfigure(Config{}); err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.Limit != 20 || !s.LimitSearch {
		t.Errorf("without a word again it has limit %d, searching %v; want 20, true", s.Limit, s.LimitSearch)
	}
}

// Who watches and says nothing about the limit has that law held, as one who says it.
func TestDefaultLimitIsHeldWhileWatching(t *testing.T) {
	for _, law := range []limit.Law{nil, limit.Auto{}} {
		if s := New(Config{Limit: law, Observe: true}).Stats(); !s.LimitHeld || s.LimitSearch || s.Limit != 20 {
			t.Errorf("the law of who watches with %v: held %v, searching %v, limit %d", law, s.LimitHeld, s.LimitSearch, s.Limit)
		}
	}
}
