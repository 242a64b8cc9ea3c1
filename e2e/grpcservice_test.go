//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
)

// plain is a codec of gRPC whose messages are strings, so that no compiler of
// descriptions is needed.
type plain struct{}

func (plain) Name() string                       { return "plain" }
func (plain) Marshal(v any) ([]byte, error)      { return []byte(*v.(*string)), nil }
func (plain) Unmarshal(data []byte, v any) error { *v.(*string) = string(data); return nil }

// A speaker is a gRPC service.
//
//	/e2e.Speaker/Hold   answers when the test says so, with what was left of the deadline
//	/e2e.Speaker/Count  sends the numbers below the one that it was sent
//	/e2e.Speaker/Chat   sends back what it gets, until the client has no more
type speaker struct {
	addr     string
	release  chan struct{} // one for each Hold
	entered  chan string   // what each Hold was told
	served   atomic.Int64
	attempts atomic.Int64 // calls that said that they had been tried before
}

// speak starts the service.
func speak(t *testing.T) *speaker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &speaker{addr: l.Addr().String(), release: make(chan struct{}, 1000), entered: make(chan string, 1000)}
	srv := grpc.NewServer(grpc.ForceServerCodec(plain{}))
	srv.RegisterService(&grpc.ServiceDesc{
		ServiceName: "e2e.Speaker",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Hold",
			Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				var name string
				if err := decode(&name); err != nil {
					return nil, err
				}
				return s.hold(ctx, name)
			},
		}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Count", ServerStreams: true, Handler: func(_ any, st grpc.ServerStream) error { return s.count(st) }},
			{StreamName: "Chat", ServerStreams: true, ClientStreams: true, Handler: func(_ any, st grpc.ServerStream) error { return s.chat(st) }},
		},
	}, s)
	go srv.Serve(l) //nolint:errcheck // ends with Stop
	t.Cleanup(srv.Stop)
	return s
}

func (s *speaker) hold(ctx context.Context, name string) (*string, error) {
	left := "none"
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline).String()
	}
	md, _ := metadata.FromIncomingContext(ctx)
	if len(md["grpc-previous-rpc-attempts"]) > 0 {
		s.attempts.Add(1)
	}
	s.entered <- name
	select {
	case <-s.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.served.Add(1)
	return &left, nil
}

func (s *speaker) count(st grpc.ServerStream) error {
	var text string
	if err := st.RecvMsg(&text); err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	for i := range n {
		number := strconv.Itoa(i)
		if err := st.SendMsg(&number); err != nil {
			return err
		}
	}
	st.SetTrailer(metadata.Pairs("counted", text))
	return nil
}

func (s *speaker) chat(st grpc.ServerStream) error {
	for {
		var text string
		switch err := st.RecvMsg(&text); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		text = strings.ToUpper(text)
		if err := st.SendMsg(&text); err != nil {
			return err
		}
	}
}

// dialGRPC returns a client of addr. config is its service config in JSON; it may be empty.
func dialGRPC(t *testing.T, addr, config string, watch stats.Handler) *grpc.ClientConn {
	t.Helper()
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})),
	}
	if config != "" {
		options = append(options, grpc.WithDefaultServiceConfig(config))
	}
	if watch != nil {
		options = append(options, grpc.WithStatsHandler(watch))
	}
	c, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // the test is over
	return c
}

// An attempt is one try of a call, as the client of gRPC made it.
type attempt struct {
	began, ended time.Time
	pushback     string
}

// attempts are those of all calls of a client, in their order: one call at a time.
type attempts struct {
	mu  sync.Mutex
	all []attempt
}

func (a *attempts) list() []attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]attempt(nil), a.all...)
}

func (a *attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (a *attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (a *attempts) HandleConn(context.Context, stats.ConnStats)                       {}

func (a *attempts) HandleRPC(_ context.Context, s stats.RPCStats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch s := s.(type) {
	case *stats.OutHeader:
		a.all = append(a.all, attempt{began: time.Now()})
	case *stats.InTrailer:
		last := &a.all[len(a.all)-1]
		last.ended, last.pushback = time.Now(), fmt.Sprint(s.Trailer["grpc-retry-pushback-ms"])
	}
}
