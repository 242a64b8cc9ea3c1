//go:build unix

package load

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const serveVariable = "GOODPUT_LOAD_TEST_SERVE"

// TestMain is the server of TestC151FrozenServer when it is told so.
func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	s := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() {
		// Ends with the test, also if that is killed.
		bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}()
	panic(s.Serve(l))
}

// A real process is stopped for 1 s of 2 s. The bounds are one-sided: a busy
// machine makes the freeze longer and the latencies greater, never smaller.
func TestC151FrozenServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 2 s")
	}
	const freeze = time.Second
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serveVariable+"=1")
	stdin, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stdin.Close(); server.Process.Kill(); server.Wait() }()
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, HTTP{URL: &url.URL{Scheme: "http", Host: strings.TrimSpace(addr), Path: "/"}, HTTP2: true})

	go func() {
		time.Sleep(freeze / 2) // wall clock: the server is another process
		server.Process.Signal(syscall.SIGSTOP)
		time.Sleep(freeze) // wall clock: the freeze itself
		server.Process.Signal(syscall.SIGCONT)
	}()
	r := offer(t, constant(500, 2*time.Second), c.Send)
	if r.Completed != 1000 {
		t.Errorf("completed %d of 1000, first error %v", r.Completed, r.FirstError)
	}
	// The longest 1 % were due in the first 20 ms of the freeze.
	if p99, _ := r.Latency.Quantile(0.99); p99 < freeze-20*time.Millisecond {
		t.Errorf("p99 %v, want nearly %v", p99, freeze)
	}
	// 500 were due in it, so at least 480 waited for more than 40 ms.
	if p, _ := r.Latency.Quantile(0.52); p < 40*time.Millisecond {
		t.Errorf("only %v at 0.52: about half of the requests were due in the freeze", p)
	}
}
