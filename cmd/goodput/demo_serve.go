package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/goodput/goodput/cmd/goodput/internal/demo"
)

// serve serves the service of the demo until ctx is done, which is no failure: there is something
// to point a load test at before one has a service in front of goodput.
func (c *demoCmd) serve(ctx context.Context, stderr io.Writer) error {
	protected, err := net.Listen("tcp", string(c.Listen))
	if err != nil {
		return cannotListen("--listen", string(c.Listen), err)
	}
	defer protected.Close()
	direct, err := listenAfter(protected.Addr(), strings.HasSuffix(string(c.Listen), ":0"))
	if err != nil {
		return err
	}
	defer direct.Close()
	fmt.Fprintf(stderr, "through goodput %s\ndirectly %s\nCtrl-C ends it.\n", pageURL(protected.Addr()), pageURL(direct.Addr()))
	return demo.Serve(ctx, demo.ServeConfig{Seed: c.Seed, Limit: c.Limit.Law, Protect: protect, Protected: protected, Direct: direct})
}

// listenAfter listens on the port after that of an address; after a free one, on another.
func listenAfter(first net.Addr, free bool) (net.Listener, error) {
	host, port, _ := net.SplitHostPort(first.String()) // of a listener
	n, _ := strconv.Atoi(port)
	next := net.JoinHostPort(host, strconv.Itoa(n+1))
	if free {
		next = net.JoinHostPort(host, "0")
	}
	on, err := net.Listen("tcp", next)
	if err != nil {
		return nil, cannotListen("--listen", next+" for the service itself", err)
	}
	return on, nil
}
