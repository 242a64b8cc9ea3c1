package main

import (
	"os"
	"testing"
)

// What a server takes from its environment does not reach the commands that compute.
func TestEnvironmentIsForServers(t *testing.T) {
	log := accessLog(t, "a.log", 300)
	for _, args := range [][]string{
		{"replay", "--limit", "20", log},
		{"plan", "--limit", "20", "--service", "50ms"},
		{"simulate", "--builtin", "burst", "--repeat", "1"},
	} {
		_, want, _ := command(args...)
		t.Setenv("GOODPUT_LOG_FORMAT", "json")
		t.Setenv("GOODPUT_LIMIT", "1")
		t.Setenv("GOODPUT_OBJECTIVE", "2s")
		t.Setenv("GOODPUT_DEADLINE", "1s")
		code, got, stderr := command(args...)
		if code != exitOK || got != want {
			t.Errorf("%v: exit %d, %s; the result differs with the environment of a server:\n%s", args, code, stderr, got)
		}
		for _, name := range []string{"LOG_FORMAT", "LIMIT", "OBJECTIVE", "DEADLINE"} {
			os.Unsetenv("GOODPUT_" + name)
		}
	}
}
