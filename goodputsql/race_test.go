//go:build race

package goodputsql_test

// The race detector makes a call ten times slower.
const underRace = true
