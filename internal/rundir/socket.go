package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"optimus/internal/failure"
)

// maxSocket is the longest path of a Unix socket: sun_path has 108 bytes on
// Linux and 104 elsewhere, with the closing zero.
const maxSocket = 103

// Socket is the path of the job's control socket, in a folder that only this
// user can enter; the folder is made. It depends on the job's folder alone, so
// every process finds it.
func (d *Dir) Socket() (string, error) {
	base := filepath.Join(os.TempDir(), fmt.Sprintf("optimus-%d", os.Getuid()))
	sum := sha256.Sum256([]byte(d.Path))
	name := hex.EncodeToString(sum[:8]) + ".sock"
	if len(filepath.Join(base, name)) > maxSocket {
		return "", failure.E("place", "the control socket under "+base, failure.InvalidArgument,
			fmt.Errorf("its path would exceed %d bytes", maxSocket), "set TMPDIR to a shorter folder, such as /tmp")
	}
	if err := privateDir(base); err != nil {
		return "", failure.E("make", base, "", err, "remove it, or set TMPDIR to a folder of your own")
	}
	return filepath.Join(base, name), nil
}

// privateDir makes a folder for this user alone. Temporary folders are open to
// all, so one that somebody else made first, or opened up, is refused.
func privateDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	switch stat, ok := info.Sys().(*syscall.Stat_t); {
	case !info.IsDir():
		return fmt.Errorf("it is not a folder: %w", fs.ErrPermission)
	case ok && int(stat.Uid) != os.Getuid():
		return fmt.Errorf("it belongs to user %d: %w", stat.Uid, fs.ErrPermission)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others may enter it (mode %#o): %w", info.Mode().Perm(), fs.ErrPermission)
	}
	return nil
}
