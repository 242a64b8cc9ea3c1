// Package conformance runs the checks of github.com/goodput/goodput/conformance on goodput
// and on the limiters that a Go service would use instead, and writes the table of
// docs/conformance.md:
//
//	go test ./conformance           is the table what the run gives?
//	go test ./conformance -rewrite  write it
//
// Each is set up as its documentation shows, with the limit that the check asks for and with
// a queue, where it has one. A form that it has not is not checked: the cell is empty. Each
// failure has a finding here, which says what was seen and where in the source it comes from;
// a failure without one fails the test, and so does a finding that is not seen any more.
package conformance
