// Package listen opens the listeners of the proxy and counts what connects.
package listen

import (
	"net"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// Open opens the listener that cfg describes. The error says what cannot be had, without
// the name of whoever asked.
func Open(cfg config.Listener) (net.Listener, error) {
	return net.Listen(cfg.Network, cfg.Address)
}
