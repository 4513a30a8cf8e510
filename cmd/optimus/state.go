package main

import (
	"errors"
	"os"
	"path/filepath"

	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/internal/rundir"
	"optimus/train"
)

// savedInfo is a checkpoint that was found, and the job that it was found by.
type savedInfo struct {
	job string // empty: by a folder that is not a job's
	checkpoint.Info
}

// findSaved returns the checkpoints that args mean, the newest of a job first:
// those of all jobs, of the job of that name, or of a folder. A job comes before
// a folder of its name. The error for some of all jobs comes beside what the
// others have.
func findSaved(op string, args []string) ([]savedInfo, error) {
	if len(args) == 0 {
		return savedByAll()
	}
	name := args[0]
	d, err := rundir.Open("", name)
	switch failure.KindOf(err) {
	case "":
		return savedBy(d)
	case failure.NotFound, failure.InvalidArgument: // perhaps a folder
	default:
		return nil, err
	}
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return nil, unknown(op, "no job and no folder", name)
	}
	dir, err := filepath.Abs(name)
	if err != nil {
		return nil, failure.E(op, name, "", err, "")
	}
	return savedIn(dir)
}

func savedByAll() ([]savedInfo, error) {
	jobs, err := rundir.List("")
	if err != nil {
		return nil, err
	}
	var all []savedInfo
	var errs []error
	for _, d := range jobs {
		found, err := savedBy(d)
		all, errs = append(all, found...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// savedBy returns the checkpoints of a job.
func savedBy(d *rundir.Dir) ([]savedInfo, error) {
	root, err := train.CheckpointRoot(d)
	if err != nil {
		return nil, err
	}
	return listSaved(d.Name, root)
}

// savedIn returns the checkpoints of a folder, which may be a checkpoint itself
// (of any name, as it may be a copy), a job's folder, or hold checkpoints.
func savedIn(dir string) ([]savedInfo, error) {
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err == nil {
		return []savedInfo{{Info: savedAt(dir)}}, nil
	}
	d := &rundir.Dir{Name: filepath.Base(dir), Path: dir}
	if info, err := os.Stat(d.Checkpoints()); err == nil && info.IsDir() {
		return savedBy(d)
	}
	return listSaved("", dir)
}

// savedAt is checkpoint.List for one folder.
func savedAt(dir string) checkpoint.Info {
	info := checkpoint.Info{Dir: dir, Complete: true}
	r, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		info.Err = err
		return info
	}
	info.Manifest = r.Manifest()
	info.Sequence, info.Step = info.Manifest.Sequence, info.Manifest.Step
	info.Err = r.Close()
	return info
}

func listSaved(job, root string) ([]savedInfo, error) {
	infos, err := checkpoint.List(checkpoint.OS{}, root)
	found := make([]savedInfo, len(infos))
	for i, info := range infos {
		found[i] = savedInfo{job, info}
	}
	return found, err
}
