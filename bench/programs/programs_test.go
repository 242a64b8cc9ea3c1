package programs

import (
	"net"
	"os"
	"testing"
)

func TestFreeAddressesDiffer(t *testing.T) {
	addrs, err := Free(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, addr := range addrs {
		host, _, err := net.SplitHostPort(addr)
		if err != nil || host != "127.0.0.1" || seen[addr] {
			t.Errorf("%q of %q: %v", addr, addrs, err)
		}
		seen[addr] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d addresses", len(seen))
	}
}

func TestResidentMemory(t *testing.T) {
	if n, err := Resident(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("this program holds %d bytes, %v: less than any program of Go", n, err)
	}
	if _, err := Resident(-1); err == nil {
		t.Error("there is no process -1")
	}
}
