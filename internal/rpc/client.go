package rpc

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"optimus/internal/failure"
)

// Client calls the control service of one run. A call whose context has no
// deadline gets one that suits it; streams last until either side ends them.
// Errors are failures of package failure; io.EOF ends a stream. Should the run's
// process end, calls fail with ErrNotRunning; should it come back on the same
// socket, later calls reach it again.
type Client struct {
	ControlClient
	conn *grpc.ClientConn
}

// Dial returns a client of the run that serves the socket. Where nobody does, the
// error wraps ErrNotRunning.
func Dial(ctx context.Context, socket string) (*Client, error) {
	if err := probe(ctx, socket); err != nil {
		kind := failure.Kind("")
		if errors.Is(err, ErrNotRunning) {
			kind = failure.Unavailable
		}
		return nil, failure.E("connect to", socket, kind, err, "")
	}
	// The socket's path is no target that gRPC could parse (it may hold any
	// byte), so the dialer knows it and the target only names the authority.
	conn, err := grpc.NewClient("passthrough:///control",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the file system guards the socket
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if _, ok := ctx.Deadline(); !ok {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, deadline(request))
				defer cancel()
			}
			return fromStatus(call(ctx, method, request, reply, cc, opts...), method, socket)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, fromStatus(err, method, socket)
			}
			return &clientStream{s, method, socket}, nil
		}),
	)
	if err != nil {
		return nil, failure.E("connect to", socket, failure.Internal, err, "")
	}
	return &Client{NewControlClient(conn), conn}, nil
}

// Close ends the client's streams and connection.
func (c *Client) Close() error { return c.conn.Close() }
