package config

import "testing"

// A class with GET takes HEAD as well, so one with HEAD behind it gets nothing.
func TestGETCoversHEAD(t *testing.T) {
	get, head, both := Match{Methods: []string{"GET"}}, Match{Methods: []string{"HEAD"}}, Match{Methods: []string{"GET", "HEAD"}}
	if !get.Covers(&head) || !get.Covers(&both) || head.Covers(&get) || head.Covers(&both) {
		t.Error("GET covers HEAD, and HEAD does not cover GET")
	}
}
