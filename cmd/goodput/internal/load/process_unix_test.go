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
	"testing"
)

const serveVariable = "GOODPUT_LOAD_TEST_SERVE"

// TestMain is the server of serverProcess when it is told so.
func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	s := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(atOnce)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() {
		// Ends with the test, also if that is killed.
		bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}()
	panic(s.Serve(l))
}

// atOnce answers, but for those who ask for nothing.
func atOnce(_ http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/nothing" {
		<-r.Context().Done()
	}
}

// serverProcess starts a server that answers everything at once, but for "/nothing", in a
// process of its own that ends with the test.
func serverProcess(t testing.TB) (*os.Process, *url.URL) {
	t.Helper()
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
	t.Cleanup(func() { stdin.Close(); server.Process.Kill(); server.Wait() })
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return server.Process, &url.URL{Scheme: "http", Host: strings.TrimSpace(addr), Path: "/"}
}
