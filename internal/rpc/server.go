package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"optimus/internal/failure"
)

// maxSocketPath is the longest path of a Unix socket on the systems we run on:
// 108 bytes with the final zero on Linux, 104 on macOS and the BSDs.
const maxSocketPath = 103

// Server serves the control service on a Unix socket.
type Server struct {
	grpc   *grpc.Server
	served chan struct{} // closed when serving ended
	err    error         // why, set before served is closed
}

// Serve starts serving impl on the socket and returns. The socket's folder is
// created if need be, accessible to its owner only as the socket is; one that is
// open to others is refused. A socket that a dead process left behind is replaced;
// a live one is an error that wraps ErrRunning.
func Serve(socket string, impl ControlServer) (*Server, error) {
	l, err := listen(socket)
	if err != nil {
		return nil, failure.E("serve", socket, "", err, "")
	}
	s := &Server{
		served: make(chan struct{}),
		grpc: grpc.NewServer(
			grpc.MaxRecvMsgSize(maxMessage),
			grpc.MaxSendMsgSize(maxMessage),
			grpc.WaitForHandlers(true),
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2}),
			grpc.UnaryInterceptor(serveUnary),
			grpc.StreamInterceptor(serveStream),
		),
	}
	RegisterControlServer(s.grpc, impl)
	go func() {
		defer close(s.served)
		if err := s.grpc.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
			s.err = err
		}
	}()
	return s, nil
}

// Done is closed when serving has ended, by Close or by an error that Close then
// returns.
func (s *Server) Done() <-chan struct{} { return s.served }

// Close stops taking calls, gives those under way until ctx ends, cancels the
// contexts of the rest, waits for all handlers and removes the socket. Streams
// end by themselves only where the implementation ends them.
func (s *Server) Close(ctx context.Context) error {
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		s.grpc.GracefulStop()
	}()
	select {
	case <-graceful:
	case <-ctx.Done():
		s.grpc.Stop()
		<-graceful
	}
	<-s.served
	return s.err
}

// listen opens the socket, private to its owner.
func listen(socket string) (net.Listener, error) {
	if len(socket) > maxSocketPath {
		return nil, failure.E("", "", failure.InvalidArgument,
			fmt.Errorf("the path has %d bytes, the system allows %d for a socket", len(socket), maxSocketPath), "choose a shorter folder")
	}
	if err := privateFolder(filepath.Dir(socket)); err != nil {
		return nil, err
	}
	if err := removeDead(socket); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// privateFolder makes sure that only its owner can enter a folder: until the
// socket's own mode is set, nothing else keeps others from it.
func privateFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return failure.E("", "", failure.Permission,
			fmt.Errorf("the folder %s is open to others (mode %04o)", folder, mode), "chmod 700 it or choose another")
	}
	return nil
}

// removeDead removes a socket that nobody serves.
func removeDead(socket string) error {
	info, err := os.Lstat(socket)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return failure.E("", "", failure.AlreadyExists, errors.New("there is a file that is no socket"), "remove it or choose another folder")
	}
	err = probe(context.Background(), socket)
	if err == nil {
		return failure.E("", "", failure.AlreadyExists, ErrRunning, "")
	}
	if !errors.Is(err, ErrNotRunning) {
		return err
	}
	return os.Remove(socket)
}

// probe tells whether somebody serves the socket: nil, ErrNotRunning or what the
// system said.
func probe(ctx context.Context, socket string) error {
	d := net.Dialer{Timeout: time.Second * 10}
	c, err := d.DialContext(ctx, "unix", socket)
	if err == nil {
		return c.Close()
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return err
}

func serveUnary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	reply, err := handle(ctx, request)
	return reply, toStatus(err)
}

func serveStream(impl any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return toStatus(handle(impl, &serverStream{s, info.FullMethod}))
}
