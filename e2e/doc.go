// Package e2e runs goodput in front of real servers under real load. Its tests
// are in the files named _test; see README.md.
package e2e
