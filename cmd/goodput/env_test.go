package main

import "testing"

// What a server takes from its environment does not reach the commands that compute.
func TestEnvironmentIsForServers(t *testing.T) {
	log := accessLog(t, "a.log", 300)
	args := []string{"replay", "--limit", "20", log}
	_, want, _ := command(args...)
	t.Setenv("GOODPUT_LOG_FORMAT", "json")
	t.Setenv("GOODPUT_LIMIT", "1")
	t.Setenv("GOODPUT_OBJECTIVE", "2s")
	code, got, stderr := command(args...)
	if code != exitOK || got != want {
		t.Errorf("exit %d, %s; the report differs with the environment of a server:\n%s", code, stderr, got)
	}
}
