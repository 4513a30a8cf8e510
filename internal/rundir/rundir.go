// Package rundir knows the layout of a job's folder on disk.
//
// # Layout
//
// All jobs of a user lie under one root, `$XDG_STATE_HOME/optimus/jobs`, or
// `~/.local/state/optimus/jobs` where the variable is not set. One job, one
// folder, whose name is the job's:
//
//	NAME/spec.json                           what was asked for
//	NAME/telemetry.jsonl                     package telemetry
//	NAME/journal.jsonl                       decisions, before they are acted on
//	NAME/logs/job.log                        what its controller, and tasks in one process, report
//	NAME/logs/<role>-<id>-<incarnation>.log  one per child process
//	NAME/checkpoints/                        package elastic/checkpoint
//	NAME/lock                                held while a run is alive; holds its pid
//
// The control socket lies elsewhere, under a short hashed path in the folder for
// temporary files, because the kernel limits the path of a socket to some 100
// bytes ([Dir.Socket]).
//
// # Who runs
//
// A run holds a lock of the kernel (flock) on NAME/lock as long as it lives. The
// kernel drops it when the process dies, however it dies, so there are no stale
// locks to clean up and the pid in the file is only for messages.
package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"optimus/internal/failure"
	"optimus/internal/jobname"
)

// Dir is the folder of one job.
type Dir struct {
	Name string
	Path string // absolute

	made bool // by this call of Create or CreateUnique
}

// DefaultRoot is the folder that holds all jobs of this user.
func DefaultRoot() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) { // the XDG rule: ignore a relative one
		return filepath.Join(state, "optimus", "jobs"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", failure.E("find", "the folder for jobs", failure.InvalidArgument, err, "set XDG_STATE_HOME or HOME")
	}
	return filepath.Join(home, ".local", "state", "optimus", "jobs"), nil
}

// Create makes the folder of a job, or completes one that exists: a job may have
// many runs. An empty root means [DefaultRoot].
func Create(root, name string) (*Dir, error) {
	d, err := at(root, name)
	if err != nil {
		return nil, err
	}
	if err := d.mkdir(); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, cannotMake(d.Path, err)
	}
	return d.fill()
}

// CreateUnique makes the folder of a new job that is named prefix-N with the
// smallest free N from 1. Two processes that ask at once get different names,
// since making a folder succeeds for one of them only.
func CreateUnique(root, prefix string) (*Dir, error) {
	for n := 1; ; n++ {
		d, err := at(root, fmt.Sprintf("%s-%d", prefix, n))
		if err != nil {
			return nil, err
		}
		switch err := d.mkdir(); {
		case err == nil:
			return d.fill()
		case !errors.Is(err, fs.ErrExist):
			return nil, cannotMake(d.Path, err)
		}
	}
}

// mkdir makes the folder itself; the error for one that is there is fs.ErrExist.
func (d *Dir) mkdir() error {
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(d.Path, 0o755)
	d.made = err == nil
	return err
}

// Discard removes the folder if Create or CreateUnique made it: a job whose
// start failed leaves nothing. One that was there before stays as it is. Nobody
// else may be using the folder, so that its [Lock] is held or was never taken.
func (d *Dir) Discard() error {
	if !d.made {
		return nil
	}
	return os.RemoveAll(d.Path)
}

// Open returns the folder of a job that exists.
func Open(root, name string) (*Dir, error) {
	d, err := at(root, name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(d.Path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", d.Path)
	}
	if err != nil {
		return nil, failure.E("open", "job "+name, "", err, "list the jobs with `optimus status`")
	}
	return d, nil
}

// List returns all jobs, by name. A root that does not exist has none; folders
// whose name no job may have are passed over.
func List(root string) ([]*Dir, error) {
	root, err := resolve(root)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.E("list jobs in", root, "", err, "check the folder's permissions")
	}
	var dirs []*Dir
	for _, e := range entries {
		if e.IsDir() && jobname.Valid(e.Name()) {
			dirs = append(dirs, &Dir{Name: e.Name(), Path: filepath.Join(root, e.Name())})
		}
	}
	return dirs, nil
}

// Spec is the path of the job's specification.
func (d *Dir) Spec() string { return filepath.Join(d.Path, "spec.json") }

// Telemetry is the path of the job's telemetry.
func (d *Dir) Telemetry() string { return filepath.Join(d.Path, "telemetry.jsonl") }

// Journal is the path of the job's journal; see [OpenJournal].
func (d *Dir) Journal() string { return filepath.Join(d.Path, "journal.jsonl") }

// Checkpoints is the root of the job's checkpoints.
func (d *Dir) Checkpoints() string { return filepath.Join(d.Path, "checkpoints") }

// Logs is the folder of the tasks' logs.
func (d *Dir) Logs() string { return filepath.Join(d.Path, "logs") }

// JobLog is the path of the log that all runs of the job append to.
func (d *Dir) JobLog() string { return filepath.Join(d.Logs(), "job.log") }

// Log is the path of the log of one task that is a process of its own.
func (d *Dir) Log(role string, id int, incarnation int64) string {
	return filepath.Join(d.Logs(), fmt.Sprintf("%s-%d-%d.log", role, id, incarnation))
}

func at(root, name string) (*Dir, error) {
	if !jobname.Valid(name) {
		return nil, failure.E("check", "job name "+strconv.Quote(name), failure.InvalidArgument, errors.New("not allowed"), "use "+jobname.Allowed)
	}
	root, err := resolve(root)
	if err != nil {
		return nil, err
	}
	return &Dir{Name: name, Path: filepath.Join(root, name)}, nil
}

func resolve(root string) (string, error) {
	if root == "" {
		return DefaultRoot()
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return "", failure.E("find", root, "", err, "give an absolute path")
	}
	return abs, nil
}

// fill makes the folders inside a job's folder and tries that a file can be made,
// so that a job fails at its start and not at its first record. Where that fails
// the folder is discarded.
func (d *Dir) fill() (*Dir, error) {
	for _, dir := range []string{d.Logs(), d.Checkpoints()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, errors.Join(cannotMake(d.Path, err), d.Discard())
		}
	}
	f, err := os.OpenFile(d.lockPath(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, errors.Join(cannotMake(d.Path, err), d.Discard())
	}
	return d, f.Close()
}

// cannotMake says which path could not be written. The system's error repeats a
// path, often another one of the same tree, so only its cause is kept.
func cannotMake(path string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s %s: %w", p.Op, strings.TrimPrefix(p.Path, path+"/"), p.Err)
	}
	return failure.E("make the job's folder", path, "", err, "make it writable, with space on its disk, or set XDG_STATE_HOME to a folder that is")
}
