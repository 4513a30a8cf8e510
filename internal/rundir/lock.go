package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"optimus/internal/failure"
)

// Lock is held by the one run of a job that is alive.
type Lock struct {
	file *os.File
}

func (d *Dir) lockPath() string { return filepath.Join(d.Path, "lock") }

// Lock marks the job as running in this process. While another run holds it, the
// error names that run's pid. Child processes do not inherit the lock: Go opens
// files close-on-exec.
func (d *Dir) Lock() (*Lock, error) {
	f, err := os.OpenFile(d.lockPath(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, cannotMake(d.Path, err)
	}
	if err := d.acquire(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(cannotMake(d.Path, err), f.Close())
	}
	return &Lock{file: f}, nil
}

// acquire takes the exclusive lock. It tries for a moment, because Running of
// another process holds the lock for some microseconds too.
func (d *Dir) acquire(f *os.File) error {
	const tries, pause = 10, 10 * time.Millisecond
	for try := 1; ; try++ {
		err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return failure.E("lock", d.lockPath(), "", err, "put jobs on a file system that has flock (set XDG_STATE_HOME)")
		case try == tries:
			return failure.E("start", "job "+d.Name, failure.Conflict, fmt.Errorf("it is running already, as process %d", readPID(f)),
				fmt.Sprintf("stop it with `optimus stop %s` or choose another --job", d.Name))
		}
		time.Sleep(pause)
	}
}

// LockFolder keeps other runs out of a folder of checkpoints until what it returns
// is closed: two jobs in one folder would overwrite each other's shards.
func LockFolder(path string) (io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, failure.E("lock", path, "", err, "choose a folder that can be read")
	}
	switch err := flock(f, unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return f, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, errors.Join(failure.E("lock", path, failure.Conflict, errors.New("a job that is running has its checkpoints there"),
			"choose another --checkpoint-dir"), f.Close())
	default:
		return nil, errors.Join(failure.E("lock", path, "", err, "choose a folder on a file system that has flock"), f.Close())
	}
}

// Unlock marks the job as no longer running.
func (l *Lock) Unlock() error {
	// Emptied first: after the lock is gone the file may be the next run's.
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

// Running reports whether a run of the job is alive, and its pid (0 in the
// instant before it has written it).
func (d *Dir) Running() (pid int, running bool) {
	f, err := os.Open(d.lockPath())
	if err != nil {
		return 0, false
	}
	defer f.Close() // drops the probe's lock as well
	if err := flock(f, unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return 0, false
	}
	return readPID(f), true
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(f *os.File) int {
	var b [32]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}
