package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// temporary ends the name of a file that is being written.
const temporary = ".tmp"

// writeFile makes a file appear under name with all its bytes or not at all:
// temporary name, fsync, rename, fsync of the folder. need is its size, for the
// message when the disk is full.
func writeFile(fs FS, name string, need int64, write func(io.Writer) error) error {
	const op = "save"
	temp := name + temporary
	err := writeTemp(fs, temp, write)
	if err == nil {
		err = fs.Rename(temp, name)
	}
	if err == nil {
		err = fs.SyncDir(filepath.Dir(name))
	}
	if err == nil {
		return nil
	}
	err = ioFault(op, name, err)
	if e, ok := errors.AsType[*Error](err); ok && e.Fault == Full {
		if free, ferr := fs.Free(filepath.Dir(name)); ferr == nil {
			e.Err = fmt.Errorf("%w: it needs %d bytes, %d were free after the attempt", e.Err, need, free)
		}
	}
	// Gives the space back; if this fails too, a later Prune removes the file.
	_ = fs.Remove(temp)
	return err
}

func writeTemp(fs FS, temp string, write func(io.Writer) error) (err error) {
	f, err := fs.Create(temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := bufio.NewWriterSize(f, 1<<20)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// makeDir makes the folder of a save, and its parents, durably. The parent of the
// folder is synced even if the folder was there: the server that made it may not
// have come so far.
func makeDir(fs FS, dir string) error {
	unsynced := []string{filepath.Dir(dir)}
	for d := filepath.Dir(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := fs.ReadDir(d); err == nil {
			break
		}
		unsynced = append(unsynced, filepath.Dir(d))
	}
	err := fs.MkdirAll(dir)
	for _, d := range unsynced {
		if err == nil {
			err = fs.SyncDir(d)
		}
	}
	if err != nil {
		return ioFault("save", dir, err)
	}
	return nil
}
