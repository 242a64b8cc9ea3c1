//go:build race

package goodputhttp

// The race detector makes copying a body twenty times slower.
const underRace = true
