package rpc_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"optimus/internal/failure"
	"optimus/internal/rpc"
)

// deadSocket leaves a socket file as a killed process does.
func deadSocket(t *testing.T) string {
	t.Helper()
	socket := socketPath(t)
	check(t, os.MkdirAll(filepath.Dir(socket), 0o700))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	check(t, err)
	l.SetUnlinkOnClose(false)
	check(t, l.Close())
	return socket
}

func TestNotRunning(t *testing.T) {
	for name, socket := range map[string]string{"no socket": socketPath(t), "dead socket": deadSocket(t)} {
		_, err := rpc.Dial(t.Context(), socket)
		if !errors.Is(err, rpc.ErrNotRunning) || failure.KindOf(err) != failure.Unavailable || !strings.Contains(err.Error(), socket) {
			t.Errorf("%s: %v of kind %s", name, err, failure.KindOf(err))
		}
	}
}

// A dead socket is replaced, a live one is not; the end of a server removes it.
func TestServeAgain(t *testing.T) {
	socket := deadSocket(t)
	s, err := rpc.Serve(socket, &control{})
	check(t, err)
	if _, err := rpc.Serve(socket, &control{}); !errors.Is(err, rpc.ErrRunning) || failure.KindOf(err) != failure.AlreadyExists {
		t.Errorf("a second server: %v of kind %s", err, failure.KindOf(err))
	}
	stop(t, s)
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket after Close: %v", err)
	}
}

func TestModes(t *testing.T) {
	socket := socketPath(t)
	s, err := rpc.Serve(socket, &control{})
	check(t, err)
	defer stop(t, s)
	for path, want := range map[string]os.FileMode{socket: 0o600, filepath.Dir(socket): 0o700} {
		info, err := os.Stat(path)
		check(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", path, got, want)
		}
	}
}

// What cannot be served says why and what to do, and changes nothing.
func TestServeRefuses(t *testing.T) {
	file := socketPath(t)
	check(t, os.MkdirAll(filepath.Dir(file), 0o700))
	check(t, os.WriteFile(file, []byte("precious"), 0o600))
	open := socketPath(t)
	check(t, os.MkdirAll(filepath.Dir(open), 0o700))
	check(t, os.Chmod(filepath.Dir(open), 0o755))
	for name, test := range map[string]struct {
		socket, says string
		kind         failure.Kind
	}{
		"a file":         {file, "no socket", failure.AlreadyExists},
		"an open folder": {open, "chmod 700", failure.Permission},
		"a long path":    {filepath.Join(filepath.Dir(file), strings.Repeat("x", 100)), "shorter", failure.InvalidArgument},
	} {
		_, err := rpc.Serve(test.socket, &control{})
		if failure.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), test.socket) {
			t.Errorf("%s: %v of kind %s", name, err, failure.KindOf(err))
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "precious" {
		t.Errorf("the file that was no socket: %q, %v", b, err)
	}
}
