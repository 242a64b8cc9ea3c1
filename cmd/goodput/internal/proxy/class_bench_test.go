package proxy

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// What it takes to find the class of a request, which is to be less than a microsecond: the
// first of many, and the last, after every other one has been asked.
//
//	go test -bench ClassOf -run '^$' ./internal/proxy
func BenchmarkClassOf(b *testing.B) {
	for _, n := range []int{1, 3, 20} {
		t := &table{}
		for i := range n - 1 {
			t.classes = append(t.classes, &class{matches: match(config.Match{
				Hosts:   []string{fmt.Sprintf("api%d.example.com", i), "*.example.org"},
				Paths:   []string{fmt.Sprintf("/v%d/search", i)},
				Methods: []string{"GET", "HEAD"},
				Headers: []config.Header{{Name: "X-Plan", Value: "pro"}},
			})})
		}
		t.classes = append(t.classes, &class{})
		r := httptest.NewRequest("GET", "http://api0.example.com/v0/search/things?q=1", nil)
		r.Header.Set("X-Plan", "pro")
		b.Run(fmt.Sprintf("first-of-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t.class(r)
			}
		})
		r = httptest.NewRequest("GET", "http://api0.example.net/v0/search/things?q=1", nil)
		b.Run(fmt.Sprintf("last-of-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t.class(r)
			}
		})
	}
}
