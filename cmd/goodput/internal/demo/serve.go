package demo

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/limit"
)

// A ServeConfig is where the service of the demo is to be found by loads of others.
type ServeConfig struct {
	Seed    uint64    // of service times
	Limit   limit.Law // of the limiter before it
	Protect func(upstream *url.URL, lim *goodput.Limiter) (*http.Server, error)

	Protected net.Listener // through the limiter
	Direct    net.Listener // the service itself: the same one, with the same slots
}

// Serve serves until ctx is done or a listener fails.
func Serve(ctx context.Context, c ServeConfig) error {
	lim := goodput.New(goodput.Config{Name: "demo", Limit: c.Limit, Objective: objective})
	direct := backendServer(NewBackend(slots, mean, c.Seed))
	protected, err := c.Protect(&url.URL{Scheme: "h2c", Host: c.Direct.Addr().String()}, lim)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	for server, on := range map[*http.Server]net.Listener{direct: c.Direct, protected: c.Protected} {
		go func() { failed <- server.Serve(on) }()
		defer server.Close()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}
}
