package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"optimus/internal/failure"
)

// Journal is an append-only file of JSON lines. A record that Append has
// returned for is on disk: decisions are journalled before they are acted on.
// A journal is used by one goroutine.
type Journal struct {
	file *os.File
	path string
	size int64 // of the whole lines
	err  error // set when the file's end is in an unknown state
}

// OpenJournal opens a journal for appending, making it if it is not there. A
// torn last line, which a killed run leaves, is cut off, so that the next record
// begins on a line of its own.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, failure.E("open journal", path, "", err, "check the folder's permissions")
	}
	j := &Journal{file: f, path: path}
	if err := j.recover(); err != nil {
		return nil, errors.Join(failure.E("open journal", path, "", err, "check the disk"), f.Close())
	}
	return j, nil
}

func (j *Journal) recover() error {
	data, err := io.ReadAll(j.file)
	if err != nil {
		return err
	}
	j.size = int64(bytes.LastIndexByte(data, '\n') + 1)
	if j.size < int64(len(data)) {
		if err := j.file.Truncate(j.size); err != nil {
			return err
		}
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	// A new file's name must survive a crash as well as its bytes.
	dir, err := os.Open(filepath.Dir(j.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Append writes v as one line and returns when it is on disk. After a full
// disk it can be used again once there is space; after a failed sync it cannot.
func (j *Journal) Append(v any) error {
	fail := func(err error) error {
		return failure.E("append to journal", j.path, "", err, "free space on its disk, then resume the job")
	}
	if j.err != nil {
		return fail(j.err)
	}
	line, err := json.Marshal(v)
	if err != nil {
		return failure.E("append to journal", j.path, failure.InvalidArgument, err, "")
	}
	line = append(line, '\n')
	if _, err := j.file.WriteAt(line, j.size); err != nil {
		return fail(j.undo(err))
	}
	if err := j.file.Sync(); err != nil {
		// What a failed sync left on disk is not known, and the kernel reports it
		// only once: nothing may follow.
		j.err = j.undo(err)
		return fail(j.err)
	}
	j.size += int64(len(line))
	return nil
}

// undo takes a half written line back. If even that fails nothing may follow it.
func (j *Journal) undo(cause error) error {
	if err := j.file.Truncate(j.size); err != nil {
		j.err = fmt.Errorf("%w, and its half line could not be removed: %w", cause, err)
		return j.err
	}
	return cause
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// ReadJournal returns the journal's records. A last line without its end is
// dropped, since Append never returned for it; any other line that is not JSON
// is an error with its number. A journal that does not exist is empty.
func ReadJournal(path string) ([]json.RawMessage, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.E("read journal", path, "", err, "check its permissions")
	}
	var records []json.RawMessage
	for number := 1; ; number++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			return records, nil
		}
		if !json.Valid(line) {
			return records, failure.E("read journal", fmt.Sprintf("%s line %d", path, number), failure.Corrupt,
				errors.New("it is not JSON"), "the disk damaged the file; resume from a checkpoint in a new job")
		}
		records = append(records, line)
		data = rest
	}
}
