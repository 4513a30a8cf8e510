package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// Info is what [List] says of one folder.
type Info struct {
	Dir            string
	Sequence, Step int64
	// Complete is false where the save did not finish; there is no manifest then.
	Complete bool
	// Manifest is nil where there is none or it is damaged; Err says why.
	Manifest *Manifest
	Err      error
}

// List returns the checkpoints under a root, newest first by the sequence of the
// save, with incomplete and damaged ones. Folders whose name is not that of a
// checkpoint are passed over. A root that does not exist has none.
func List(fsys FS, root string) ([]Info, error) {
	entries, err := fsys.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ioFault("list checkpoints in", root, err)
	}
	var infos []Info
	for _, e := range entries {
		sequence, step, ok := parseDir(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		info := Info{Dir: filepath.Join(root, e.Name()), Sequence: sequence, Step: step}
		info.Manifest, info.Err = readManifest(fsys, info.Dir)
		info.Complete = FaultOf(info.Err) != Incomplete
		if m := info.Manifest; m != nil {
			info.Sequence, info.Step = m.Sequence, m.Step
		}
		infos = append(infos, info)
	}
	slices.SortStableFunc(infos, func(a, b Info) int { return cmp.Compare(b.Sequence, a.Sequence) })
	return infos, nil
}

// NextSequence is the sequence for the next save: one more than that of any
// folder under the root, finished or not.
func NextSequence(fs FS, root string) (int64, error) {
	infos, err := List(fs, root)
	if err != nil {
		return 0, err
	}
	next := int64(1)
	for _, i := range infos {
		next = max(next, i.Sequence+1)
	}
	return next, nil
}

// Newest returns the newest checkpoint that is complete and passes the cheap
// checks of [Load]. Where there is none the fault is [None] and the error says
// what is wrong with the newest one that is damaged.
func Newest(fs FS, root string) (Info, error) {
	info, _, err := newest(fs, root, 0, probe)
	return info, err
}

// NewestVerified returns the newest checkpoint of which every byte is as it was
// written, as [Verify] finds, among those with a sequence of at least from. The
// damaged ones that are newer come back with what is wrong with them in Err; the
// error is as that of [Newest].
func NewestVerified(fs FS, root string, from int64) (info Info, damaged []Info, err error) {
	return newest(fs, root, from, func(fs FS, info Info) error { return Verify(fs, info.Dir) })
}

// newest returns the newest complete checkpoint that passes check, and those
// that it passed over.
func newest(fs FS, root string, from int64, check func(FS, Info) error) (found Info, damaged []Info, err error) {
	infos, err := List(fs, root)
	if err != nil {
		return Info{}, nil, err
	}
	for _, info := range infos {
		if !info.Complete || info.Sequence < from {
			continue
		}
		if info.Err == nil {
			info.Err = check(fs, info)
		}
		if info.Err == nil {
			return info, damaged, nil
		}
		damaged = append(damaged, info)
	}
	none := &Error{Fault: None, Op: "find a checkpoint in", Path: root, Err: errors.New("there is none")}
	if len(damaged) > 0 {
		none.Err = fmt.Errorf("none is whole: %w", damaged[0].Err)
	}
	return Info{}, damaged, none
}

// probe makes the cheap checks.
func probe(fs FS, info Info) error {
	r, err := newReader(fs, info.Dir, info.Manifest)
	if err != nil {
		return err
	}
	return r.Close()
}
