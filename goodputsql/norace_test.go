//go:build !race

package goodputsql_test

const underRace = false
