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
	if law, ok := (Config{Observe: true}).seeded(1).Limit.(held); !ok || law != (held{limit.Auto{}}) {
		t.Errorf("the law of who watches is %v, want the default, held", (Config{Observe: true}).seeded(1).Limit)
	}
}
