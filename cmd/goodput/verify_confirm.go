package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/cmd/goodput/internal/verify"
)

// confirm returns nil if somebody said that this load may leave this machine: by --confirm, or
// by typing the name of the host on a terminal. A wrong URL would otherwise be an attack on
// whoever it names.
func (c *verifyCmd) confirm(ctx context.Context) error {
	host := c.url.Hostname()
	what := fmt.Sprintf("%s is not this machine, and would get up to %.0f requests per second, and up to %d in all", host, c.MaxRate, c.MaxRequests)
	switch {
	case c.Confirm != "": // it is the host of the URL: see Validate
		return nil
	case !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())):
		return usage(fmt.Errorf("%s: if you may do that, say --confirm %s", what, host))
	}
	return confirmed(ctx, host, what, os.Stdin, os.Stderr)
}

// confirmed asks.
func confirmed(ctx context.Context, host, what string, in io.Reader, out io.Writer) error {
	fmt.Fprintf(out, "%s. If you may do that, type the name of the host: ", what)
	typed := make(chan string, 1)
	go func() { // ends with the program if nobody types: a read of a terminal has no end
		line, _ := bufio.NewReader(in).ReadString('\n')
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return ctx.Err()
	case line := <-typed:
		if !strings.EqualFold(line, host) {
			return usage(errors.New("that is not its name: nothing was sent"))
		}
	}
	return nil
}

// again is the command that makes the same run. What the query or a header has that looks like a
// secret is not in it.
func (c *verifyCmd) again() string {
	words := []string{"goodput verify", quoted(verify.Shown(c.url))}
	add := func(flag, value string, said bool) {
		if said {
			words = append(words, flag, quoted(value))
		}
	}
	s := c.settings()
	add("--steps", list(c.Steps), !slices.Equal(c.Steps, []float64{0.5, 1, 1.5, 3, 10}))
	add("--duration", strictyaml.Short(s.Length), s.Length.Seconds() != 10)
	add("--deadline", strictyaml.Short(s.Deadline), true)
	add("--objective", strictyaml.Short(s.Objective), s.Objective != s.Deadline)
	add("--capacity", fmt.Sprintf("%v/s", float64(c.Capacity)), c.Capacity != 0)
	add("--arrivals", c.Arrivals, c.Trace == "" && c.Arrivals != "poisson")
	add("--trace", c.Trace, c.Trace != "")
	add("--log-format", c.LogFormat, c.LogFormat != "auto")
	add("--columns", c.Columns, c.Columns != "")
	add("--pattern", c.Pattern, c.Pattern != "")
	add("--attempts", fmt.Sprint(c.Attempts), c.Attempts != 1)
	if c.Obey {
		words = append(words, "--obey")
	}
	add("--method", c.Method, c.Method != "")
	for _, line := range c.Header {
		key, value, _ := strings.Cut(line, ":")
		if verify.Secret(key) {
			value = " ..."
		}
		add("--header", key+":"+value, true)
	}
	add("--body", c.Body, c.Body != "")
	add("--http", c.HTTP, c.HTTP != "auto")
	add("--expect", list(c.Expect), len(c.Expect) > 0)
	if c.AnyBody {
		words = append(words, "--any-body")
	}
	add("--max-rate", fmt.Sprint(c.MaxRate), c.MaxRate != 20_000)
	add("--max-requests", fmt.Sprint(c.MaxRequests), c.MaxRequests != 2_000_000)
	add("--confirm", c.Confirm, c.Confirm != "")
	add("--seed", fmt.Sprint(c.Seed), true)
	return strings.Join(words, " ")
}

// list writes values as a flag takes them.
func list[T any](all []T) string {
	var words []string
	for _, v := range all {
		words = append(words, fmt.Sprint(v))
	}
	return strings.Join(words, ",")
}
