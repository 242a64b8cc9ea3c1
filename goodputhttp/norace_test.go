//go:build !race

package goodputhttp

const underRace = false
