package rivals_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goodput/goodput/internal/rivals"
	"github.com/goodput/goodput/limit"
)

func TestNamed(t *testing.T) {
	for _, name := range rivals.Names {
		for _, from := range []int{0, 1, 20, 1000} {
			l, err := rivals.Named(name, from)
			if err != nil {
				t.Errorf("%s from %d: %v", name, from, err)
				continue
			}
			if got := fmt.Sprint(l); got != name {
				t.Errorf("%s calls itself %s", name, got)
			}
			again, _ := rivals.Named(name, from)
			if l != again {
				t.Errorf("%s: two of the same are not equal", name)
			}
			// Envoy measures first.
			if n, _ := l.Start(); from > 0 && name != "envoy" && n != from {
				t.Errorf("%s from %d starts at %d", name, from, n)
			}
		}
		for _, from := range []int{-1, limit.Max + 1} {
			if _, err := rivals.Named(name, from); err == nil || !strings.Contains(err.Error(), fmt.Sprint(from)) {
				t.Errorf("%s from %d: %v", name, from, err)
			}
		}
	}
	if _, err := rivals.Named("fastest", 0); err == nil || !strings.Contains(err.Error(), "fastest") {
		t.Errorf("an unknown name: %v", err)
	}
}

// As their authors start them.
func TestPublished(t *testing.T) {
	starts := []int{20, 20, 20, 2, 3, 20, 10, 20, 20}
	for i, name := range rivals.Names {
		l, err := rivals.Published(name)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := l.Start(); n != starts[i] || err != nil || fmt.Sprint(l) != name {
			t.Errorf("%s: %v starts at %d, %v, want %d", name, l, n, err, starts[i])
		}
	}
	if _, err := rivals.Published("fastest"); err == nil || !strings.Contains(err.Error(), "fastest") {
		t.Errorf("an unknown name: %v", err)
	}
}
