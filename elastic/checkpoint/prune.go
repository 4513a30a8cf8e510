package checkpoint

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

var shardFile = regexp.MustCompile(`^server-\d+\.safetensors$`)

// Prune deletes the oldest checkpoints beyond the newest keep (keep < 1 keeps
// all), and what killed saves left that are older than the newest checkpoint and
// than the save from, the first that may still be under way. It is to be called
// after a save succeeded. It returns the folders it removed.
//
// Only whole checkpoints count towards keep. Damaged ones stay, for a person to
// look at, and so do folders of other names, files that no checkpoint has, and
// unfinished saves newer than the newest checkpoint, since they may be under way.
func Prune(fsys FS, root string, keep int, from int64) (removed []string, err error) {
	infos, err := List(fsys, root)
	if err != nil {
		return nil, err
	}
	whole := 0
	for _, info := range infos {
		switch {
		case !info.Complete && (whole == 0 || info.Sequence >= from): // perhaps under way
		case !info.Complete:
			err = errors.Join(err, remove(fsys, root, info.Dir, &removed))
		case info.Err != nil || probe(fsys, info) != nil: // damaged
		default:
			if whole++; keep >= 1 && whole > keep {
				err = errors.Join(err, remove(fsys, root, info.Dir, &removed))
			}
		}
	}
	return removed, err
}

// remove deletes a checkpoint's files and its folder, the manifest durably
// first: a removal that is cut short leaves an unfinished save, not a damaged
// checkpoint.
func remove(fsys FS, root, dir string, removed *[]string) error {
	fail := func(err error) error { return ioFault("remove old checkpoint", dir, err) }
	manifest := filepath.Join(dir, manifestName)
	switch err := fsys.Remove(manifest); {
	case err == nil:
		if err := fsys.SyncDir(dir); err != nil {
			return fail(err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fail(err)
	}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return fail(err)
	}
	foreign := false
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), temporary)
		if e.IsDir() || name != manifestName && !shardFile.MatchString(name) {
			foreign = true
			continue
		}
		if err := fsys.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fail(err)
		}
	}
	if foreign {
		return nil
	}
	if err := fsys.Remove(dir); err != nil {
		return fail(err)
	}
	*removed = append(*removed, dir)
	return fsys.SyncDir(root)
}
