package proxy

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/config"
	"github.com/goodput/goodput/limit"
)

// The deadline of a request is met by its 101: a WebSocket in a class of requests lasts for
// longer. In a class of streams a deadline is one for the stream.
func TestDeadlineEndsWithTheUpgrade(t *testing.T) {
	const deadline = 50 * time.Millisecond
	for _, mode := range []config.Mode{config.Request, config.Stream} {
		t.Run(mode.String(), func(t *testing.T) {
			echo := switching(t, func(c *net.TCPConn, in *bufio.Reader) { _, _ = io.Copy(c, in) })
			w := start(t, echo, func(c *Config, l *goodput.Config) {
				c.Mode, c.DeadlineCap = mode, deadline
				l.Objective = deadline
				if mode == config.Stream {
					l.Limit, l.Depth = limit.Fixed(1), goodput.NoQueue
				}
			})
			c, in := w.upgrade("echo", "")
			<-time.After(3 * deadline) // wall clock: what has not ended by then was not ended by it
			_, _ = io.WriteString(c, "still here\n")
			line, err := in.ReadString('\n')
			if lasts := err == nil && line == "still here\n"; lasts != (mode == config.Request) {
				t.Errorf("%q, %v", line, err)
			}
			c.Close()
			w.noTunnels()
		})
	}
}
